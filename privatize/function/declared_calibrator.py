"""The calibrator of a member of a catalogue: it finds what was declared, and never calibrates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from privatize.calibration.refuting import ProvenBound
from privatize.calibration.sensitivity import Sensitivity
from privatize.errors import DataError, SettingsError
from privatize.function.box import Box
from privatize.function.calibrator import Calibrator, Estimate
from privatize.function.question import Definition, Question
from privatize.identity.fingerprint import identity_of
from privatize.storage.estimates import Store


@dataclass(frozen=True, eq=False)
class Known:
    """A declared question.

    Attributes
    ----------
    label : str
        Its name.
    sensitivity : Sensitivity or None
        Its share of the joint estimate; None if it has a bound for all pairs.
    orders : frozenset of str
        The orders of sets when it was calibrated: see `Identity`.
    """

    label: str
    sensitivity: Sensitivity | None
    orders: frozenset[str]


class DeclaredCalibrator(Calibrator):
    """The estimates of one member, which were made together with those of all others.

    Parameters
    ----------
    catalogue : str
        The name of the catalogue.
    templates : dict
        Templates of P, which all members share.
    """

    def __init__(self, catalogue: str, templates: dict[Any, Any]) -> None:
        super().__init__()
        self.catalogue, self._templates = catalogue, templates
        self._declared: dict[str, Known] = {}  # by key
        self._charged_under = ""
        self._schema: Any = None

    def declare(self, known: dict[str, Known], charged: str, schema: Any) -> None:
        """Take over what was declared: questions by key, and the key that all answers are charged under."""
        self.clear()
        self._declared, self._charged_under, self._schema = known, charged, _json(schema)

    def recall(self, asked: Question, box: Box | None = None) -> Estimate:
        """Return the declared estimate, for questions that come through the catalogue only.

        It alone checks that the data is what was declared, and that answers are charged to its budgets.
        """
        name = asked.definition.name
        if asked.definition.catalogue != self.catalogue:
            raise SettingsError(f"""{name}() belongs to the catalogue {self.catalogue!r}, and its estimate
                holds for questions that are asked of that. Call the member: {name}(epsilon=0.1). To ask about
                other data, make a private function of the raw one: privatize(...)({name}.__wrapped__).""")
        return super().recall(asked, box)

    def _unremembered(self, asked: Question) -> Sensitivity | ProvenBound:
        raise self._changed(asked)

    def _remembered(
        self, asked: Question, key: str, orders: frozenset[str]
    ) -> tuple[Sensitivity | ProvenBound, Store | None]:
        known = self._declared.get(key)
        if known is None:
            raise self._changed(asked)
        if known.sensitivity is None:
            return super()._remembered(asked, key, orders)
        if known.orders != orders:
            raise self._changed(asked)
        return known.sensitivity, None

    def mark(self, asked: Question, found: Sensitivity | ProvenBound) -> str:
        """Return nothing: γ is charged under the key of the declaration, which has the answers."""
        del asked, found
        return ""

    def _charged(self, asked: Question, key: str) -> str:
        return key if asked.settings.plan is None else self._charged_under

    def check_same(self, label: str, definition: Definition, facts: list[Any]) -> None:
        """Refuse a question that brings its own bound and is not what was declared."""
        key = identity_of(facts, version=definition.settings.version)
        known = None if key is None else self._declared.get(key)
        if known is None or known.label != label:
            raise self._other(label)

    def _changed(self, asked: Question) -> Exception:
        """Return the error for a question that is not what was declared."""
        name = asked.definition.name
        if _json(asked.schema) != self._schema:
            return DataError(f"""The data that {name}() of the catalogue {self.catalogue!r} was asked about
                has another container, other columns or other dtypes than what was declared. Convert it before
                it is sealed; or declare a catalogue with people=People(..., like=...), a dataset without
                records that is like the data.""")
        return self._other(name)

    def _other(self, name: str) -> SettingsError:
        return SettingsError(f"""{name}() of the catalogue {self.catalogue!r} is not the function that was
            declared: its code, a global that it reads, an argument or a library has changed since then. An
            answer would rest on an estimate of something else. Put it back as it was; or declare a catalogue
            under another name, which costs its own gamma and must come before any answer about these
            people.""")


def _json(schema: Any) -> str:
    return json.dumps(schema and schema.to_json(), sort_keys=True, default=str)
