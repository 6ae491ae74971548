"""A job as bytes, and back, with what makes it the same on both sides."""
