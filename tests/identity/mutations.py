"""A program that fingerprints two variants of a function, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import privatize

RUN = """
import importlib, json, sys, traceback
from math import ceil as CEIL, floor as FLOOR, pi as PI
from pathlib import Path
from privatize.identity.fingerprint import Unencodable, fingerprint
found = {}
for folder in sorted(Path(sys.argv[1]).iterdir()):
    sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module("main")
        try:
            key = fingerprint(module.f)
            again = fingerprint(module.f)
        except Unencodable as error:
            key = again = f"doubt: {error}"
        answer = repr(module.f(2))
        import math
        math.pi, math.floor, math.ceil = PI, FLOOR, CEIL
    except Exception as error:
        key = again = answer = "".join(traceback.format_exception(error))
    if getattr(module, "real", None):
        import builtins
        builtins.round = module.real
    found[folder.name] = [key, again, answer]
    sys.path.pop(0)
    for name in ("main", "helpers", "compiled"):
        sys.modules.pop(name, None)
    from privatize.identity.origin import origin
    origin.cache_clear()
print("RESULT" + json.dumps(found))
"""


def environment(seed):
    """Return the environment of a fresh process with a hash seed."""
    package = str(Path(privatize.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": package, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}


def run(folder, seed):
    """Run all programs in a folder, in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, str(folder)],
        env=environment(seed),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.partition("RESULT")[2])
