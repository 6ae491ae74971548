"""Tests of privatize/noise."""
