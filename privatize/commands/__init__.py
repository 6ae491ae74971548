"""The commands of the command line: each says what it found as text and as plain facts."""
