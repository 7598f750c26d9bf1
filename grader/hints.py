"""Hints for a verdict, one step further each: where to look, what to ask oneself, how it is done; never the solution first."""

from __future__ import annotations

import difflib
import functools
import math
import re
import tomllib
from pathlib import Path

from grader import student
from grader.verdict import Outcome, Reason, Status, Verdict

KERNELS_REF = Path(__file__).resolve().parent.parent / "kernels_ref"
GENERAL = Path(__file__).resolve().parent / "hints.toml"
FILES = ("hints.toml", "hints_backward.toml")
KEYS = ("steps", *(reason.value for reason in Reason))


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
    hints = [hint for hint in dict.fromkeys(hints) if not _elsewhere(hint, verdict)]
    return sorted(hints, key=lambda hint: _cases_apart(hint, verdict))


CASES = re.compile(r"If only (`[^`]+`(?:(?:,| and| or) `[^`]+`)*) fails?\b")
BLOCKS = {"Two blocks: ": r"\bwhich (?:it|thread \([\d, ]+\) of the same block)\b", "One block: ": r"\bwhich thread \([\d, ]+\) of block\b"}


def _cases_apart(hint: str, verdict: Verdict) -> float:
    """How many cases a hint names that did not fail, as in "If only `some NaN` fails": 0 for a hint of just these cases, which comes first.

    Infinity where it names no cases, or where others fail too.
    """
    said = CASES.match(hint)
    failed = {case.name for stage in verdict.stages for case in stage.cases if case.status is Status.failed}
    named = set(re.findall("`([^`]+)`", said[1])) if said else set()
    return len(named - failed) if failed and failed <= named else math.inf


def _elsewhere(hint: str, verdict: Verdict) -> bool:
    """Whether a hint is for threads of two blocks, and those that met are of one, or the other way round."""
    met = next((stage.message for stage in verdict.stages if stage.reason is Reason.race), "")
    return any(hint.startswith(begins) and re.search(pattern, met) for begins, pattern in BLOCKS.items())


def of_problem(name: str) -> dict[str, list[str]]:
    """The hints.toml of a problem, the hints_backward.toml of a NAME_backward: "steps" towards the kernel, and hints by reason; empty where there is none."""
    source = student.source_of(name)
    return _read(KERNELS_REF / source.parent.name / ("hints_backward.toml" if source.name == "backward.py" else "hints.toml"))


def check(folder: Path) -> None:
    """Raise student.ExerciseError for a problem's hints, in folder/NAME/, that would not reach a student as they are meant; OSError, too."""
    for path in sorted(file for name in FILES for file in folder.glob(f"*/{name}")):
        said = _trouble(path)
        if said:
            raise student.ExerciseError(f"{'/'.join(path.parts[-3:])}: {said}")


def _trouble(path: Path) -> str:
    """What is wrong with a file of hints, and what to do; empty where nothing is."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return f"line {line} is not UTF-8 text: save the file as UTF-8."
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return f'it is not TOML ({error}): each entry is a name and a list of texts, as in `steps = ["First hint.", "Second hint."]`.'
    for key, texts in found.items():
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1)
            return f"`{key}` is neither `steps` nor a verdict's reason" + (f": did you mean `{near[0]}`?" if near else ", as a report or its JSON names it.")
        if not _are_texts(texts):
            return f'`{key}` must be a list of texts, as in `{key} = ["First hint.", "Second hint."]`.'
    return ""


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value)


@functools.cache
def _read(path: Path) -> dict[str, list[str]]:
    """A file's hints as far as they are fit; none where it is missing or damaged, for its reader can't mend it: `grader student` tells."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig")) if path.is_file() else {}
    except (OSError, ValueError, RecursionError):  # ValueError: no UTF-8, no TOML
        return {}
    return {key: texts for key, texts in found.items() if _are_texts(texts)}
