"""Is the promise true? Measured, both halves of it."""
