"""Tests of privatize/storage."""
