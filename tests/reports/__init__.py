"""Tests of privatize/reports."""
