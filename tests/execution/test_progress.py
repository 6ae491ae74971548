"""A progress bar is shown where somebody can see it, and nowhere else."""

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import textwrap

import numpy as np
import pytest

from tests.execution.evaluated import ROOT, estimate, memory


def mean(x):
    return float(x.mean())


class TestProgress:
    SLOW = """
    import sys, time
    import numpy as np
    from privatize import privatize, samplers
    def slow(x):
        time.sleep(float(sys.argv[2]))
        return float(x.mean())
    shown = {"True": True, "False": False, "None": None}[sys.argv[1]]
    f = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), seed=1, store=None, progress=shown,
                  workers="inline")(slow)
    f(np.full(20, 0.12345678))
    print("done")
    """

    def run(self, progress, pause, **rest):
        return subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(self.SLOW), progress, pause],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": "", "COLUMNS": "100"},
            **rest,
        )

    @pytest.mark.parametrize(("progress", "shown"), [("True", True), ("None", False)])
    def test_on_a_pipe(self, progress, shown):
        """A log file gets a bar only if it was asked for, and stdout never does."""
        out, err = self.run(progress, "0.001" if shown else "0.003", stderr=subprocess.PIPE).communicate(
            timeout=300
        )
        assert out == b"done\n" and b"0.1234" not in err
        assert (b"/219" in err) == shown and (b" pairs/s" in err) == shown
        assert shown or err == b""

    @pytest.mark.parametrize(("progress", "shown"), [("None", True), ("False", False)])
    def test_on_a_terminal(self, progress, shown):
        """A user who waits for more than a second would not see the progress, or the bar would show data."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        process = self.run(progress, "0.004" if shown else "0.003", stderr=theirs)
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(ours, 4096):
                seen += part
        out, _ = process.communicate(timeout=300)
        os.close(ours)
        assert out == b"done\n" and b"0.1234" not in seen
        assert (b"/219" in seen and b" pairs/s" in seen and b"slow" in seen) == shown
        assert shown or seen == b""

    @pytest.mark.parametrize("progress", ["True", "None"])
    def test_without_a_stderr(self, progress):
        """A program without a stderr, such as a service, could not calibrate."""
        done = subprocess.run(
            [
                "sh",
                "-c",
                f'exec "{sys.executable}" -c "$0" {progress} 0.0001 2>&-',
                textwrap.dedent(self.SLOW),
            ],
            stdout=subprocess.PIPE,
            timeout=300,
            env=os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": ""},
        )
        assert done.returncode == 0 and done.stdout == b"done\n"

    def test_the_bar_of_a_resumed_run(self, capsys):
        """The bar of a resumed run would begin at 0."""
        full = estimate(mean)
        known = full.gaps.copy()
        known[150:] = np.nan
        known = memory(known, full.structure, [])
        estimate(mean, memory=known, progress=True)
        shown = capsys.readouterr().err
        assert "150/219" in shown and " 0/219" not in shown
