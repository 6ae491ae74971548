"""The command line: ``privatize``, also ``python -m privatize``."""
