"""One database, and the estimates remembered in it."""
