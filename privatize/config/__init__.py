"""Settings for an entire program."""
