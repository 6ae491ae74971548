"""Tests of privatize/samplers."""
