"""`privatize store`: remembered estimates, listed, shown, forgotten, and carried elsewhere."""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from privatize.cli.reading import NotThere, reading
from privatize.cli.showing import Told, columns, duration, hide, one_line, place
from privatize.config.policy import configured
from privatize.errors import SettingsError
from privatize.storage.estimates import Store, StoreUnavailable, default_url

__all__ = ["exported", "forgot", "imported", "listed", "shown", "whereabouts"]

_SHORT = 10  # characters of a key that are shown


def whereabouts(given: str | None) -> str:
    """Return where estimates are remembered: where private functions look, unless told otherwise."""
    chosen = given if given is not None else configured("store", "default")
    if chosen == "default":
        chosen = default_url()
    url = "memory" if chosen in (None, "") else os.fspath(chosen)
    hide(url)
    return url


@contextlib.contextmanager
def _reading(url: str) -> Iterator[Store]:
    with reading(Store, url, "estimates", "a store of estimates") as store:
        yield store


@contextlib.contextmanager
def _writing(url: str) -> Iterator[Store]:
    store = Store(url)
    try:
        yield store
    except StoreUnavailable as error:
        raise SettingsError(f"{place(url)} cannot be written: {str(error).rstrip('.')}.") from error
    finally:
        store.database.close()


def _nothing(url: str) -> str:
    if url == "memory":
        return "nothing is remembered: PRIVATIZE_STORE is empty, so estimates end with their process"
    return f"nothing is remembered in {place(url)}"


def _entries(url: str) -> list[dict[str, Any]]:
    try:
        with _reading(url) as store:
            return store.entries()
    except NotThere:
        return []


def _facts(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry for programs."""
    facts = entry["facts"]
    plain = {name: entry[name] for name in ("key", "label", "n", "seed", "created", "pairs", "looks")}
    plain |= {"function": facts.get("function"), "refused": bool(entry["failure"])}
    plain |= {"finished": int(facts.get("checked", 0)), "seconds": facts.get("seconds")}
    return plain | ({"damaged": entry["damaged"]} if "damaged" in entry else {})


def _state(entry: dict[str, Any]) -> str:
    if "damaged" in entry:
        return "damaged"
    if entry["failure"]:
        return "refused"
    return "ready" if entry["facts"].get("checked") else "unfinished"


def listed(given: argparse.Namespace) -> Told:
    """List estimates."""
    url = whereabouts(given.store)
    entries = _entries(url)
    facts = {"store": place(url), "estimates": [_facts(entry) for entry in entries]}
    if not entries:
        return Told(_nothing(url), facts)
    rows = [("key", "function", "n", "pairs", "looks", "made (UTC)", "state")]
    for entry in entries:
        name = entry["facts"].get("function") or entry["label"]
        counts = (f"{entry['n']:,}", f"{entry['pairs']:,}", str(entry["looks"]))
        made = str(entry["created"]).replace("T", " ").removesuffix("Z")
        rows.append((_short(entry, entries), str(name), *counts, made, _state(entry)))
    many = "1 estimate" if len(entries) == 1 else f"{len(entries)} estimates"
    text = f"{columns(rows, right=(2, 3, 4))}\n{many} in {place(url)}"
    return Told(text, facts, 1 if any("damaged" in entry for entry in entries) else 0)


def _short(entry: dict[str, Any], entries: list[dict[str, Any]]) -> str:
    """Return the beginning of a key, as much as tells it from the others."""
    others = [str(other["key"]) for other in entries if other["key"] != entry["key"]]
    key, length = str(entry["key"]), _SHORT
    while length < len(key) and any(other.startswith(key[:length]) for other in others):
        length += 1
    return key[:length]


def _resolved(keys: list[str], entries: list[dict[str, Any]], url: str) -> list[dict[str, Any]]:
    """Return the estimates that keys, or beginnings of them, stand for."""
    found = []
    for given in keys:
        exact = [entry for entry in entries if entry["key"] == given]
        matching = exact or [entry for entry in entries if given and str(entry["key"]).startswith(given)]
        if not matching:
            raise SettingsError(
                f"There is no estimate {given!r} in {place(url)}: see `privatize store list`."
                if entries
                else f"There is no estimate {given!r}: {_nothing(url)}."
            )
        if len(matching) > 1:
            names = ", ".join([*(_short(entry, entries) for entry in matching[:4]), "..."][: len(matching)])
            raise SettingsError(
                f"{given!r} is the beginning of {len(matching)} keys ({names}): give more of it."
            )
        found.append(matching[0])
    return list({entry["key"]: entry for entry in found}.values())


def shown(given: argparse.Namespace) -> Told:
    """Show one estimate."""
    url = whereabouts(given.store)
    (entry,) = _resolved([given.key], _entries(url), url)
    facts = _facts(entry) | {"about": entry["facts"], "failures": entry["failure"], "store": place(url)}
    about = entry["facts"]
    versions = about.get("versions") or {}
    rows = [
        ("key", entry["key"]),
        ("function", about.get("function") or entry["label"]),
        ("n", f"{entry['n']:,}"),
        ("P", about.get("sampler", "-")),
        ("mechanism", about.get("mechanism", "-")),
        ("made", f"{entry['created']}, {', '.join(f'{k} {v}' for k, v in versions.items())}"),
        ("seed", entry["seed"]),
        ("pairs", _pairs(entry)),
    ]
    try:
        with _reading(url) as store:
            whole = store.read(entry["key"])
    except (ValueError, KeyError, NotThere) as error:
        facts["damaged"] = one_line(error)
        text = "\n".join(f"{name:10s} {value}" for name, value in rows)
        return Told(text, facts, 1, (f"{facts['damaged']}. It is made anew when it is next needed.",))
    facts["plans"] = []
    if whole.jitter:
        rows.append(("rounding", f"differs from run to run, by up to {whole.jitter:.3g}"))
    for at, plan in enumerate(whole.looks):
        gaps = whole.gaps[: plan.m]
        ready = len(gaps) == plan.m and not np.isnan(gaps).any()
        gap = float(np.partition(gaps, plan.k - 1)[plan.k - 1]) if ready else None
        told = {"bound": plan.bound, "gamma": plan.gamma, "m": plan.m, "k": plan.k, "rho": plan.rho}
        facts["plans"].append(told | {"gap": gap})
        value = "not all pairs are there" if gap is None else f"the k-th smallest gap is {gap:.6g}"
        rows.append(
            (
                "looks" if at == 0 else "",
                f"{plan.bound}, gamma={plan.gamma:g}, m={plan.m}, k={plan.k}: {value}",
            )
        )
    for at, failure in enumerate(entry["failure"].values()):
        rows.append(("refused" if at == 0 else "", f"{failure['kind']}: {one_line(failure['message'])}"))
    return Told("\n".join(f"{name:10s} {value}" for name, value in rows), facts)


def _pairs(entry: dict[str, Any]) -> str:
    about = entry["facts"]
    done, failed = int(about.get("checked", 0)), about.get("failed")
    words = [f"{entry['pairs']:,}"]
    words += [f"of which {done:,} belong to a finished calibration"] if done < entry["pairs"] else []
    words += [f"{failed} failed"] if failed else []
    words += [f"in {duration(about['seconds'])}"] if "seconds" in about else []
    return ", ".join(words)


def forgot(given: argparse.Namespace) -> Told:
    """Forget some estimates, those of a function, or all."""
    ways = [bool(given.keys), given.function is not None, given.all]
    if sum(ways) != 1:
        raise SettingsError("What to forget? Name keys, or --function NAME, or --all.")
    url = whereabouts(given.store)
    entries = _entries(url)
    if given.keys:
        gone = _resolved(given.keys, entries, url)
    elif given.all:
        gone = entries
    else:
        gone = [entry for entry in entries if _named(entry, given.function)]
        if not gone:
            names = sorted({str(entry["facts"].get("function") or entry["label"]) for entry in entries})
            known = f" There are estimates of {', '.join(names)}." if names else ""
            raise SettingsError(
                f"Nothing is remembered of {given.function!r} in {place(url)}.{known}"
                if entries
                else f"Nothing is remembered of {given.function!r}: {_nothing(url)}."
            )
    count = 0
    if gone:
        with _writing(url) as store:
            count = sum(store.forget(entry["key"]) for entry in gone)
    facts = {"store": place(url), "forgotten": [entry["key"] for entry in gone]}
    many = "1 estimate" if count == 1 else f"{count} estimates"
    return Told(f"forgot {many} in {place(url)}" if gone else _nothing(url), facts)


def _named(entry: dict[str, Any], name: str) -> bool:
    label = str(entry["facts"].get("function") or entry["label"])
    return name.replace(":", ".") == label or name == entry["label"]


def exported(given: argparse.Namespace) -> Told:
    """Write estimates to a new file, which is itself a store."""
    url = whereabouts(given.store)
    target = _file(given.file)
    if os.path.lexists(target):
        raise SettingsError(f"{target} is there already, and is not overwritten: name a new file.")
    if not target.parent.is_dir():
        raise SettingsError(f"There is no folder {target.parent} to write {target.name} into.")
    try:
        with (
            _reading(url) as store,
            tempfile.TemporaryDirectory(prefix=".privatize-", dir=target.parent) as folder,
        ):
            entries = store.entries()
            chosen = _resolved(given.keys, entries, url) if given.keys else entries
            made = Path(folder) / "export.db"
            with _writing(str(made)) as other:
                outcomes = _copied(store, other, chosen)
            if "copied" in outcomes.values():
                made.rename(target)
    except NotThere:
        raise SettingsError(f"There is nothing to export: {_nothing(url)}.") from None
    if not outcomes:
        raise SettingsError(f"There is nothing to export: {_nothing(url)}.")
    return _told(outcomes, {"store": place(url), "file": str(given.file)}, f"to {given.file}")


def imported(given: argparse.Namespace) -> Told:
    """Copy estimates from a file that is a store."""
    url = whereabouts(given.store)
    source = _file(given.file)
    if url == "memory":
        raise SettingsError("There is no store to import into: PRIVATIZE_STORE is empty. Pass --store FILE.")
    try:
        with _reading(str(source)) as store:
            entries = store.entries()
            with _writing(url) as other:
                outcomes = _copied(store, other, entries)
    except NotThere:
        why = "there is nothing in it" if source.exists() else "there is no such file"
        raise SettingsError(f"{given.file} cannot be imported: {why}.") from None
    return _told(outcomes, {"store": place(url), "file": str(given.file)}, f"to {place(url)}")


def _file(text: str) -> Path:
    if "://" in text and not text.startswith("sqlite:///"):
        raise SettingsError(
            f"{place(text)} is not a file. Export to a file, and import it with --store there."
        )
    return Path(text.removeprefix("sqlite:///")).expanduser().absolute()


def _copied(store: Store, other: Store, entries: list[dict[str, Any]]) -> dict[str, str]:
    """Copy estimates, each in a transaction; return what became of them."""
    outcomes: dict[str, str] = {}
    for entry in entries:
        key = str(entry["key"])
        try:
            outcomes[key] = store.copy_to(other, key)
        except (ValueError, KeyError) as error:
            outcomes[key] = one_line(error)
    return outcomes


_WORDS = {
    "copied": "copied",
    "there": "there already",
    "other": "left alone: another one, with another seed, is there under the same key",
}


def _told(outcomes: dict[str, str], facts: dict[str, Any], where: str) -> Told:
    counts = Counter(outcome for outcome in outcomes.values() if outcome in _WORDS)
    damaged = {key: outcome for key, outcome in outcomes.items() if outcome not in _WORDS}
    lines = []
    for outcome, words in _WORDS.items():
        if counts[outcome] or outcome == "copied":
            many = f"{counts[outcome]} estimate{'' if counts[outcome] == 1 else 's'}"
            lines.append(f"{many} {words}" + (f" {where}" if outcome == "copied" else ""))
    problems = tuple(f"skipped: {text}" for text in damaged.values())
    told = facts | {name: counts[name] for name in _WORDS} | {"damaged": damaged, "estimates": outcomes}
    return Told("\n".join(lines), told, 1 if damaged else 0, problems)
