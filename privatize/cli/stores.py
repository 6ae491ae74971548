"""`privatize store`: list, show, forget, export and import remembered estimates."""

import argparse
import contextlib
import functools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from privatize.cli.command import Argument, Command, Outcome, command
from privatize.cli.importing import find
from privatize.cli.reading import NotThere, reading
from privatize.cli.showing import columns, hide, labelled, moment, one_line, place
from privatize.display.figures import counted, duration
from privatize.errors import PrivatizeError, SettingsError
from privatize.storage.database import DatabaseError
from privatize.storage.estimates import Entry, Store
from privatize.storage.places import store_place

_SHORT = 10  # characters of a key that are shown
_WHERE = "a path, sqlite:///... or postgresql://... (default: the one that private functions use)"
_STORE = Argument("--store", metavar="URL", help=_WHERE)
_KEY = "a key, or the beginning of one, as `store list` shows"


def whereabouts(given: str | None) -> str:
    """Return where the store is, by default the one that private functions use."""
    url = store_place("default" if given is None else given or None)
    hide(url)
    return url


_reading = functools.partial(reading, Store, table="estimates", what="a store of estimates")


@contextlib.contextmanager
def _writing(url: str) -> Iterator[Store]:
    store = Store(url)
    try:
        yield store
    except DatabaseError as error:
        raise SettingsError(f"{place(url)} cannot be written: {str(error).rstrip('.')}.") from error
    finally:
        store.database.close()


def _nothing(url: str) -> str:
    if url == "memory":
        return "nothing is remembered: PRIVATIZE_STORE is empty, so estimates are lost with their process"
    return f"nothing is remembered in {place(url)}"


def _entries(url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with contextlib.suppress(NotThere), _reading(url) as store:
        found = store.entries()
    return found


def _name(entry: dict[str, Any]) -> str:
    return str(entry["facts"].get("function") or entry["label"])


# --- list and show ---------------------------------------------------------------------------------


@command("list", _STORE)
def show_all(given: argparse.Namespace) -> Outcome:
    """List what is remembered, the newest first.

    privatize store list
    """
    url = whereabouts(given.store)
    entries = _entries(url)
    facts = {"store": place(url), "estimates": [_facts(entry) for entry in entries]}
    if not entries:
        return Outcome(_nothing(url), facts)
    rows = [("key", "function", "n", "pairs", "looks", "made (UTC)", "state")]
    families = {key: _short(entry, entries) for entry in entries for key in _members(entry)}
    for entry in entries:
        counts = (f"{entry['n']:,}", f"{_measured(entry):,}", str(entry["looks"]))
        known, state = (_short(entry, entries), _name(entry)), _state(entry)
        if state == "ready" and entry["key"] in families:  # of P: whether it is refused depends on all
            state = f"member of {families[entry['key']]}"
        rows.append((*known, *counts, moment(entry["created"]), state))
    text = f"{columns(rows, right=(2, 3, 4))}\n{_counted(entries)} in {place(url)}"
    return Outcome(text, facts, 1 if any("damaged" in entry for entry in entries) else 0)


def _facts(entry: dict[str, Any]) -> dict[str, Any]:
    """Return facts about an entry for JSON."""
    facts = entry["facts"]
    found = {name: entry[name] for name in ("key", "label", "n", "seed", "created", "pairs", "looks")}
    found |= {"function": facts.get("function"), "refused": bool(entry["failure"]), "state": _state(entry)}
    found |= {"finished": int(facts.get("checked", 0)), "seconds": facts.get("seconds")}
    return found | ({"damaged": entry["damaged"]} if "damaged" in entry else {})


def _state(entry: dict[str, Any]) -> str:
    """Say what became of it: it is ready, a refused trial, unfinished or damaged, or ready for some plans."""
    done, refused = bool(entry["facts"].get("checked")), len(entry["failure"])
    if "damaged" in entry:
        return "damaged"
    if not done:
        return "refused" if refused else "unfinished"
    return f"ready, {refused} refused" if refused else "ready"


def _members(entry: dict[str, Any]) -> list[str]:
    """Return the keys of the members, of an estimate for a family of P."""
    return [str(key) for key in entry["facts"].get("members", ())]


def _counted(entries: list[dict[str, Any]], more: int = 0) -> str:
    """Say how many estimates, refused trials and members of families there are; `more` are members, too."""
    listed = {key for entry in entries for key in _members(entry)}
    refused = sum(_state(entry) == "refused" for entry in entries)
    members = sum(entry["key"] in listed and _state(entry) != "refused" for entry in entries)
    others = len(entries) - refused - members
    counts = {"estimate": others, "refused trial": refused, "member": members + more}
    words = [counted(count, noun) for noun, count in counts.items() if count]
    text = " and ".join(filter(None, (", ".join(words[:-1]), words[-1] if words else "")))
    return f"{text} of families" if members + more else text


def _measured(entry: dict[str, Any]) -> int:
    """Return how many pairs were measured; a bound of the user's own was tried on many, and one gap kept."""
    return int(entry["facts"].get("proven", {}).get("tried", entry["pairs"]))


def _short(entry: dict[str, Any], entries: list[dict[str, Any]]) -> str:
    """Return the beginning of a key, long enough to differ from all others."""
    key, length = str(entry["key"]), _SHORT
    while length < len(key) and sum(other["key"].startswith(key[:length]) for other in entries) > 1:
        length += 1
    return key[:length]


def _resolved(keys: list[str], entries: list[dict[str, Any]], url: str) -> list[dict[str, Any]]:
    """Return the estimates that keys, or beginnings of them, stand for."""
    found = {}
    for given in keys:
        exact = [entry for entry in entries if entry["key"] == given]
        matching = exact or [entry for entry in entries if given and entry["key"].startswith(given)]
        if not matching:
            where = f" in {place(url)}: see `privatize store list`" if entries else f": {_nothing(url)}"
            raise SettingsError(f"There is no estimate {given!r}{where}.")
        if len(matching) > 1:
            shown = sorted(_short(entry, entries) for entry in matching)[:4]
            names = ", ".join([*shown, "..."][: len(matching)])
            many = f"is the beginning of {len(matching)} keys ({names})"
            raise SettingsError(f"{given!r} {many}: give more of it.")
        found[matching[0]["key"]] = matching[0]
    return list(found.values())


@command("show", _STORE, Argument("key", metavar="KEY", help=_KEY))
def show_one(given: argparse.Namespace) -> Outcome:
    """Show one estimate.

    privatize store show 3f9a
    """
    url = whereabouts(given.store)
    (entry,) = _resolved([given.key], _entries(url), url)
    about = entry["facts"]
    facts = _facts(entry) | {"about": about, "failures": entry["failure"], "store": place(url)}
    versions = ", ".join(f"{name} {version}" for name, version in (about.get("versions") or {}).items())
    rows: dict[str, str | list[str]] = {
        "key": entry["key"],
        "function": _name(entry),
        "n": f"{entry['n']:,}",
        "P": about.get("sampler", "-"),
        "members": _members(entry),
        "mechanism": about.get("mechanism", "-"),
        "made": f"{entry['created']}, {versions}",
        "seed": str(entry["seed"]),
        "pairs": _pairs(entry),
        "state": _state(entry),
    }
    try:
        with _reading(url) as store:
            full = store.read(entry["key"])
    except (ValueError, KeyError, NotThere) as error:
        facts["damaged"] = one_line(error)
        problem = f"{facts['damaged']}. It is made again when it is next needed."
        return Outcome(labelled(rows), facts, 1, (problem,))
    facts["plans"] = _plans(full)
    rows["rounding"] = f"differs from run to run, by up to {full.jitter:.3g}" if full.jitter else ""
    rows["looks"] = list(map(_look, facts["plans"]))
    rows["refused"] = [f"{each['kind']}: {one_line(each['message'])}" for each in entry["failure"].values()]
    return Outcome(labelled(rows), facts)


def _look(plan: dict[str, Any]) -> str:
    gap = plan["gap"]
    value = "not all pairs were measured" if gap is None else f"the k-th smallest gap is {gap:.6g}"
    return f"{plan['bound']}, gamma={plan['gamma']:g}, m={plan['m']}, k={plan['k']}: {value}"


def _plans(entry: Entry) -> list[dict[str, Any]]:
    """Return the plans that were read from an estimate's gaps, and the gap that each of them takes."""
    found = []
    for plan in entry.looks:
        gaps = entry.gaps[: plan.m]
        ready = len(gaps) == plan.m and not np.isnan(gaps).any()
        gap = float(np.partition(gaps, plan.k - 1)[plan.k - 1]) if ready else None
        facts = {"bound": plan.bound, "gamma": plan.gamma, "m": plan.m, "k": plan.k, "rho": plan.rho}
        found.append(facts | {"gap": gap})
    return found


def _pairs(entry: dict[str, Any]) -> str:
    about = entry["facts"]
    done, failed = int(about.get("checked", 0)), about.get("failed")
    if proven := about.get("proven"):
        return f"{proven['tried']:,}, which do not refute the bound {proven['given']:g}"
    words = [f"{entry['pairs']:,}"]
    words += [f"of which {done:,} belong to a finished calibration"] if done < entry["pairs"] else []
    words += [f"{failed} failed"] if failed else []
    words += [f"in {duration(about['seconds'])}"] if "seconds" in about else []
    return ", ".join(words)


# --- forget ----------------------------------------------------------------------------------------


@command(
    "forget",
    _STORE,
    Argument("keys", nargs="*", metavar="KEY", help=_KEY),
    Argument("--function", metavar="NAME", help="all of a function: its name, or module:function"),
    Argument("--all", action="store_true", help="everything in this store"),
)
def forget(given: argparse.Namespace) -> Outcome:
    """Forget estimates, so that they are made again.

    privatize store forget 3f9a 77c1
    privatize store forget --function app.stats:average_age
    """
    if [bool(given.keys), given.function is not None, given.all].count(True) != 1:
        raise SettingsError("What to forget? Pass keys, or --function NAME, or --all.")
    url = whereabouts(given.store)
    entries = _entries(url)
    chosen = entries
    if given.keys:
        chosen = _resolved(given.keys, entries, url)
    elif not given.all:
        chosen = _of_function(given.function, entries, url)
    count = 0
    if chosen:
        with _writing(url) as store:
            count = sum(store.forget(entry["key"]) for entry in chosen)
    facts = {"store": place(url), "forgotten": [entry["key"] for entry in chosen]}
    more = max(0, count - len(chosen))  # members that are forgotten with their family
    text = f"forgot {_counted(chosen, more)} in {place(url)}" if chosen else _nothing(url)
    return Outcome(text, facts)


def _of_function(name: str, entries: list[dict[str, Any]], url: str) -> list[dict[str, Any]]:
    """Return the estimates of a function, or refuse one that has none."""
    label = name.replace(":", ".")
    named = [entry for entry in entries if label == _name(entry) or name == entry["label"]]
    found = named or (_found(name, entries) if entries else [])
    if not found:
        names = ", ".join(sorted(set(map(_name, entries))))
        where = f" in {place(url)}. There are estimates of {names}" if entries else f": {_nothing(url)}"
        raise SettingsError(f"Nothing is remembered of {name!r}{where}.")
    return found


def _found(name: str, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the estimates of a function that is named as for `estimate`: by a file, or by an object."""
    try:
        label = find(name)[1].definition.label
    except (PrivatizeError, ImportError):  # it may be gone, or never have been
        return []
    return [entry for entry in entries if _name(entry) == label]


# --- export and import -----------------------------------------------------------------------------


@command(
    "export",
    _STORE,
    Argument("file", metavar="FILE", help="a new file"),
    Argument("keys", nargs="*", metavar="KEY", help="these only (default: all)"),
)
def export(given: argparse.Namespace) -> Outcome:
    """Write estimates to a new file, which is itself a store.

    privatize store export estimates.db
    privatize store export --store postgresql://host/db team.db 3f9a
    """
    url, target, outcomes = whereabouts(given.store), _file(given.file), {}
    if os.path.lexists(target):
        raise SettingsError(f"{target} exists already, and is not overwritten: name a new file.")
    if not target.parent.is_dir():
        raise SettingsError(f"There is no folder {target.parent} to write {target.name} into.")
    with tempfile.TemporaryDirectory(prefix=".privatize-", dir=target.parent) as folder:
        made = Path(folder) / "export.db"
        with contextlib.suppress(NotThere):
            outcomes = _copy(url, str(made), given.keys)
        if "copied" in outcomes.values():
            made.rename(target)
    if not outcomes:
        raise SettingsError(f"There is nothing to export: {_nothing(url)}.")
    return _outcome(outcomes, url, given.file, given.file)


@command("import", _STORE, Argument("file", metavar="FILE", help="a store, as `store export` writes it"))
def import_(given: argparse.Namespace) -> Outcome:
    """Copy estimates from a file; those that are there already stay as they are.

    privatize store import estimates.db
    """
    url, source = whereabouts(given.store), _file(given.file)
    if url == "memory":
        raise SettingsError("There is no store to import into: PRIVATIZE_STORE is empty. Pass --store FILE.")
    try:
        outcomes = _copy(str(source), url, [])
    except NotThere:
        why = "there is nothing in it" if source.exists() else "there is no such file"
        raise SettingsError(f"{given.file} cannot be imported: {why}.") from None
    return _outcome(outcomes, url, given.file, place(url))


def _file(text: str) -> Path:
    if "://" in text and not text.startswith("sqlite:///"):
        raise SettingsError(f"""{place(text)} is not a file. Export to a file, and import it with --store
            there.""")
    return Path(text.removeprefix("sqlite:///")).expanduser().absolute()


def _copy(source: str, target: str, keys: list[str]) -> dict[str, str]:
    """Copy all estimates, or those with these keys, each in a transaction; return the outcome of each."""
    outcomes: dict[str, str] = {}
    with _reading(source) as store, _writing(target) as other:
        entries = store.entries()
        for entry in _resolved(keys, entries, source) if keys else entries:
            try:
                outcomes[entry["key"]] = store.copy_to(other, entry["key"])
            except (ValueError, KeyError) as error:
                outcomes[entry["key"]] = one_line(error)
    return outcomes


_OTHER = "not copied: another one, with another seed, is there under the same key"


def _outcome(outcomes: dict[str, str], url: str, file: str, target: str) -> Outcome:
    words = {"copied": f"copied to {target}", "there": "there already", "other": _OTHER}
    counts = {word: list(outcomes.values()).count(word) for word in words}
    damaged = {key: outcome for key, outcome in outcomes.items() if outcome not in words}
    shown = [(counts[word], text) for word, text in words.items() if counts[word] or word == "copied"]
    facts = {"store": place(url), "file": file, **counts, "damaged": damaged, "estimates": outcomes}
    problems = tuple(f"skipped: {message}" for message in damaged.values())
    text = "\n".join(f"{counted(count, 'estimate')} {text}" for count, text in shown)
    return Outcome(text, facts, 1 if damaged else 0, problems)


_ABOUT = "List, show, forget, export and import remembered estimates.\n\nprivatize store list"
GROUP = Command("store", _ABOUT, actions=(show_all, show_one, forget, export, import_))
