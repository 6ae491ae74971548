"""Another process, where a set of strings has another order, made by a variable that no fingerprint knows."""

import os


def is_second():
    return os.environ.get("_".join(["WHICH", "PROCESS"])) == "second"


def by_process(x):
    """Move five times as far in the second kind of process."""
    return float(x.mean()) * (5 if is_second() else 1)
