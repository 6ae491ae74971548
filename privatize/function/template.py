"""Template: records drawn from P, which private data is compared with and converted to."""

import functools
from typing import Any

import numpy as np

from privatize.calibration import capacity, streams
from privatize.data import records
from privatize.errors import SamplerError, SettingsError
from privatize.function.settings import Settings
from privatize.identity.declared import declare
from privatize.identity.fingerprint import identity_of
from privatize.samplers import draw
from privatize.samplers.base import traits_of
from privatize.samplers.families import Family, check_alike, members_of
from privatize.samplers.public import bootstraps
from privatize.samplers.tables import columns_of, values_of

_MANY = 1000  # records that are drawn to see what P draws


class Template:
    """Records of one P, in the container, with the names, dtypes and shapes that it draws."""

    def __init__(self, settings: Settings) -> None:
        self.sampler: Any = settings.sampler
        self._settings = settings
        self.traits = traits_of(self.sampler)
        # Whether P never changes and contains no function of the user's own.
        self.fixed = self.traits.immutable and self.traits.stable
        # Whether P may draw from public records, which must not be the private ones.
        self.draws_public = not self.fixed or any(bootstraps(self.sampler))
        self._support: Any = settings.support_to_clip
        self._known: tuple[str, Any] | None = None  # P's state, and the records that it drew
        self._law: dict[str, Any] = {}  # what ledgers have of P
        self._matched: tuple[Any, Any, Any] | None = None  # such records, a schema, and the target schema

    @property
    def support(self) -> Any:
        """What private records are clipped to, or None; a P of the user's own may have changed it."""
        return self._support if self.fixed else self._settings.support_to_clip

    def records(self) -> Any:
        """Return two records that P draws."""
        # A P with functions in it may draw something else later. If its state is unknown, it is drawn again.
        state = "stable" if self.traits.stable else identity_of(self.sampler)
        if self._known is None or state is None or self._known[0] != state:
            self._known = state or "", self._draw()
        return self._known[1]

    def sample(self, n: int, seed: Any) -> Any:
        """Draw n records, if they fit into memory; with a fresh seed if none is given."""
        sampler = members_of(self.sampler)[0]
        rng = streams.stream(streams.seed_or_fresh(seed), streams.PILOT)
        size = capacity.footprint(sampler, n, streams.stream(0, streams.PILOT))
        capacity.check("sample() draws", n, size, 2)
        return draw(sampler, n, rng)

    def _draw(self) -> Any:
        if not isinstance(self.sampler, Family):
            return self._drawn(self.sampler)
        drawn = list(map(self._drawn, self.sampler))
        check_alike(self.sampler, drawn)
        # To the last detail that code could read, such as the order of categories.
        nobody = np.zeros(0, dtype=np.intp)
        kinds = [identity_of(records.fresh(records.take(each, nobody)), version="") for each in drawn]
        if len(set(kinds)) > 1:
            raise SamplerError(f"""The members of {self.sampler!r} draw records of different kinds. Have them
                draw the same container, columns, dtypes and categories, in the same order.""")
        return drawn[0]

    def _drawn(self, sampler: Any) -> Any:
        many = draw(sampler, _MANY, streams.stream(0, streams.PILOT))
        few = draw(sampler, 2, streams.stream(0, streams.PILOT, 1))
        # All of a list: its first two records may have nothing but missing values.
        drawn = many if type(many) is list else records.head(many, 2)
        if not records.alike(drawn, few) or _code(drawn) != _code(few):
            raise SamplerError(f"""{sampler!r} draws records of different kinds: once {_code(drawn)},
                once {_code(few)}. Have it draw the same container, columns, dtypes and categories each time,
                whatever the values.""")
        if self.support is not None:
            self._check_support(sampler, many, drawn)
        return drawn

    def _check_support(self, sampler: Any, many: Any, drawn: Any) -> None:
        """Refuse a P whose own records would be converted to something else."""
        problem = records.misfit(drawn, self.support)
        if problem is not None:
            raise SettingsError(f"""domain='clip' clips private records to P's support, which {sampler!r} does
                not allow: {problem}. Or use domain='as-is', and clip inside the function.""")
        with np.errstate(all="ignore"):
            converted = records.convert(many, drawn, self.support)
        if not records.equal(converted, many):
            raise SamplerError(f"""{sampler!r} draws records outside its own support {self.support!r}, so
                private data would be converted to something else than what is calibrated. Widen the support,
                or clip what is drawn.""")

    def law(self) -> dict[str, Any]:
        """Return what a ledger has of P, as arguments of a charge; of a family, that of all its members."""
        if not self._law or not self.fixed:
            every, drawn = members_of(self.sampler), self.records()
            laws = list(map(declare, every))
            described = ", ".join(dict.fromkeys(law.description for law in laws))
            several = getattr(self.sampler, "code", "") or f"any_of({described})"
            self._law = {
                "declared": tuple(dict.fromkeys(law.digest for law in laws)),
                "described": several if len(laws) > 1 else described,
                "lossless": len(laws) == 1 and laws[0].lossless,
                "columns": tuple(dict.fromkeys(name for P in every for name in columns_of(P, drawn))),
                "values": tuple(dict.fromkeys(values for P in every for values in values_of(P))),
            }
        return self._law

    def match(self, schema: Any) -> Any:
        """Return the schema that drawn records are cast to for data of a schema; None if they fit."""
        drawn, known = self.records(), self._matched
        if known is None or known[0] is not drawn or known[1] != schema:
            cast = records.match(drawn, schema, self.support)
            made = None if cast is drawn else records.describe(cast)
            target = None if made is None or made == records.describe(drawn) else made
            known = self._matched = drawn, schema, target
        return known[2]

    def used(self, n: int) -> tuple[int, Any]:
        """Return how many of n records are used, and which: None for all, if P has no number of its own."""
        positions = None if self.traits.size is None else self.sampler.positions(n)
        return (n, None) if positions is None else (len(positions), positions)

    @functools.cached_property
    def libraries(self) -> frozenset[str]:
        """The packages that the objects which P draws come from."""
        try:
            return records.describe(self.records()).libraries
        except Exception:  # calibration reports what is wrong with P
            return frozenset({"numpy"})


def _code(drawn: Any) -> Any:
    """Return the schema of drawn records, without the lengths of their strings."""
    schema = records.describe(drawn).to_json()
    return "an array of text" if schema[0] == "array" and str(schema[1])[1:2] in ("U", "S") else schema
