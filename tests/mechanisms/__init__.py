"""Tests of privatize/mechanisms."""
