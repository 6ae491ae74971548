"""Tests of privatize/data."""
