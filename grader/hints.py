"""Hints for a verdict, one step further each: where to look, what to ask oneself, how it is done; never the solution first."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path

from grader import student
from grader.verdict import Outcome, Reason, Verdict

KERNELS_REF = Path(__file__).resolve().parent.parent / "kernels_ref"
GENERAL = Path(__file__).resolve().parent / "hints.toml"


def of(verdict: Verdict) -> list[str]:
    """Hints from the gentlest to the plainest. None where all is well; for a compile error the general ones alone."""
    if verdict.outcome is Outcome.passed or verdict.reason in (None, Reason.interrupted, Reason.grader_error):
        return []
    own = of_problem(verdict.problem)
    reasons = [stage.reason.value for stage in verdict.stages if stage.evidence and stage.reason] or [verdict.reason.value]
    if verdict.reason is Reason.not_attempted:
        return own.get("steps", [])
    general = _read(GENERAL)
    hints: list[str] = []
    for reason in reversed(reasons):  # what the checks found explains the values, so it comes first
        hints += general.get(reason, []) + own.get(reason, [])
    if verdict.stage("build").status == "passed":
        hints += own.get("steps", [])
    return list(dict.fromkeys(hints))


def of_problem(name: str) -> dict[str, list[str]]:
    """The hints.toml of a problem, the hints_backward.toml of a NAME_backward: "steps" towards the kernel, and hints by reason; empty where there is none."""
    source = student.source_of(name)
    return _read(KERNELS_REF / source.parent.name / ("hints_backward.toml" if source.name == "backward.py" else "hints.toml"))


@functools.cache
def _read(path: Path) -> dict[str, list[str]]:
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
