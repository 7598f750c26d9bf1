"""A course's folder with a few students, as the tests of grading and of grades need it."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path

from grader.classroom.collect import Attempt, Collected
from grader.classroom.course import Course, read_course
from grader.classroom.journal import Journal
from grader.classroom.new_course import write_course
from grader.classroom.roster import FILE, Student, read_roster
from grader.judging.processes.judge import Answer, Order
from grader.judging.processes.judges import Result
from grader.verdict import Outcome, Reason, Stage, StageName, Status, Submission, Verdict

PROBLEMS = ["groupnorm", "logsumexp"]


@contextlib.contextmanager
def make_class(
    folder: Path, attempts: list[Attempt], rules: str = "", problems: list[str] | None = None
) -> Iterator[tuple[Journal, Course, list[Student]]]:
    """Yield a database with these attempts, its course, and a student for each of ada, bob and cyd."""
    write_course(folder, "Kernels", "UTC", problems or PROBLEMS)
    (folder / FILE).write_text("id,name\nada,Ada Abel\nbob,Bob Blum\ncyd,=Cyd\n", encoding="utf-8")
    if rules:
        (folder / "course.toml").write_text(rules, encoding="utf-8")
    with Journal(folder) as journal:
        journal.add(Collected(list(attempts)), "a test")
        yield journal, read_course(folder), read_roster(folder / FILE)


def make_verdict(order: Order, outcome: Outcome = Outcome.passed) -> Verdict:
    """Return a verdict as the judge's; a failed one has wrong values in one of two cases."""
    stages = [Stage(name=name, status=Status.passed) for name in StageName]
    if outcome is Outcome.failed:
        stages[2].status, stages[2].reason = Status.failed, Reason.wrong_values
    if outcome is Outcome.error:
        stages[1].status, stages[1].reason, stages[1].message = Status.error, Reason.grader_error, "The machine failed."
    return Verdict(
        problem=order.name.removesuffix(".py"),
        submission=Submission(path=order.name, sha256="0" * 64),
        outcome=outcome,
        stages=stages,
        device="cpu",
        versions={},
        seed=order.seed,
        seconds=1.0,
        sandbox="none",
        settings=order.settings,
    )


class CannedExecutor(Executor):
    """An executor that grades nothing: `answers` says, by what the file holds, what became of it."""

    def __init__(self, **answers: Outcome | str):
        self.answers = answers
        self.orders: list[Order] = []

    def submit(self, _function, /, order: Order, *_arguments):
        """Return the result that was given for this file; passed if none was."""
        self.orders.append(order)
        future: Future[Result] = Future()
        what = self.answers.get(order.data.decode(), Outcome.passed)
        verdict = make_verdict(order, what) if isinstance(what, Outcome) else None
        future.set_result(Result(Answer(verdict)) if verdict else Result(None, str(what)))
        return future
