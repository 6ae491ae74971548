"""Tests of privatize/execution/packaging."""
