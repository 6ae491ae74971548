"""What may be spent, what was spent, and the data that it is about."""
