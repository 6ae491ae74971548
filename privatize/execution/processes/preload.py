"""Only the fork server imports this module, after its own: it loads the libraries that a job names."""

import os

from privatize.execution.processes.libraries import VARIABLE, load

if VARIABLE in os.environ:
    load(os.environ.pop(VARIABLE))
