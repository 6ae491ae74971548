"""What is said when a private run ends without an answer: fixed texts, which hold nothing of the data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Advice"]


@dataclass(frozen=True)
class Advice:
    """What a function is called in messages, how to run it on public data, and usual causes of failures."""

    name: str
    trial: str
    causes: str = ""

    def about(self, text: str, places: list[str] | None = None) -> str:
        """Return one of the texts below for this function, with the first few of some places."""
        return (
            text.format(name=self.name, trial=self.trial, places=" and ".join((places or [])[:5]))
            + self.causes
        )


FAILED = (
    "{name}() failed on the private data. What went wrong is not shown, since it could give the data away. "
    "Try {trial} (with the same other arguments), which runs the raw function on public data from P."
)
LEFT = (
    "{name}() left something of its private run behind in {places}, where it could be read without noise, so "
    "nothing was released, and what was charged stays charged. What was there before was put back where that "
    "is possible. Keep what the function computes in its own variables and return it: work on copies "
    "(copy.deepcopy, sklearn.base.clone), and keep counters, caches, logs and buffers out of what it refers "
    "to."
)
UNFIT = (
    "{name}() returned, on the private data, something that is not finite or not of the structure that "
    "calibration saw, so nothing was released. Usual causes: a group or category that may be absent "
    "(observed=False, reindex(...), fillna(...)), rows that are dropped. Try {trial}, which runs the raw "
    "function on public data from P."
)
INTERNAL = (
    "{name}() could not bring the private data into the form that P draws, or handle its answer. What went "
    "wrong is not shown, since it could give the data away. Try {trial}, which runs the raw function on "
    "public data from P, and compare the two datasets."
)
CHANGED = (
    "What {name}() depends on (a global, an attribute, a closure, a method of a library) changed while it "
    "ran on the private data, so the noise that was calibrated may be too little. Nothing was released, and "
    "what was charged stays charged. Change such things between calls, not in other threads during a call, "
    "and keep counters, caches and fitted models out of what it refers to."
)
UNSTEADY = (
    "{name}() changes what it depends on whenever it runs: {places}. Something of a private run would be "
    "left behind there, where it could be read without noise, so it was not run on the private data, and "
    "nothing was spent. Keep what the function computes in its own variables and return it: work on copies "
    "(copy.deepcopy, sklearn.base.clone), and keep counters, caches, logs and buffers out of what it refers "
    "to. If another thread made the change, make it between calls."
)
REACHABLE = (
    "The private data can be reached from {0}() itself, through {1}, so it would take part in the "
    "calibration. Pass the data as an argument only. If what is there is public and only has the values of "
    "a private column, leave that column out of it, or sort it and round its numbers to fewer digits: a mere "
    "copy has the same values."
)
BOOTSTRAPPED = (
    "The dataset is the one that the sampler bootstraps, so P is not public: it would be made of the very "
    "records that the answer is to hide. Bootstrap from public data, or name P without looking at any."
)
