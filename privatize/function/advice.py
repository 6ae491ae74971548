"""Messages for a private run that ends without an answer. They are fixed and contain nothing of the data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """A function's name in messages, how to run it on public data, and usual causes of failures."""

    name: str
    trial: str
    causes: str = ""

    def about(self, message: str, places: list[str] | None = None) -> str:
        """Fill in one of the messages below for this function, with at most five of the places."""
        shown = " and ".join((places or [])[:5])
        return message.format(name=self.name, trial=self.trial, places=shown) + self.causes


_HIDDEN = "What went wrong is not shown, since it could give the data away."
_TRY = "Try {trial}, which runs the raw function on public data from P"
_KEEP = (
    "Keep what the function computes in its own variables and return it: work on copies (copy.deepcopy, "
    "sklearn.base.clone), and keep counters, caches, logs and buffers out of what it refers to."
)
FAILED = f"{{name}}() failed on the private data. {_HIDDEN} {_TRY}, with the same other arguments."
INTERNAL = (
    f"{{name}}() could not convert the private data to the form that P draws, or handle its answer. "
    f"{_HIDDEN} {_TRY}, and compare the two datasets."
)
UNREADABLE = (
    f"{{name}}() could not convert the private data to the form that P draws, or count what is in it. "
    f"{_HIDDEN} What was charged stays charged. Compare the data with what P draws: its container, its "
    f"columns, and the types of their values."
)
BEYOND = (
    "{name}() found no factor up to {factor} that is large enough: in too many blocks of real people the "
    "function fails, or one person moves it far more than P lets them. What was charged stays charged. "
    "Choose or learn a P that is nearer to the people, have the function return a number for small datasets, "
    "too, or use mechanism=Blocks(low, high), which needs no P."
)
ELSEWHERE = (
    "{}() {} in the processes in which a check evaluates blocks of people, so that nothing would be checked. "
    "Nothing was spent. Does it depend on the order of a set of strings, which is another one there (use "
    "sorted(...)), on files that it writes, or on threads or programs that it starts (use n_jobs=1)? Keep "
    "that out of it."
)
UNFIT = (
    f"{{name}}() returned, on the private data, something that is not finite or not of the structure that "
    f"calibration saw, so nothing was released. Usual causes: a group or category that may be absent "
    f"(observed=False, reindex(...), fillna(...)), rows that are dropped. {_TRY}."
)
LEFT = (
    f"{{name}}() left something of its private run behind in {{places}}, where it could be read without "
    f"noise, so nothing was released, and what was charged stays charged. What was there before was put back "
    f"where that is possible. {_KEEP}"
)
UNSTEADY = (
    f"{{name}}() changes what it depends on whenever it runs: {{places}}. Something of a private run would "
    f"be left behind there, where it could be read without noise, so it was not run on the private data, and "
    f"nothing was spent. {_KEEP} If another thread made the change, make it between calls."
)
CHANGED = (
    "What {name}() depends on (a global, an attribute, a closure, a method of a library) changed while it "
    "ran on the private data, so the noise that was calibrated may be too little. Nothing was released, and "
    "what was charged stays charged. Change such things between calls, not in other threads during a call, "
    "and keep counters, caches and fitted models out of what it refers to."
)
REACHABLE = (
    "The private data can be reached from {0}() itself, through {1}. It would take part in the calibration, "
    "or in the answer without counting for its bound. Pass the data as an argument only. If what is there is "
    "public and merely has the values of a private column, leave that column out of it, or sort it and round "
    "its numbers to fewer digits, so that it is not taken for a copy."
)
BOOTSTRAPPED = (
    "The dataset is the one that the sampler bootstraps, so P is not public: it would be made of the very "
    "records that the answer is to hide. Bootstrap from public data, or learn P privately: "
    "privatize.learn(data, within=..., epsilon=...)."
)
