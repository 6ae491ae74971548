"""Tests of privatize/identity."""
