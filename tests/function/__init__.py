"""Tests of privatize/function."""
