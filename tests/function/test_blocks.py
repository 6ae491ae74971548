"""Each block is evaluated by itself in a clean process, whatever the function does, and nothing is left."""

import collections
import contextlib
import ctypes
import functools
import gc
import logging
import math
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

import privatize as package
from privatize.errors import ExecutionError, SettingsError
from privatize.execution.processes.pool import pool
from privatize.function.blocks import check_blocks, cut, run_blocks
from privatize.outputs.describe import describe
from tests.cases import for_each
from tests.execution.processes.programs import until

ROOT = str(Path(package.__file__).parents[1])
SENTINEL = 31415926.0
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")


def run(function, data, b, example=0.0, **rest):
    return run_blocks(function, describe(example), data, b, coin_seed=7, **rest)


def mean(x):
    return float(x.mean())


def numbers(n=60):
    return np.arange(float(n))


@contextlib.contextmanager
def nothing_left():
    """Check that no process, descriptor or shared memory is left."""
    run(mean, numbers(4), 2)  # starts the fork server, which stays
    gc.collect()
    processes, descriptors, shared = _traces()
    yield
    gc.collect()
    found = _traces()
    # What other tests have left may end meanwhile.
    assert found[0] <= processes and found[1] <= descriptors and found[2] <= shared


def _traces():
    processes = {each.pid for each in psutil.Process().children(recursive=True)}
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    shared = {path.name for path in Path("/dev/shm").glob("privatize*")}
    return processes, descriptors, shared


# --- what a block is -----------------------------------------------------------------------------


def test_blocks_are_a_secret_uniform_permutation_of_the_records():
    """With a known order, somebody who can sort the file would move every block.

    The place of the first of 12 records in 12,000 cuts: a chi-squared test with 11 degrees of freedom, whose
    false-alarm rate is 1e-6. The permutation is secret, so there is no seed to fix.
    """
    for n, b in [(1, 1), (10, 3), (7, 7), (1000, 13)]:
        blocks = cut(n, b)
        assert sorted(np.concatenate(blocks).tolist()) == list(range(n))
        assert len(blocks) == b
        sizes = [len(block) for block in blocks]
        assert max(sizes) - min(sizes) <= 1
    places = [int(np.flatnonzero(np.concatenate(cut(12, 4)) == 0)[0]) for _ in range(12_000)]
    counts = np.bincount(places, minlength=12)
    assert ((counts - 1000) ** 2 / 1000).sum() < 52.8


def test_each_block_is_evaluated_once_on_its_own_records():
    """A person would count twice, or not at all."""
    found = run(lambda x: [float(len(x)), float(x.sum()), float(x.min())], numbers(), 7, [0.0, 0.0, 0.0])
    assert found.shape == (7, 3)
    assert sorted(found[:, 0]) == [8, 8, 8, 9, 9, 9, 9]
    assert found[:, 1].sum() == numbers().sum()
    assert found[:, 2].min() == 0
    assert len(set(found[:, 2])) == 7


class Shifted:
    def __init__(self, by):
        self.by = by

    def mean(self, x):
        return float(x.mean()) + self.by


def kinds_of_functions():
    by = 5.0

    def closure(x):
        return float(x.mean()) + by

    yield closure
    yield lambda x: float(x.mean()) + 5
    yield Shifted(5.0).mean
    yield functools.partial(lambda x, y: float(x.mean()) + y, y=5.0)
    yield functools.partial(np.quantile, q=0.5)


def test_every_kind_of_function_can_be_evaluated():
    """A function that is not in an importable module could not be released by blocks."""
    for function in kinds_of_functions():
        found = run(function, np.full(12, 3.0), 3, np.float64(0))
        assert set(found.ravel()) <= {8.0, 3.0}


@dataclass
class Neighbour:
    age: int


@dataclass
class Unsendable:
    age: int
    held = (each for each in "a generator cannot be sent")


def test_a_record_of_a_class_that_cannot_be_sent_fails_its_own_block():
    """An error, or the failure of all blocks, would tell that somebody's record is of that class."""

    def first(people):
        return float(people[0].age)

    people = [Unsendable(1), Person(1, "f"), Person(1, "f"), Person(1, "m")]
    assert np.isnan(run(first, people, 4)).sum() == 1
    check_blocks(first, describe(0.0), people)
    people[0] = Person(threading.Lock(), "a record that cannot be pickled")
    people[2] = Neighbour(1)
    assert np.isnan(run(first, people, 4)).sum() == 1


@dataclass
class Person:
    age: int
    sex: str


Pair = collections.namedtuple("Pair", "a b")


def test_records_and_outputs_may_be_of_the_users_own_classes():
    """Another process would know another class of the same name, and every block would fail."""
    people = [Person(20 + i, "FM"[i % 2]) for i in range(12)]

    def ages(records):
        assert all(isinstance(each, Person) for each in records)
        return Pair(float(sum(each.age for each in records)), len(records))

    found = run(ages, people, 4, Pair(0.0, 0))
    assert found.sum(axis=0).tolist() == [12 * 20 + 66, 12]


def hashes(x):
    return float(hash("the order of a set of strings follows from this") >> 12)


def test_another_fork_server_has_the_same_orders_of_sets():
    """A function was tried on public data in one server, and would be another one in the next."""
    rows, servers = [], []
    for _ in range(2):
        rows.append(run(hashes, numbers(), 2))
        servers.append(pool().method.server._forkserver_pid)
        pool().close()
        os.kill(servers[-1], signal.SIGKILL)
        assert until(lambda: psutil.Process(servers[-1]).status() == psutil.STATUS_ZOMBIE)
    assert servers[0] != servers[1] and np.array_equal(*rows)


def test_frames_work_in_blocks():
    """A frame would fail in the process that evaluates it."""
    check_library("pandas")


@pytest.mark.slow
@for_each("library", ["polars", "pyarrow", "torch", "scipy.sparse", "sklearn.linear_model"])
def test_containers_and_models_work_in_blocks(library):
    """A tensor or a model would fail in the process that evaluates it."""
    check_library(library)


def check_library(library):
    module = pytest.importorskip(library)
    x = numbers(40)
    if library in ("pandas", "polars"):
        frame = module.DataFrame({"x": x, "y": 2 * x})
        found = run(lambda d: float(d["y"].sum()), frame, 4)
    elif library == "pyarrow":
        found = run(lambda d: float(d["y"].to_numpy().sum()), module.table({"y": 2 * x}), 4)
    elif library == "torch":
        found = run(lambda d: float(d.sum()) * 2, module.tensor(x), 4)
    elif library == "scipy.sparse":
        found = run(lambda d: float(d.sum()) * 2, module.csr_array(x[:, None]), 4)
    else:
        fitted = run(
            lambda d: module.LinearRegression().fit(d[0], d[1]).coef_, (x[:, None], 2 * x), 4, np.zeros(1)
        )
        assert np.allclose(fitted, 2)
        return
    assert found.sum() == 2 * x.sum()


# --- blocks that fail ----------------------------------------------------------------------------


def raises(x):
    raise ValueError(f"the value {x[0]}")


def exits(x):
    sys.exit(str(x))


def leaves(x):
    os._exit(0)


def is_killed(x):
    os.kill(os.getpid(), signal.SIGKILL)


def crashes(x):
    ctypes.string_at(0)


def aborts(x):
    os.abort()


def writes_garbage(x):
    os.write(3, b"\x01" + bytes(5))


def writes_an_answer_and_more(x):
    os.write(3, b"\x01" + bytes(8))
    return 0.0


def writes_a_lot(x):
    with contextlib.suppress(OSError):
        while True:
            os.write(3, bytes(2**16))


def claims_to_be_infinite(x):
    os.write(3, b"\x01" + np.array([math.inf]).tobytes())
    os._exit(0)


def closes_everything(x):
    os.closerange(0, 100)
    return 0.0


def computes_without_end(x):
    while True:
        pass


def allocates_without_end(x):
    kept = []
    while True:
        kept.append(np.ones(2**20))


def recurses(x):
    return recurses(x)


def ends_the_template(x):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(100)


def writes_a_file(x):
    Path(os.environ["PRIVATIZE_TEST_FILE"]).write_text(str(x))
    return 0.0


def shares_memory(x):
    from multiprocessing import shared_memory

    shared_memory.SharedMemory(create=True, size=4096, name="privatize_test")
    return 0.0


FAILURES = [
    *(raises, exits, leaves, is_killed, crashes, aborts, recurses, ends_the_template),
    *(writes_garbage, writes_an_answer_and_more, writes_a_lot, claims_to_be_infinite, closes_everything),
    *(computes_without_end, allocates_without_end, writes_a_file, shares_memory),
    lambda x: "text",
    lambda x: None,
    lambda x: np.array([1.0, 2.0]),
    lambda x: {"a": 1.0},
    lambda x: math.nan,
    lambda x: -math.inf,
]


@pytest.mark.slow
@for_each("failure", FAILURES)
def test_only_the_block_fails_in_which_something_happens(failure, monkeypatch, tmp_path, capfd, caplog):
    """One person's record could fail several blocks, or show in a message, in output or in a file."""
    path = tmp_path / "written"
    monkeypatch.setenv("PRIVATIZE_TEST_FILE", str(path))
    caplog.set_level(logging.DEBUG)
    data = numbers(20)
    data[7] = SENTINEL
    with nothing_left(), warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        found = run(
            lambda x: failure(x) if SENTINEL in x else float(len(x)), data, 5, seconds=1, memory=2**27
        )
    assert sorted(found.ravel()[~np.isnan(found.ravel())]) == [4, 4, 4, 4]
    written = path.read_text() if path.exists() else ""
    output = capfd.readouterr()
    for text in (written, output.out, output.err, caplog.text, *(str(each.message) for each in shown)):
        assert "3141592" not in text
    assert not shown


def test_an_integer_stays_one():
    """A function that returns another type than its bounds have would be rounded without a word."""
    found = run(lambda x: float(len(x)) if 3.0 in x else len(x), numbers(20), 4, 0)
    assert sorted(np.isnan(found).ravel()) == [False, False, False, True]


def test_limits_are_per_block_and_on_the_cpu():
    """A block that waits, or that runs beside a busy one, would fail because of the others."""

    def limits(x):
        kinds = resource.RLIMIT_CPU, resource.RLIMIT_CORE, resource.RLIMIT_FSIZE
        time.sleep(1.2)
        return [float(resource.getrlimit(kind)[1]) for kind in kinds]

    found = run(limits, numbers(4), 2, [0.0, 0.0, 0.0], seconds=0.5)
    assert found.tolist() == [[1, 0, 0], [1, 0, 0]]


# --- what a block can leave behind ---------------------------------------------------------------


def test_a_block_prints_and_reads_nothing(capfd):
    """Private records would be in the terminal, or in a log of the program."""

    def talks(x):
        print(x)
        print(x, file=sys.stderr)
        os.write(1, b"3141592")
        os.system("echo 3141592")
        warnings.warn(f"{x}", stacklevel=1)
        logging.getLogger().error("%s", x)
        with contextlib.suppress(OSError):
            Path("/dev/tty").write_text("3141592")
        return float(len(sys.stdin.read()))

    assert run(talks, np.full(4, SENTINEL), 2).tolist() == [[0], [0]]
    output = capfd.readouterr()
    assert output.out + output.err == ""


def starts_a_child(x):
    """Start a process that stays in the group, and return its id."""
    pid = os.fork()
    if pid == 0:
        time.sleep(1000)
    return float(pid)


def starts_a_session(x):
    """Start a process in a session of its own, whose parent has ended, and return its id."""
    out, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(end, str(os.getpid()).encode())
            time.sleep(1000)
        os._exit(0)
    os.waitpid(pid, 0)
    return float(os.read(out, 100))


def starts_a_program(x):
    started = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    return float(started.pid)


@for_each("start", [starts_a_child, starts_a_session, starts_a_program])
def test_what_a_block_has_started_ends_with_it(start):
    """A process that holds private records would live on, and could do anything with them."""
    with nothing_left():
        found = run(start, numbers(12), 3)
    assert not any(psutil.pid_exists(int(pid)) for pid in found.ravel())


def test_a_child_that_returns_from_the_function_does_not_answer():
    """A function that forks would answer twice, and its block would fail."""

    def forks(x):
        os.fork()
        return float(len(x))

    assert run(forks, numbers(12), 3).tolist() == [[4], [4], [4]]


largest = -math.inf


def running_maximum(x):
    global largest
    largest = max(largest, float(x.max()))
    return largest


def test_each_block_begins_with_the_same_clean_state():
    """With a running maximum, one person would change the answers of half of the blocks."""
    found = run(running_maximum, numbers(), 12)
    assert len(set(found.ravel())) == 12
    assert largest == -math.inf


@for_each("act", ["w", "remove", "rename", "truncate", "mkdir", "symlink", "utime", "open"])
def test_no_block_changes_what_others_read(act, tmp_path):
    """A running maximum in a file, emptied by one person's block, would be read by all later blocks."""
    file = tmp_path / "state"
    file.write_text("5")
    os.utime(file, (1, 1))
    acts = {
        "w": lambda: file.open("w").close(),
        "remove": file.unlink,
        "rename": lambda: file.rename(f"{file}2"),
        "truncate": lambda: os.truncate(file, 0),
        "mkdir": (tmp_path / "new").mkdir,
        "symlink": lambda: (tmp_path / "new").symlink_to(file),
        "utime": lambda: os.utime(file, (2, 2)),
        "open": lambda: os.close(os.open(tmp_path / "new", os.O_CREAT)),
    }
    change = acts[act]

    def changes(x):
        with contextlib.suppress(OSError):
            change()
        return float(file.read_text())

    assert (run(changes, numbers(6), 3) == 5).all()
    assert list(tmp_path.iterdir()) == [file] and file.read_text() == "5" and file.stat().st_mtime == 1


def test_the_callers_data_and_generators_stay_as_they_are():
    """The function's changes to the data would be found by the program afterwards."""

    def changes(x):
        x[:] = 0
        return [random.random(), float(np.random.random())]

    data = numbers(12)
    random.seed(1)
    before = random.getstate()
    found = run(changes, data, 3, [0.0, 0.0])
    assert len(set(map(tuple, found.tolist()))) == 1  # all blocks have the same public seed
    assert data.tolist() == numbers(12).tolist()
    assert random.getstate() == before


def test_the_template_never_holds_records():
    """Each block would be forked from a process in which it could find the others' records."""
    marker = "the function's own constant"

    def searches(x):
        parent, wanted = os.getppid(), [x[:1].tobytes(), marker.encode()]  # all blocks have the same record
        found = [False, False]
        try:
            maps = Path(f"/proc/{parent}/maps").read_text().splitlines()
            with Path(f"/proc/{parent}/mem").open("rb") as memory:
                for line in maps:
                    span, flags = line.split()[:2]
                    if flags.startswith("rw"):
                        start, stop = (int(end, 16) for end in span.split("-"))
                        memory.seek(start)
                        with contextlib.suppress(OSError):
                            content = memory.read(stop - start)
                            found = [was or each in content for was, each in zip(found, wanted, strict=True)]
        except PermissionError:
            return [-1.0, -1.0]
        return [float(each) for each in found]

    found = run(searches, np.full(8, 8675309.25), 4, [0.0, 0.0])
    if (found == -1).all():
        pytest.skip("this system does not let a process look at its parent")
    assert found.tolist() == [[0, 1]] * 4


# --- interrupts, threads, other processes --------------------------------------------------------


def sleeps(x):
    starts_a_session(x)
    time.sleep(1000)


def test_a_block_that_sleeps_can_be_interrupted():
    """A program would wait forever, or leave processes with private records behind."""

    def interrupt():
        me, end = psutil.Process(), time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(psutil.NoSuchProcess):  # it may end before its name is read
                if sum(each.name().startswith("python") for each in me.children(recursive=True)) >= known + 4:
                    break
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores interrupts
    try:
        with nothing_left():
            known = len(psutil.Process().children(recursive=True))
            thread = threading.Thread(target=interrupt)
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                run(sleeps, numbers(4), 2)
            thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert run(mean, np.ones(4), 2).tolist() == [[1], [1]]


def test_two_threads_can_release_at_once():
    """The blocks of one release would get the answers of the other."""
    found = {}

    def release(value):
        found[value] = run(lambda x: float(x.sum()) + len(x), np.full(20, value), 5)

    threads = [threading.Thread(target=release, args=(value,)) for value in (1.0, 2.0, 3.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {value: set(rows.ravel()) for value, rows in found.items()} == {1: {8}, 2: {12}, 3: {16}}


def _sum_of_blocks(n):
    return float(run(lambda x: float(x.sum()), numbers(n), 3).sum())


def test_it_works_in_a_worker_of_multiprocessing():
    """A program that distributes its own work could not release anything there."""
    with multiprocessing.get_context("fork").Pool(2) as others:
        assert others.map(_sum_of_blocks, [9, 12]) == [36, 66]


class Threaded:
    """A function that starts a thread wherever it arrives, as some libraries do."""

    def __init__(self):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()

    def __reduce__(self):
        return Threaded, ()

    def __call__(self, x):
        return float(threading.active_count() + 10 * len(x))


def test_a_function_that_starts_threads_is_loaded_in_each_block():
    """A process with threads would fork, and its children could hang in locks that nobody releases."""
    assert run(Threaded(), numbers(4), 2, version="1").tolist() == [[22], [22]]


def test_blocks_need_fork(monkeypatch):
    """On Windows an unclear error would come from deep inside."""
    monkeypatch.delattr(os, "fork")
    with pytest.raises(SettingsError, match="fork"):
        run(mean, numbers(4), 2)
    with pytest.raises(SettingsError, match="fork"):
        check_blocks(mean, describe(0.0), numbers(4))


def test_what_cannot_be_sent_is_refused():
    """All blocks would fail, and the answer would say nothing, without a word."""
    lock = (each for each in "a generator cannot be sent")
    with nothing_left(), pytest.raises(ExecutionError, match="Each block is evaluated"):
        run(lambda x: float(len(list(lock))), numbers(4), 2)
    with pytest.raises(ExecutionError, match="Each block is evaluated"):
        check_blocks(lambda x: float(len(list(lock))), describe(0.0), numbers(4))
    check_blocks(mean, describe(0.0), numbers(4))


class Breaks:
    def __reduce__(self):
        return os._exit, (3,)

    def __call__(self, x):
        return 0.0


def test_a_function_that_ends_the_process_on_arrival_is_an_error():
    """The caller would wait forever."""
    with nothing_left(), pytest.raises(ExecutionError, match="before it was ready"):
        run(Breaks(), numbers(4), 2, version="1")


def test_a_function_of_a_script_or_a_notebook_can_be_released():
    """Users write functions in `__main__`, which other processes cannot import."""
    script = """
        import numpy as np
        from privatize.function.blocks import run_blocks
        from privatize.outputs.describe import describe
        factor = 2.0
        def helper(x):
            return x * factor
        def function(x):
            return {"sum": float(helper(x).sum())}
        print(run_blocks(function, describe({"sum": 0.0}), np.arange(10.0), 3, coin_seed=1).sum())
    """
    done = subprocess.run(
        [sys.executable, "-"],
        input=textwrap.dedent(script),
        env=os.environ | {"PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("90.0\n", "")
