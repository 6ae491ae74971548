"""`privatize doctor`: what this machine has, and whether everything that is configured works."""

import argparse
import contextlib
import os
import platform
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from privatize.budgets.ledger_layout import check
from privatize.cli import ledgers, stores
from privatize.cli.command import Outcome, command
from privatize.cli.reading import NotThere, tables
from privatize.cli.showing import labelled, one_line, place
from privatize.config.policy import policy
from privatize.errors import PolicyError, PrivatizeError
from privatize.execution.choose import cores
from privatize.execution.processes.libraries import THREADS
from privatize.identity.library import DISTRIBUTION
from privatize.storage.database import Database, DatabaseError

_EXTRAS = {
    "plot": ("matplotlib", "plot() with matplotlib"),
    "postgres": ("psycopg", "stores and ledgers in PostgreSQL"),
    "dask": ("distributed", "calibration on Dask"),
    "ray": ("ray", "calibration on Ray"),
    "accounting": ("dp-accounting", "tight composition"),
    "sklearn": ("scikit-learn", "private estimators"),
    "completion": ("argcomplete", "completion in the shell"),
    "opendp": ("opendp", "transformations of OpenDP"),
}


@command("doctor")
def doctor(_: argparse.Namespace) -> Outcome:
    """Look at versions, cores, threads, store, ledger, policy and extras, and say what is broken.

    privatize doctor
    privatize doctor --json | jq .broken
    """
    broken: list[str] = []
    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "privatize": _version(DISTRIBUTION),
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
    return Outcome(_text(facts), facts, 1 if broken else 0, tuple(broken))


# --- versions --------------------------------------------------------------------------------------


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _dependencies(broken: list[str]) -> dict[str, Any]:
    """Return the versions of required libraries, and the oldest versions that work."""
    facts: dict[str, Any] = {}
    needed = metadata.requires(DISTRIBUTION) if _version(DISTRIBUTION) else None
    if _version("privatize"):
        broken.append(
            f"the distribution privatize is another project's, and is in the way of this one: "
            f"pip uninstall -y privatize {DISTRIBUTION} && pip install {DISTRIBUTION}"
        )
    for line in needed or ():
        found = re.match(r"([\w.-]+)\s*>=\s*([\w.]+)\s*$", line)
        if found is None:  # it belongs to an extra
            continue
        name, need = found.groups()
        have = _version(name)
        fine = have is not None and _release(have) >= _release(need)
        facts[name] = {"version": have, "least": need, "fine": fine}
        if not fine:
            state = "is not installed" if have is None else f"{have} is too old"
            broken.append(f"{name} {state}: pip install '{name}>={need}'")
    return facts


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without trailing zeros."""
    found = re.match(r"(?:\d+!)?(\d+(?:\.\d+)*?)(?:\.0+)*(?![\d.])", version)
    return tuple(map(int, found[1].split("."))) if found else ()


def _extras() -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for extra, (name, purpose) in _EXTRAS.items():
        version = _version(name)
        facts[extra] = {"library": name, "present": version is not None, "version": version, "for": purpose}
        if version is None:
            facts[extra]["install"] = f"pip install '{DISTRIBUTION}[{extra}]'"
    return facts


# --- the machine -----------------------------------------------------------------------------------


def _cores() -> dict[str, Any]:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    limit = None
    with contextlib.suppress(OSError, ValueError):  # there is no such limit
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        limit = int(quota) / int(period)
    return {"machine": os.cpu_count(), "affinity": allowed, "cgroup": limit, "used": cores()}


def _threads() -> dict[str, Any]:
    import threadpoolctl

    names = {"library": "internal_api", "threads": "num_threads", "version": "version"}
    loaded = threadpoolctl.threadpool_info()
    found = [{name: each.get(key) for name, key in names.items()} for each in loaded]
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
    limits = {"max_epsilon": rules.max_epsilon, "max_delta": rules.max_delta, "max_gamma": rules.max_gamma}
    facts = {"file": str(rules.file)} | {name: each for name, each in limits.items() if each is not None}
    required = ("require_budget", "require_sealed", "require_catalogue")
    return facts | {name: getattr(rules, name) for name in required}


def _checked(kind: str, broken: list[str]) -> dict[str, Any]:
    """Return where a database is, and whether it can be used."""
    try:
        url = stores.whereabouts(None) if kind == "store" else ledgers.whereabouts(None) or "memory"
    except PrivatizeError as error:
        if not isinstance(error, PolicyError):  # _policy() reports it
            broken.append(one_line(error))
        return {"where": None, "works": False, "state": one_line(error)}
    if url == "memory":
        return {"where": None, "works": True, "state": "in memory only, so it is lost when a process ends"}
    facts: dict[str, Any] = {"where": place(url)}
    try:
        named = ("estimates", "a store of estimates") if kind == "store" else ("budgets", "a ledger")
        facts |= {"works": True, "state": _try(url, *named)}
    except (DatabaseError, PrivatizeError, OSError) as error:
        facts |= {"works": False, "state": one_line(error)}
        broken.append(f"the {kind} {place(url)} cannot be used: {one_line(error)}")
    return facts


def _try(url: str, table: str, what: str) -> str:
    """Describe the state of a database, without changing it; raise if it cannot be written."""
    database, names = Database(url, []), set[str]()
    with contextlib.suppress(NotThere):
        names = tables(database, table, what)
    if database.path is not None:
        _check_rights(database.path)
    if names or database.postgres:
        with contextlib.closing(database), database.transaction() as run:  # takes the lock that writers take
            if "ledger_layout" in names:
                check(run("SELECT version FROM ledger_layout"))
            rights = [f"has_table_privilege('{table}', '{each}')" for each in ("SELECT", "INSERT", "UPDATE")]
            needed = rights if names else ["has_schema_privilege(current_schema(), 'CREATE')"]
            if database.postgres and not run(f"SELECT {' AND '.join(needed)}")[0][0]:
                raise DatabaseError("this account may not write there")
    empty = "reachable; the tables are" if database.postgres else "not there yet: it is"
    return "reachable and writable" if names else f"{empty} made when first needed"


def _check_rights(path: Path) -> None:
    """Raise if a file cannot be written, or if it is missing and cannot be created."""
    folder, there = next(each for each in path.parents if each.exists()), path.exists()
    if not os.access(folder, os.W_OK | os.X_OK) or (there and not os.access(path, os.R_OK | os.W_OK)):
        message = "it is read-only" if there else f"it does not exist, and {folder} cannot be written"
        raise DatabaseError(message)


# --- for people ------------------------------------------------------------------------------------


def _text(facts: dict[str, Any]) -> str:
    threads, policy_facts, many = facts["threads"], facts["policy"], len(facts["broken"])
    libraries = ", ".join(f"{each['library']}: {each['threads']}" for each in threads["libraries"])
    named = ", ".join(f"{name}={value or '-'}" for name, value in threads["environment"].items())
    cores = ", ".join(f"{name} {count:g}" for name, count in facts["cores"].items() if count is not None)
    rows: dict[str, str | list[str]] = {
        "privatize": facts["privatize"] or "not installed: run from its folder",
        "python": [f"{facts['python']}, {facts['platform']}", facts["executable"]],
        "needs": ", ".join(_needed(name, each) for name, each in facts["dependencies"].items()),
        "cores": cores,
        "workers": f"started by {facts['start_method']}",
        "threads": [f"{libraries or 'no BLAS is loaded'}; one thread each while a function runs", named],
        "policy": policy_facts.get("problem") or policy_facts["file"] or "none ([tool.privatize])",
        "store": _place(facts["store"]),
        "ledger": _place(facts["ledger"]),
        "extras": [_extra(name, each) for name, each in facts["extras"].items()],
    }
    verdict = "1 thing is broken" if many == 1 else f"{many} things are broken"
    return f"{labelled(rows)}\n{verdict if many else 'everything works'}"


def _extra(name: str, each: dict[str, Any]) -> str:
    state = f"{each['library']} {each['version']}" if each["present"] else each["install"]
    return f"{'yes' if each['present'] else 'no ':3s} {name:11s} {state:37s} {each['for']}"


def _needed(name: str, each: dict[str, Any]) -> str:
    if each["version"] is None:
        return f"{name} MISSING"
    return f"{name} {each['version']}" + ("" if each["fine"] else f" TOO OLD (>= {each['least']})")


def _place(facts: dict[str, Any]) -> list[str]:
    state = facts["state"] if facts["works"] else f"BROKEN: {facts['state']}"
    return [facts["where"] or "", state]
