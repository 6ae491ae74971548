"""Datasets of n records in any container: count, take, replace one, describe, convert to P's support."""
