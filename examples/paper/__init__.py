"""The paper's experiments, one small script for each figure: ``python -m examples.paper``."""
