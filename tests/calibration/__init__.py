"""Tests of privatize/calibration."""
