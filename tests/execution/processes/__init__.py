"""Tests of privatize/execution/processes."""
