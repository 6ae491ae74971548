"""scikit-learn: estimators in, private estimators out."""

from privatize.function.private_estimator import PrivateEstimator, fitted, known

__all__ = ["PrivateEstimator", "fitted", "known"]
