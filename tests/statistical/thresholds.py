"""Thresholds of statistical tests, each derived from the test's own false-alarm rate.

A test compares its statistic to one of these and states the rate in its docstring: the
probability, over seeds, that it fails although the code is right.
"""

from __future__ import annotations

import math

from scipy import stats

FALSE_ALARM = 1e-6


def most_successes(trials: int, share: float, false_alarm: float = FALSE_ALARM) -> int:
    """Return the count that Bin(trials, share) exceeds with probability at most false_alarm (exact)."""
    return int(stats.binom.isf(false_alarm, trials, share))


def fewest_successes(trials: int, share: float, false_alarm: float = FALSE_ALARM) -> int:
    """Return the count that Bin(trials, share) falls below with probability at most false_alarm (exact)."""
    return int(stats.binom.ppf(false_alarm, trials, share))


def mean_margin(trials: int, deviation: float, false_alarm: float = FALSE_ALARM) -> float:
    """Return how far, to one side, a mean of many trials may deviate (normal approximation)."""
    return float(stats.norm.isf(false_alarm)) * deviation / math.sqrt(trials)


def chi2_limit(freedom: int, false_alarm: float = FALSE_ALARM) -> float:
    """Return what a chi-square statistic exceeds with probability false_alarm (asymptotic)."""
    return float(stats.chi2.isf(false_alarm, freedom))


def ks_limit(trials: int, false_alarm: float = FALSE_ALARM) -> float:
    """Return what the two-sided Kolmogorov-Smirnov distance exceeds with probability false_alarm (exact)."""
    return float(stats.kstwo.isf(false_alarm, trials))
