"""Tests of privatize/execution/clusters."""
