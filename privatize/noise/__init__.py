"""Exact noise, from the operating system's randomness, on a public grid."""
