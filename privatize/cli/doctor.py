"""`privatize doctor`: what this machine has, and whether everything that is configured works."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import re
import sqlite3
import sys
import tempfile
import textwrap
from importlib import metadata
from pathlib import Path
from typing import Any

from privatize.budgets.ledger_layout import check
from privatize.cli import ledgers, stores
from privatize.cli.showing import Told, one_line, place
from privatize.config.policy import policy
from privatize.errors import PolicyError, PrivatizeError
from privatize.execution.choose import cores
from privatize.execution.packaging.surroundings import THREADS
from privatize.storage.database import Database, DatabaseError

__all__ = ["examined"]

_EXTRAS = {
    "plot": ("matplotlib", "matplotlib", "plot() with matplotlib"),
    "postgres": ("psycopg", "psycopg", "stores and ledgers in PostgreSQL"),
    "dask": ("distributed", "distributed", "calibration on Dask"),
    "ray": ("ray", "ray", "calibration on Ray"),
    "accounting": ("dp_accounting", "dp-accounting", "tight composition"),
    "sklearn": ("sklearn", "scikit-learn", "private estimators"),
    "completion": ("argcomplete", "argcomplete", "completion in the shell"),
}
_CORE = ("numpy", "scipy", "cloudpickle", "multiprocess", "platformdirs", "threadpoolctl", "tqdm", "narwhals")


def examined() -> Told:
    """Look at everything, and say what is broken."""
    broken: list[str] = []
    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "privatize": _version("privatize"),
        "dependencies": _dependencies(broken),
        "cores": _cores(),
        "start_method": "spawn" if sys.platform == "win32" else "forkserver",
        "threads": _threads(),
        "policy": _policy(broken),
        "store": _checked("store", broken),
        "ledger": _checked("ledger", broken),
        "extras": _extras(),
        "broken": broken,
    }
    return Told(_text(facts), facts, 1 if broken else 0, tuple(broken))


# --- versions --------------------------------------------------------------------------------------


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _dependencies(broken: list[str]) -> dict[str, Any]:
    """Return the versions of what cannot be done without, and the least that will do."""
    least: dict[str, str] = {}
    with contextlib.suppress(metadata.PackageNotFoundError):
        for line in metadata.requires("privatize") or []:
            found = re.match(r"([\w.-]+)\s*>=\s*([\w.]+)\s*$", line)
            if found:
                least[found[1]] = found[2]
    facts = {}
    for name in dict.fromkeys([*_CORE, *least]):
        have, need = _version(name), least.get(name)
        fine = have is not None and (need is None or _release(have) >= _release(need))
        facts[name] = {"version": have, "least": need, "fine": fine}
        if have is None:
            broken.append(f"{name} is not installed: pip install '{name}{f'>={need}' if need else ''}'")
        elif not fine:
            broken.append(f"{name} {have} is too old: pip install '{name}>={need}'")
    return facts


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without trailing zeros."""
    found = re.match(r"(?:\d+!)?(\d+(?:\.\d+)*)", version)
    numbers = [int(part) for part in found[1].split(".")] if found else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _extras() -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for extra, (module, name, purpose) in _EXTRAS.items():
        try:
            there = importlib.util.find_spec(module) is not None
        except (ImportError, ValueError):
            there = False
        version = _version(name) if there else None
        facts[extra] = {"library": name, "present": there, "version": version, "for": purpose}
        if not there:
            facts[extra]["install"] = f"pip install 'privatize[{extra}]'"
    return facts


# --- the machine -----------------------------------------------------------------------------------


def _cores() -> dict[str, Any]:
    try:
        allowed: int | None = len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover - not on every system
        allowed = None
    limit = None
    with contextlib.suppress(OSError, ValueError):  # no such limit
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        limit = int(quota) / int(period)
    return {"machine": os.cpu_count(), "affinity": allowed, "cgroup": limit, "used": cores()}


def _threads() -> dict[str, Any]:
    import threadpoolctl

    found = [
        {
            "library": each.get("internal_api"),
            "threads": each.get("num_threads"),
            "version": each.get("version"),
        }
        for each in threadpoolctl.threadpool_info()
    ]
    return {"libraries": found, "environment": {name: os.environ.get(name) for name in THREADS}}


# --- what is configured ----------------------------------------------------------------------------


def _policy(broken: list[str]) -> dict[str, Any]:
    try:
        rules = policy()
    except PrivatizeError as error:
        broken.append(one_line(error))
        return {"file": None, "problem": one_line(error)}
    if rules.file is None:
        return {"file": None}
    facts: dict[str, Any] = {"file": str(rules.file)}
    for name in ("max_epsilon", "max_delta", "max_gamma"):
        if getattr(rules, name) is not None:
            facts[name] = getattr(rules, name)
    return facts | {"require_budget": rules.require_budget, "require_sealed": rules.require_sealed}


def _checked(kind: str, broken: list[str]) -> dict[str, Any]:
    """Return where a database is, and whether it can be used."""
    try:
        url = stores.whereabouts(None) if kind == "store" else ledgers.whereabouts(None) or "memory"
    except PrivatizeError as error:
        if not isinstance(error, PolicyError):  # the policy is said elsewhere
            broken.append(one_line(error))
        return {"where": None, "works": False, "state": one_line(error)}
    if url == "memory":
        return {"where": None, "works": True, "state": "memory only: it ends with each process"}
    facts: dict[str, Any] = {"where": place(url)}
    try:
        facts |= {"works": True, "state": _try(url, "estimates" if kind == "store" else "budgets")}
    except (DatabaseError, PrivatizeError, OSError, sqlite3.Error) as error:
        facts |= {"works": False, "state": one_line(error)}
        broken.append(f"the {kind} {place(url)} cannot be used: {one_line(error)}")
    return facts


def _try(url: str, table: str) -> str:
    """Say how a database stands; raise if it cannot be written. Leaves it as it is."""
    database = Database(url, [])
    if database.postgres:
        with database.transaction() as run:
            there = run("SELECT to_regclass(?)", table)[0][0] is not None
            if table == "budgets" and run("SELECT to_regclass('ledger_layout')")[0][0] is not None:
                check(run("SELECT version FROM ledger_layout"))
            if there:
                fine = all(
                    run("SELECT has_table_privilege(?, ?)", table, what)[0][0]
                    for what in ("SELECT", "INSERT", "UPDATE")
                )
            else:
                fine = run("SELECT has_schema_privilege(current_schema(), 'CREATE')")[0][0]
        database.close()
        if not fine:
            raise DatabaseError("this account may not write there")
        return "reachable and writable" if there else "reachable; the tables are made when first needed"
    path = database.path
    if path is None:
        return "memory only"
    if path.is_dir():
        raise DatabaseError("that is a folder")
    if not path.exists():
        folder = next(each for each in path.parents if each.exists())
        try:
            Path(tempfile.mkdtemp(prefix=".privatize-", dir=folder)).rmdir()
        except OSError as error:
            raise DatabaseError(
                f"it is not there, and {folder} cannot be written: {error.strerror}"
            ) from None
        return "not there yet: it is made when first needed"
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK | os.X_OK):
        raise DatabaseError("it is read-only")
    if table == "budgets" and not path.stat().st_size:
        raise DatabaseError("it is empty: its content is missing")
    with contextlib.closing(
        sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=10, isolation_level=None)
    ) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if names and table not in names:
            raise DatabaseError("it is a database of something else")
        if table == "budgets" and "ledger_layout" in names:
            check(connection.execute("SELECT version FROM ledger_layout").fetchall())
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    return "reachable and writable"


# --- for people ------------------------------------------------------------------------------------


def _text(facts: dict[str, Any]) -> str:
    cores = facts["cores"]
    limits = [f"{cores['machine']} in the machine"]
    limits += [f"{cores['affinity']} allowed to this process"] if cores["affinity"] is not None else []
    limits += [f"a limit of {cores['cgroup']:g} by the container"] if cores["cgroup"] is not None else []
    libraries = [f"{each['library']}: {each['threads']}" for each in facts["threads"]["libraries"]]
    named = [
        f"{name}={value}" for name, value in facts["threads"]["environment"].items() if value is not None
    ]
    rows = [
        ("privatize", f"{facts['privatize'] or 'not installed: run from its folder'}"),
        ("python", f"{facts['python']}, {facts['platform']}"),
        ("", facts["executable"]),
        ("needs", ", ".join(_needed(name, each) for name, each in facts["dependencies"].items())),
        ("cores", f"{cores['used']} used ({', '.join(limits)})"),
        ("workers", f"started by {facts['start_method']}"),
        ("threads", f"{', '.join(libraries) or 'no BLAS is loaded'}; one each while a function is evaluated"),
        ("", f"set: {', '.join(named)}" if named else f"not set: {', '.join(THREADS)}"),
        ("policy", facts["policy"].get("problem") or facts["policy"]["file"] or "none ([tool.privatize])"),
        *_place("store", facts["store"]),
        *_place("ledger", facts["ledger"]),
    ]
    for at, (extra, each) in enumerate(facts["extras"].items()):
        state = f"{each['library']} {each['version'] or ''}" if each["present"] else each["install"]
        mark = "yes" if each["present"] else "no "
        rows.append(("extras" if at == 0 else "", f"{mark} {extra:11s} {state:37s} {each['for']}"))
    lines = _wrapped(rows)
    many = len(facts["broken"])
    lines.append(
        "everything works" if not many else "1 thing is broken" if many == 1 else f"{many} things are broken"
    )
    return "\n".join(lines)


def _wrapped(rows: list[tuple[str, str]]) -> list[str]:
    lines = []
    for name, value in rows:
        inside = textwrap.wrap(value, 96, break_long_words=False, break_on_hyphens=False) or [""]
        if value.startswith(("yes ", "no  ")):
            inside = [value]
        lines += [f"{name if at == 0 else '':10s} {part}".rstrip() for at, part in enumerate(inside)]
    return lines


def _needed(name: str, each: dict[str, Any]) -> str:
    if each["version"] is None:
        return f"{name} MISSING"
    return f"{name} {each['version']}" + ("" if each["fine"] else f" TOO OLD (>= {each['least']})")


def _place(name: str, facts: dict[str, Any]) -> list[tuple[str, str]]:
    state = facts["state"] if facts["works"] else f"BROKEN: {facts['state']}"
    return [(name, state)] if facts["where"] is None else [(name, facts["where"]), ("", state)]
