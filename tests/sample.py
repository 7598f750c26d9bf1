"""Costly tests of many alike: each time a few of them, all of them with `make test-long`."""

from collections.abc import Callable, Iterable, Sequence

import pytest


def sample(values: Iterable, kept: Sequence[str] | Callable[[object], bool]) -> list:
    """The values as parameters, those that are not kept marked `long`. kept: their names, each of which must be there, or what says so."""
    values = list(values)
    if not callable(kept):
        assert set(kept) <= set(values), set(kept) - set(values)
    keeps = kept if callable(kept) else set(kept).__contains__
    return [pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=() if keeps(value) else pytest.mark.long) for value in values]
