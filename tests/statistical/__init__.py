"""Tests of distributions, with fixed seeds and stated false-alarm rates."""
