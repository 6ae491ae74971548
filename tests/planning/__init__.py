"""Tests of privatize/planning."""
