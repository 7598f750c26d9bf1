"""Write the grades into nbgrader's database, through its own API (https://nbgrader.readthedocs.io/en/stable/api/).

nbgrader is an optional package: `pip install nbgrader`, or the extra `nbgrader` of this project.
"""

from __future__ import annotations

from pathlib import Path

from grader.classroom.exports import ExportError
from grader.classroom.gradebook import Grade, Gradebook
from grader.pictures.picture import count

CELL = "grade"  # the one grade cell of an assignment's notebook, which has the assignment's name


def write_nbgrader(file: Path, book: Gradebook) -> list[str]:
    """Add the grades to nbgrader's database, made if missing; return sentences on what is not in it.

    Each problem is an assignment with one grade cell. A grade includes lateness and adjustments. Students without an
    attempt get no submission, as nbgrader has it. Raises ExportError if nbgrader is missing or cannot use the file.
    """
    try:
        from nbgrader import api
    except ImportError:
        raise ExportError("nbgrader is not installed here: `pip install nbgrader` installs it.") from None
    try:
        with api.Gradebook(f"sqlite:///{file.absolute()}") as gradebook:
            return _write(gradebook, book)
    except Exception as error:  # of SQLAlchemy, of which each version has others
        raise ExportError(f"nbgrader cannot use {file} ({type(error).__name__}): is it a gradebook.db?") from None


def _write(gradebook, book: Gradebook) -> list[str]:
    for student in book.students:
        first, _, last = student.name.rpartition(" ")
        gradebook.update_or_create_student(student.id, first_name=first, last_name=last, email=student.email)
    for problem in book.course.problems:
        due = book.course.due(problem)
        gradebook.update_or_create_assignment(problem, **({"duedate": due.replace(tzinfo=None)} if due else {}))
        gradebook.update_or_create_notebook(problem, problem)
        most = sum(book.course.points_of(problem).by_stage().values())
        gradebook.update_or_create_grade_cell(CELL, problem, problem, max_score=most, cell_type="code")
    unknown = 0
    for (student, problem), grade in book.grades.items():
        if grade.share is None:
            unknown += 1
        elif grade.attempts or grade.adjustments:
            _write_grade(gradebook, student, problem, grade)
    if not unknown:
        return []
    return [f"Not known yet, and not in the file: {count(unknown, 'grade')}. Run `grader class grade`."]


def _write_grade(gradebook, student: str, problem: str, grade: Grade) -> None:
    at = grade.counted.attempt.handed_in if grade.counted else None
    times = {"timestamp": at.replace(tzinfo=None)} if at else {}
    gradebook.update_or_create_submission(problem, student, **times)
    cell = gradebook.find_grade(CELL, problem, problem, student)
    cell.auto_score = None
    cell.manual_score = round((grade.share or 0.0) * cell.max_score, 4)
    cell.needs_manual_grade = False
    gradebook.db.commit()
