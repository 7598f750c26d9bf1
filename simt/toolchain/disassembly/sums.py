"""Sums of unknowns with constant factors, as which the integers of a program are written."""

from __future__ import annotations

# A constant, and pairs of an unknown and its factor, sorted.
Sum = tuple[int, tuple[tuple[int, int], ...]]

NOTHING: Sum = (0, ())
_SIGNED = 1 << 63


def constant(value: int) -> Sum:
    return _wrap(value), ()


def add(a: Sum, b: Sum, factor: int = 1) -> Sum:
    """Return a + factor * b."""
    terms = dict(a[1])
    for unknown, times in b[1]:
        terms[unknown] = terms.get(unknown, 0) + factor * times
    return _wrap(a[0] + factor * b[0]), tuple(sorted((u, t) for u, t in terms.items() if t))


def scale(a: Sum, factor: int) -> Sum:
    return _wrap(a[0] * factor), tuple((u, t * factor) for u, t in a[1]) if factor else ()


def _wrap(value: int) -> int:
    return (value + _SIGNED) % (2 * _SIGNED) - _SIGNED
