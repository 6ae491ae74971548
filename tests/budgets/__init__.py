"""Tests of privatize/budgets."""
