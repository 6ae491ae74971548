"""Tests of privatize/outputs."""
