"""scikit-learn: estimators in, private estimators out."""

from privatize.function.predictions import predictions
from privatize.function.private_estimator import PrivateEstimator, fitted
from privatize.outputs.models import known

__all__ = ["PrivateEstimator", "fitted", "known", "predictions"]
