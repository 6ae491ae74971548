"""Our own worker processes: those that crash or hang are replaced."""
