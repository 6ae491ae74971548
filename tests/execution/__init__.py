"""Tests of privatize/execution."""
