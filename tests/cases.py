"""Many cases in one test, where `pytest.mark.parametrize` would make a hundred tests of one line each."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from privatize.storage.estimates import open_store
from tests.left_out import left_out


def for_each(names: str | tuple[str, ...], cases: Iterable[Any], ids: Any = None) -> Callable[[Any], Any]:
    """Run a test once for each case, as `pytest.mark.parametrize` does; a note names the case that fails.

    Every case begins without remembered estimates. A case may skip itself. Fixtures are set up
    once for all cases, so this is for tests whose cases leave nothing behind.

    Examples
    --------
    >>> @for_each("x", [1, 2])
    ... def test_positive(x):
    ...     assert x > 0
    >>> test_positive()
    """
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    listed = list(cases)

    def decorate(test: Any) -> Any:
        @functools.wraps(test)
        def loop(*args: Any, **kwargs: Any) -> None:
            skipped: list[BaseException] = []
            for number, case in enumerate(listed):
                open_store("memory").forget()
                values = (case,) if isinstance(names, str) and len(parameters) == 1 else tuple(case)
                try:
                    test(*args, **kwargs, **dict(zip(parameters, values, strict=True)))
                except pytest.skip.Exception as error:
                    skipped.append(error)
                except BaseException as error:
                    named = ids[number] if isinstance(ids, list) else values
                    error.add_note(f"case {number} of {len(listed)}, {parameters} = {named!r}")
                    raise
            if len(skipped) == len(listed):
                raise skipped[0]
            if skipped:
                left_out(os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0])

        signature = inspect.signature(test)
        rest = [value for name, value in signature.parameters.items() if name not in parameters]
        loop.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return loop

    return decorate
