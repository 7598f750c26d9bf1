"""Costly tests of many alike: `make test` runs a few of them, `make test-all` all."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import pytest

Value = TypeVar("Value")


def sample(values: Iterable[Value], kept: Sequence[str] | Callable[[Value], bool]) -> list:
    """Return the values as parameters, those that are not kept marked `slow`.

    kept: the values to keep, each of which must be among them, or a function that returns whether to keep one.
    """
    values = list(values)
    if not callable(kept):
        assert set(kept) <= set(values), set(kept) - set(values)
    keeps = kept if callable(kept) else set(kept).__contains__
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=() if keeps(value) else pytest.mark.slow)
        for value in values
    ]
