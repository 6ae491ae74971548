"""Fingerprints of functions, samplers and arguments, and checks on where private data can be reached."""
