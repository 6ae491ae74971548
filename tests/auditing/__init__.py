"""Tests of privatize/auditing."""
