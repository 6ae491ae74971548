"""Tests of privatize/display."""
