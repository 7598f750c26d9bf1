"""Grades one kernel submission: file in, verdict out."""

from __future__ import annotations

_HOME = {"grade": "judge", "Verdict": "verdict", "Reason": "verdict", "Status": "verdict", "Outcome": "verdict"}
_HOME |= {"check": "desk", "profile": "profiling"}
_CALLED = ("progress", "compare")  # modules that are functions too, as importing one puts it in the function's place
__all__ = [*_HOME, *_CALLED]


def __getattr__(name: str):
    """Load what is asked for on first use: the worker imports this package and must not get the judge with it."""
    from importlib import import_module

    if name in _CALLED:
        return import_module(f"grader.{name}")
    if name in _HOME:
        return getattr(import_module(f"grader.{_HOME[name]}"), name)
    raise AttributeError(f"module 'grader' has no attribute {name!r}")


def load_ipython_extension(shell) -> None:
    """`%load_ext grader`: the cell magic %%cuda."""
    from grader import magic

    shell.register_magics(magic.CudaMagics)
