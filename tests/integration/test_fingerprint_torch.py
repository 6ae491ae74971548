"""Fingerprints of torch modules: the same in every process, another one for another hook."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import privatize

pytest.importorskip("torch")

PROGRAM = """
import sys
import torch
from privatize.identity.fingerprint import fingerprint
torch.manual_seed(1)
for _ in range(int(sys.argv[1])):  # a hook's number counts all hooks before it
    torch.nn.Linear(2, 2).register_forward_hook(lambda *args: None)
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
K = int(sys.argv[2])
def scaled(module, args, out):
    return out * K
def named(module, args, kwargs, out):
    return out + 1
net[0].register_forward_hook(scaled)
net[0].register_forward_hook(named, with_kwargs=True)
net.register_forward_pre_hook(lambda module, args: args)
def f(x):
    return float(net(torch.as_tensor(x)).sum())
print(fingerprint(f), fingerprint(net))
"""


def test_modules_with_hooks():
    """A network with a hook would be calibrated again in every process, or a changed hook not seen."""
    package = str(Path(privatize.__file__).parents[1])
    found = []
    for seed, arguments in (("1", ("0", "1")), ("2", ("5", "1")), ("3", ("0", "2"))):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            env={**os.environ, "PYTHONPATH": package, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(done.stdout.split())
    assert found[0] == found[1]
    assert found[0][0] != found[2][0] and found[0][1] != found[2][1]
