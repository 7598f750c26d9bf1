"""Grade what Gradescope handed over, and write its results.json: the program that run_autograder starts.

It runs in the tree that `grader class autograder` packs: source/ with the grader and the course, submission/ with the
student's files, results/ for the answer. Whatever happens, results.json says it in a sentence.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from grader.classroom.collect import MOST_SUBMISSION, find_kind, find_problem
from grader.classroom.course import Course
from grader.classroom.files import replace_file
from grader.classroom.gradings import make_seed, make_settings
from grader.classroom.platforms import Result, make_failure, make_gradescope
from grader.classroom.sources import Found
from grader.classroom.unpack import is_clutter
from grader.verdict import Outcome, Verdict, spelled

SETTINGS = "autograder.json"
MOST_FILES = 500
SECONDS = 60.0  # for one step of a submission: half a processor takes twice as long or more
AT_FAULT = (
    "This says nothing about the submission: the machine that grades could not finish. Submit again, and tell your "
    "instructor if it happens twice."
)
# Begins of messages on builds that say that the machine, not the code, is at fault.
MACHINE_MESSAGES = ("The compiler ran out of memory", "The folder for built extensions")


class Settings(msgspec.Struct):
    """What the autograder was packed with. secret: from it and the file follow the inputs, the same in each run."""

    course: Course
    visibility: str
    require_sandbox: bool
    secret: str


def grade_all(root: Path, rules: Path) -> dict[str, Any]:
    """Return results.json as data for the submission in root/submission. rules: the folder with the settings."""
    settings = msgspec.json.decode((rules / SETTINGS).read_bytes(), type=Settings)
    files = read_files(root / "submission")
    results = [_grade(problem, files, settings, rules) for problem in settings.course.problems]
    return make_gradescope(results, settings.course, settings.visibility)


def read_files(folder: Path) -> list[Found]:
    """Return the files that were handed in. Links are not followed, and of a large file only its beginning is read."""
    found = []
    for at, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(at) / name
            inner = path.relative_to(folder)
            if is_clutter(inner.as_posix()) or not stat.S_ISREG(path.lstat().st_mode):
                continue
            with open(path, "rb") as opened:
                data = opened.read(MOST_SUBMISSION + 1)
            found.append(Found(spelled(str(inner)), data, spelled(name), (), inner.parts[:-1]))
            if len(found) >= MOST_FILES:
                return found
    return found


def choose(problem: str, files: Sequence[Found], course: Course) -> tuple[Found | None, str]:
    """Return the file to grade for a problem; or None and why there is none, in a sentence."""
    named = {file.path: find_problem(file, course) for file in files}
    fitting = [file for file in files if named[file.path][0] == problem]
    usable = [file for file in fitting if not find_kind(file)]
    if len(usable) == 1:
        return usable[0], ""
    if usable:
        names = ", ".join(file.path for file in usable)
        return None, f"{len(usable)} files are named as {problem}: {names}. Hand in one of them."
    if fitting:
        return None, find_kind(fitting[0])
    if not files:
        return None, f"Nothing was handed in. Hand in {problem}.py."
    alone = len(course.problems) == 1
    others = [file for file in files if named[file.path][1] == problem or (alone and not named[file.path][0])]
    if others:
        names = ", ".join(file.path for file in others[:5])
        return None, f"No file has the name {problem}.py; there is {names}. Rename the file and hand it in again."
    return None, f"No file for {problem} was handed in. Hand in {problem}.py."


def _grade(problem: str, files: Sequence[Found], settings: Settings, rules_folder: Path) -> Result:
    from grader.judging.grading import Limits, Refused, grade
    from grader.problems.problem import ProblemError
    from grader.worker.levels import SandboxError

    file, why = choose(problem, files, settings.course)
    if file is None:
        return Result(problem, None, why)
    rules = settings.course.problems[problem]
    with tempfile.TemporaryDirectory(prefix="submission-") as made:
        copy = Path(made) / f"{problem}.py"
        copy.write_bytes(file.data)
        try:
            verdict = grade(
                copy,
                problem=str(rules_folder / rules.file) if rules.file else None,
                overrides=make_settings(rules),
                device="cpu",
                seed=make_seed(settings.secret.encode(), file.data),
                limits=Limits(own=SECONDS),
                require_sandbox=settings.require_sandbox,
                folder=Path(made),
            )
        except (Refused, ProblemError, SandboxError) as error:
            return Result(problem, None, f"{error} {AT_FAULT}", machine=True)
    verdict.submission.path = file.path
    return judge_machine(problem, verdict)


def judge_machine(problem: str, verdict: Verdict) -> Result:
    """Return the result of a verdict, told apart from one that only says that the machine is too small."""
    stage = verdict.first_problem
    message = stage.message if stage else ""
    texts = [message, *(one.detail or "" for one in stage.evidence)] if stage else []
    small = next((begin for begin in MACHINE_MESSAGES if any(begin in text for text in texts)), "")
    if verdict.outcome is Outcome.error or small:
        sentence = f"{small}." if small else message
        return Result(problem, verdict, f"{sentence} {AT_FAULT}".strip(), machine=True)
    return Result(problem, verdict)


def main(root: Path, rules: Path) -> None:
    """Write root/results/results.json."""
    try:
        data = grade_all(root, rules)
    except (OSError, msgspec.MsgspecError) as error:
        data = make_failure(f"The autograder's own files cannot be used ({str(error)[:300]}). {AT_FAULT}")
    except Exception as error:
        data = make_failure(f"The grader failed ({type(error).__name__}: {str(error)[:300]}). {AT_FAULT}")
    (root / "results").mkdir(exist_ok=True)
    replace_file(root / "results" / "results.json", json.dumps(data, indent=1, allow_nan=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
