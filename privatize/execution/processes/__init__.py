"""Processes of our own: they survive what they run."""
