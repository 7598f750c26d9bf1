"""Grades one kernel submission: file in, verdict out."""

from __future__ import annotations

_HOME = {"grade": "judge", "Verdict": "verdict", "Reason": "verdict", "Status": "verdict", "Outcome": "verdict"}
__all__ = list(_HOME)


def __getattr__(name: str):
    """Load what is asked for on first use: the worker imports this package and must not get the judge with it."""
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f"grader.{_HOME[name]}"), name)
    raise AttributeError(f"module 'grader' has no attribute {name!r}")
