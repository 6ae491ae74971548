"""The identity of functions, samplers and arguments, and what private data must not reach."""
