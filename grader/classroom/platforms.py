"""Write one graded submission as the files that Gradescope and Classroom 50 read.

Gradescope: https://gradescope-autograders.readthedocs.io/en/latest/specs/. Classroom 50: the schema
classroom50/result/v1 of https://github.com/foundation50/classroom50 (schemas/result-v1.schema.json); its runner gives
the identity of the submission in environment variables.
"""

from __future__ import annotations

import datetime
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.classroom.course import Course, Points, Speed
from grader.classroom.exports import ExportError
from grader.classroom.scores import Part, score
from grader.reports.terminal import clean, show
from grader.verdict import StageName, Status, Verdict

VISIBILITIES = ("visible", "after_due_date", "after_published", "hidden")  # of Gradescope
WIDTH = 100  # columns of a report
MOST_OUTPUT = 60_000  # characters of a report
RESULT_SCHEMA = "classroom50/result/v1"
# Field of Classroom 50's result.json -> the variable of its runner that holds it.
IDENTITY = {
    "classroom": "CLASSROOM",
    "assignment": "ASSIGNMENT",
    "assignment_type": "ASSIGNMENT_TYPE",
    "owner": "OWNER",
    "submission": "SUBMISSION_TAG",
    "commit": "COMMIT_URL",
    "release": "RELEASE_URL",
    "review": "REVIEW_URL",
}
FALLBACKS = {"OWNER": "USERNAME", "REVIEW_URL": "COMMIT_URL"}  # variables of older runners


@dataclass(frozen=True)
class Result:
    """What became of one problem. verdict: None if there is none, and `why` says in a sentence why.

    machine: whether the machine is at fault, not the submission.
    """

    problem: str
    verdict: Verdict | None
    why: str = ""
    machine: bool = False


def list_possible(points: Points, speed: Speed) -> dict[StageName, float]:
    """Return the points of each stage that a machine without a GPU can give: speed only where it counts unmeasured."""
    unmeasured = speed.unmeasured != "left_out"
    return {
        name: value for name, value in points.by_stage().items() if value and (name is not StageName.fast or unmeasured)
    }


def list_parts(result: Result, course: Course) -> list[Part]:
    """Return the points of each stage. Without a verdict, each stage has 0 points and says why."""
    points, speed = course.points_of(result.problem), course.speed_of(result.problem)
    possible = list_possible(points, speed)
    made = result.verdict and not result.machine and score(result.verdict, points, speed)
    if not made:
        return [Part(name, 0.0, value, result.why or "not graded") for name, value in possible.items()]
    measured = StageName.fast in possible or any(part.stage is StageName.fast and part.earned for part in made.parts)
    return [part for part in made.parts if measured or part.stage is not StageName.fast]


def describe(result: Result) -> str:
    """Return the report on one problem as plain text."""
    if result.verdict is None or result.machine:
        return result.why
    from rich.console import Console

    out = io.StringIO()
    show(Console(file=out, width=WIDTH, color_system=None, highlight=False), result.verdict)
    return out.getvalue()[:MOST_OUTPUT].rstrip()


# --- Gradescope ------------------------------------------------------------------------------------------------------


def make_gradescope(results: Sequence[Result], course: Course, visibility: str = "visible") -> dict[str, Any]:
    """Return Gradescope's results.json as data: one test per stage, and the reports as the text above them."""
    tests: list[dict[str, Any]] = []
    for result in results:
        for part in list_parts(result, course):
            passed = part.earned >= part.possible
            name = f"{result.problem}: {part.stage.value}" if len(results) > 1 else part.stage.value
            test: dict[str, Any] = {"name": name, "score": round(part.earned, 2), "max_score": part.possible}
            test |= {"status": "passed" if passed else "failed", "output": _describe_part(result, part)}
            tests.append(test | {"output_format": "text", "visibility": visibility})
    return {
        "score": round(sum(part.earned for result in results for part in list_parts(result, course)), 2),
        "output": clean("\n\n".join(map(describe, results))),
        "output_format": "text",
        "stdout_visibility": "hidden",
        "visibility": visibility,
        "tests": tests,
        "extra_data": {
            "machine_failed": any(result.machine for result in results),
            "sha256": {result.problem: result.verdict.submission.sha256 for result in results if result.verdict},
        },
    }


def make_failure(why: str) -> dict[str, Any]:
    """Return Gradescope's results.json as data for a machine that could not grade."""
    return {
        "score": 0,
        "output": clean(why),
        "output_format": "text",
        "stdout_visibility": "hidden",
        "tests": [],
        "extra_data": {"machine_failed": True},
    }


def _describe_part(result: Result, part: Part) -> str:
    stages: Iterable = result.verdict.stages if result.verdict and not result.machine else ()
    stage = next((one for one in stages if one.name is part.stage), None)
    lines = [part.why] if part.why else []
    if stage is not None and stage.message and stage.status is not Status.passed:
        lines.append(stage.message)
    return clean("\n".join(lines))


# --- Classroom 50 ----------------------------------------------------------------------------------------------------


def make_classroom50(
    result: Result, course: Course, environment: Mapping[str, str], submitted: datetime.datetime
) -> dict[str, Any]:
    """Return Classroom 50's result.json as data. environment: of its runner; submitted: the graded commit's time.

    Raises ExportError where the runner's variables are missing, the machine failed, or points are not whole numbers.
    """
    if result.verdict is None or result.machine:
        raise ExportError(f"There is no verdict on the submission: {result.why}")
    tests = []
    for part in list_parts(result, course):
        if part.possible != int(part.possible):
            raise ExportError(
                f"Classroom 50 takes whole points, and `{part.stage.value}` of {result.problem} has {part.possible:g}: "
                "change course.toml."
            )
        passed = part.earned >= part.possible
        points = int(part.possible) if passed else min(round(part.earned), int(part.possible))
        tests.append(
            {"test-name": part.stage.value, "passed": passed, "score": points, "max-score": int(part.possible)}
            | {"output": _describe_part(result, part)}
        )
    return {
        "schema": RESULT_SCHEMA,
        **_read_identity(environment),
        "datetime": submitted.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "score": sum(test["score"] for test in tests),
        "max-score": sum(test["max-score"] for test in tests),
        "tests": tests,
    }


def _read_identity(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that name the submission. Raises ExportError, which names the variables that are missing."""
    found, missing = {}, []
    for field, variable in IDENTITY.items():
        found[field] = environment.get(variable) or environment.get(FALLBACKS.get(variable, ""), "")
        if not found[field]:
            missing.append(variable)
    if missing:
        raise ExportError(
            f"Classroom 50's runner sets {', '.join(missing)}, which {'are' if missing[1:] else 'is'} not set here: "
            "run this command in its autograder.py."
        )
    if not found["submission"].startswith("submit/"):
        raise ExportError(f"SUBMISSION_TAG is {found['submission']}, and a submission's tag begins with submit/.")
    return found
