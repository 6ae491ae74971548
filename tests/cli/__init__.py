"""Tests of privatize/cli."""
