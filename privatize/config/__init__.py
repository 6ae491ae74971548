"""What holds for a whole program."""
