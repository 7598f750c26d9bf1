"""Write a course.toml that says what can be said in one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from grader.classroom.course import FILE, CourseError, parse_course
from grader.problems.exercises import exercises

HEAD = """# How this course is graded. `grader class check` reads it and names the line of each mistake.
title = {title}
timezone = "{timezone}"       # of the deadlines below
counts = "best"          # which attempt is graded: "best" or "last"

[points]                 # of each stage; [problems.NAME.points] replaces them for one problem
build = 10
correct = 50
safe = 20
gradient = 0             # counted where forward alone is asked for; a _backward problem has its own points below
fast = 20
by_case = true           # a failed "correct" or "gradient" earns the share of its cases that passed

[speed]                  # the share of the points of "fast"; the larger one counts
reference = [            # from this speed-up over the reference solution on
    {{ from = 0.5, share = 0.5 }},
    {{ from = 0.9, share = 1.0 }},
]
eager = []               # the same over eager PyTorch
unmeasured = "left_out"  # without a GPU: "left_out" of the total, "full" or "none"

[late]
percent_a_day = 10       # of the earned points, for each day begun
free_days = 0            # that each student may spend over the whole course
most_days = 7            # later attempts earn nothing
grace_minutes = 0

# [slurm] describes the jobs of `grader class grade --slurm`: docs/INSTRUCTORS.md lists its keys.

# Each problem: due = 2026-12-01T18:00:00 or a date, which includes that day; weight of the problem in the course;
# file = "hidden/NAME.py" for another model.py, with hidden cases for instance; allow = ["mm"] or "all" for PyTorch's
# operators in place of what the problem's file allows; cases = "own sizes" to grade at the sizes of the problem's file
# alone; leaderboard = "pseudonyms" or "names" for a page that ranks the measured speeds.
"""
BACKWARD_POINTS = "points = { build = 10, correct = 30, safe = 10, gradient = 40, fast = 10 }\n"


def make_course(title: str, timezone: str, problems: Sequence[str]) -> str:
    """Return the text of a course.toml for these problems; all of the course kit's if there are none."""
    text = HEAD.format(title=_quote(title), timezone=timezone)
    for name in problems or exercises():
        text += f"\n[problems.{name}]\nweight = 1\n{BACKWARD_POINTS if name.endswith('_backward') else ''}"
    return text


def write_course(folder: Path, title: str, timezone: str, problems: Sequence[str]) -> Path:
    """Write a new course.toml into a folder, made if missing; return the file.

    Raises CourseError if there is one, if it cannot be written, or if a problem or the time zone is unknown.
    """
    file = folder / FILE
    text = make_course(title, timezone, problems)
    parse_course(text, folder, str(file))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(file, "x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        raise CourseError(f"{file} exists. Edit it, or name another folder.") from None
    except OSError as error:
        raise CourseError(f"{file} cannot be written ({error.strerror}).") from None
    return file


def _quote(text: str) -> str:
    """Return a text as a TOML string."""
    escaped = re.sub(r"[\\\"\x00-\x1f\x7f]", lambda match: f"\\u{ord(match[0]):04x}", text)
    return f'"{escaped}"'
