"""Choose the hints for a verdict, from where to look to what to do."""

from __future__ import annotations

import functools
import math
import re
import tomllib
from pathlib import Path

from grader.paths import KERNELS_REF
from grader.problems import exercises
from grader.verdict import Outcome, Reason, Status, Verdict

GENERAL = Path(__file__).with_name("hints.toml")


def of(verdict: Verdict) -> list[str]:
    """Return hints, each more explicit than the one before; none for a pass, general ones for a compile error."""
    if verdict.outcome is Outcome.passed or verdict.reason in (None, Reason.interrupted, Reason.grader_error):
        return []
    own = of_problem(verdict.problem)
    reasons = [stage.reason.value for stage in verdict.stages if stage.evidence and stage.reason] or [
        verdict.reason.value
    ]
    if verdict.reason is Reason.not_attempted:
        return own.get("steps", [])
    general = _read(GENERAL)
    hints: list[str] = []
    for reason in reversed(reasons):  # a finding of the checks explains the values, so its hints come first
        hints += general.get(reason, []) + own.get(reason, [])
    if verdict.stage("build").status == "passed":
        hints += own.get("steps", [])
    hints = [hint for hint in dict.fromkeys(hints) if _fits(hint, verdict) and not _elsewhere(hint, verdict)]
    return sorted(hints, key=lambda hint: _cases_apart(hint, verdict))


_NAMES = "(`[^`]+`(?:(?:,| and| or) `[^`]+`)*)"
# Conditions with which a hint begins: it is shown only where the known cases agree with them.
CASES = re.compile(rf"If only {_NAMES} fails?:")
PASSING = re.compile(rf"If {_NAMES} pass(?:es)?:")
SOME = re.compile("If only some cases fail:")
GRADIENT = re.compile(rf"If the gradient of {_NAMES} is wrong:")
# For a reason, hints that begin so are left out where its message has such a part: they are for the other kind of it.
ELSEWHERE = (
    (Reason.no_model_new, "Is a class named", r"\bis a notebook\b"),
    (Reason.no_model_new, "In the notebook", r"^(?!.*\bis a notebook\b)"),
    (Reason.race, "Two blocks: ", r"\bwhich (?:it|thread \([\d, ]+\) of the same block)\b"),
    (Reason.race, "One block: ", r"\bwhich thread \([\d, ]+\) of block\b"),
    (Reason.int_overflow, "What does the line multiply", r"\bCompute it in\b"),
    (Reason.int_overflow, "`int` ends at", r"^(?!.*\bCompute it in\b)"),
    (Reason.exception, "Compare the named line", r"\bSystemExit\b"),
    (Reason.exception, "`sys.exit()` ends", r"(?s)^(?!.*\bSystemExit\b)"),
    (Reason.compile_error, "Read the marked line", r"\bPYBIND11_MODULE\b"),
    (Reason.compile_error, "`functions=` makes", r"(?s)^(?!.*\bPYBIND11_MODULE\b)"),
    (Reason.missing_gradient, "`backward` returns one value", r"\bcarries no gradient\b"),
    (Reason.missing_gradient, "Autograd does not see", r"^(?!.*\bcarries no gradient\b)"),
)


def find_names(condition: re.Match[str]) -> set[str]:
    """Return the cases or gradients that a hint's condition names."""
    return set(re.findall("`([^`]+)`", condition[1]))


def _fits(hint: str, verdict: Verdict) -> bool:
    """Return whether what is known of the verdict's cases agrees with the hint's condition, if it has one."""
    failed, passed = _find_cases(verdict)
    if match := CASES.match(hint):
        return bool(failed) and failed <= find_names(match)
    if match := PASSING.match(hint):
        return bool(failed) and find_names(match) <= passed
    if SOME.match(hint):
        return bool(failed and passed)
    if match := GRADIENT.match(hint):
        return any(one.gradient in find_names(match) for stage in verdict.stages for one in stage.evidence)
    return True


def _find_cases(verdict: Verdict) -> tuple[set[str], set[str]]:
    """Return the names of the cases that failed in a stage, and of those that passed in all stages with such cases."""
    stages = [stage.cases for stage in verdict.stages if any(case.status is Status.failed for case in stage.cases)]
    failed = {case.name for cases in stages for case in cases if case.status is Status.failed}
    passed = {case.name for cases in stages for case in cases if case.status is Status.passed}
    return failed, passed - failed


def _cases_apart(hint: str, verdict: Verdict) -> float:
    """Return how many cases a hint names that did not fail, as in "If only `some NaN` fails:".

    0 for a hint on just the failing cases, which comes first; infinity where it names no cases that fail.
    """
    match = CASES.match(hint)
    return len(find_names(match) - _find_cases(verdict)[0]) if match else math.inf


def _elsewhere(hint: str, verdict: Verdict) -> bool:
    """Return whether a hint is for another kind of the failure: a race within a block or of two blocks, say."""
    messages = {stage.reason: stage.message for stage in verdict.stages}
    return any(
        hint.startswith(begins) and reason in messages and re.search(pattern, messages[reason])
        for reason, begins, pattern in ELSEWHERE
    )


def of_problem(name: str) -> dict[str, list[str]]:
    """Return an exercise's own hints: "steps" towards the kernel, and hints by reason; empty where there are none.

    They come from the problem's hints.toml, or hints_backward.toml for a NAME_backward.
    """
    source = exercises.source_of(name)
    return _read(
        KERNELS_REF / source.parent.name / ("hints_backward.toml" if source.name == "backward.py" else "hints.toml")
    )


def explain_pass(name: str) -> str:
    """Return why a right kernel for an exercise works, `passed` in its hints; empty where nothing is given."""
    return " ".join(of_problem(name).get("passed", []))


def are_texts(value: object) -> bool:
    """Return whether an entry of a hints file is a list of texts that are not blank."""
    return isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value)


@functools.cache
def _read(path: Path) -> dict[str, list[str]]:
    """Return a file's valid hints; none if the file is missing or damaged.

    The student who reads the hints cannot fix the file; `grader student` reports it to the author.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig")) if path.is_file() else {}
    except (OSError, ValueError, RecursionError):  # ValueError: no UTF-8, no TOML
        return {}
    return {key: texts for key, texts in found.items() if are_texts(texts)}
