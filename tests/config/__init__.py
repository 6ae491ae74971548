"""Tests of privatize/config."""
