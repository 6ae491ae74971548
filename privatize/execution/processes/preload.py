"""Only the fork server imports this module: it loads what workers need."""

import os

from privatize.execution.processes.libraries import VARIABLE, load

if VARIABLE in os.environ:
    load(os.environ.pop(VARIABLE))
