"""Tests of privatize/calibration/evaluators."""
