"""What was handed out with a problem: nobody wrote it, so it is no sign of copying."""

from __future__ import annotations

from pathlib import Path

from grader.classroom.course import Course
from grader.classroom.similarity import Handed
from grader.problems.exercises import KERNELS_STUDENT, read_solution
from grader.problems.skeletons import ExerciseError, skeleton


def read_handed(problem: str, course: Course, folder: Path) -> Handed:
    """Return an exercise's file and its solution; of a problem of the course's own, its problem file.

    What is missing, as in a copy without the solutions, is left out. Raises OSError if the problem file cannot be read.
    """
    if own := course.problems[problem].file:
        return Handed((folder / own).read_text(encoding="utf-8-sig", errors="replace"))
    return read_handed_exercise(problem)


def read_handed_exercise(exercise: str) -> Handed:
    """Return the file of one of the course kit's exercises, and its solution."""
    try:
        solution = read_solution(exercise)
        return Handed(skeleton(solution, exercise), (solution,))
    except (OSError, ExerciseError):
        file = KERNELS_STUDENT / f"{exercise}.py"
        return Handed(file.read_text(encoding="utf-8-sig", errors="replace") if file.is_file() else "")
