"""`grader class grade` and `regrade`: carry out the gradings that a class needs."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grader.cli.class_engine import Chosen, open_engine
from grader.cli.options import check_seconds, course_option
from grader.cli.statuses import CANNOT, INTERRUPTED
from grader.verdict import USUAL_TIMEOUT, Outcome, Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from grader.classroom.course import Course
    from grader.classroom.grade_class import Step
    from grader.classroom.gradebook import Gradebook
    from grader.classroom.gradings import Grading
    from grader.classroom.journal import Journal, Kept

LINE_S = 30.0  # between lines of progress where there is no terminal
MOST_SHOWN = 20  # gradings without a verdict


def _grading_options(command):
    """Add the options of commands that grade."""
    for option in (
        click.option(
            "--jobs",
            type=click.IntRange(1, 1024),
            help="Gradings at once. Without it, as many as processors and memory allow; with a GPU, one.",
        ),
        click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Without it, on a GPU if there is one."),
        click.option(
            "--timeout",
            metavar="SECONDS",
            type=click.FloatRange(0.1, 86400),
            callback=check_seconds,
            help="Limit for each step of a submission, without compilers; all together have 30 times it.  "
            f"[default: {USUAL_TIMEOUT:g}]",
        ),
        click.option("--allow-unsandboxed", is_flag=True, help="Run submissions even where no sandbox protects you."),
        click.option("--scheduler", metavar="ADDRESS", help="Grade on the workers of this dask scheduler."),
        click.option("--slurm", is_flag=True, help="Grade in Slurm jobs, as [slurm] in course.toml describes them."),
        click.option("--dry-run", is_flag=True, help="With --slurm: print the job script and submit nothing."),
        course_option,
    ):
        command = option(command)
    return command


@click.command(name="grade")
@_grading_options
def grade_class(folder: Path, **options: Any) -> None:
    """Grade every attempt that has no verdict yet; the same file of several students once.

    With --device, a verdict from the other one counts as none; with --timeout, one with a longer limit, and one that a
    shorter limit decided. Without these options every verdict counts. Each verdict is kept at once: after
    Ctrl-C, or if a process is killed, the same command resumes.

    Exit status 2 if course.toml or roster.csv cannot be used, 3 if class.db cannot, or if the machine could not grade
    some; 130 after Ctrl-C.
    """
    chosen = Chosen(**options)
    with _opened(folder) as (journal, course, _):
        _prepare(chosen, course)
        gradings, done = _find_gradings(journal, course, folder)
        again = {key for key in gradings if key in done and not done[key].holds_for(chosen.device, chosen.timeout)}
        left = [one for key, one in gradings.items() if key not in done or key in again]
        others = f" {len(again)} more were graded on another device or with another time limit." if again else ""
        click.echo(f"{len(gradings) - len(left)} of {len(gradings)} have a verdict already.{others}", err=True)
        _run(journal, course, left, chosen, again=again)


@click.command(name="regrade")
@click.argument("what", metavar="STUDENT|PROBLEM...", nargs=-1, required=True)
@click.option("--because", metavar="TEXT", required=True, help="Why: it is kept with the new verdicts.")
@_grading_options
def regrade_class(what: tuple[str, ...], because: str, folder: Path, **options: Any) -> None:
    """Grade all attempts of a student or of a problem again, and list the grades that change.

    Earlier verdicts stay in class.db. Exit statuses are those of `grader class grade`.
    """
    chosen = Chosen(**options)
    with _opened(folder) as (journal, course, read):
        _prepare(chosen, course)
        known = {*course.problems, *(one.student for one in journal.attempts())}
        if unknown := [name for name in what if name not in known]:
            raise click.UsageError(f"{unknown[0]} is neither a problem nor a student with an attempt.")
        wanted = [one for one in journal.attempts() if one.student in what or one.problem in what]
        gradings, _ = _find_gradings(journal, course, folder, wanted)
        before = read()
        try:
            _run(journal, course, list(gradings.values()), chosen, because)
        finally:
            _show_changes(before, read())


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[tuple[Journal, Course, Callable[[], Gradebook]]]:
    """Yield the open database, the course, and a function that reads the grades, while no other grader may grade it."""
    import filelock

    from grader.classroom.gradebook import read_gradebook
    from grader.cli.class_grades import open_class

    with open_class(folder) as (journal, course, students):
        lock = filelock.FileLock(folder / "class.lock", timeout=0)
        try:
            with lock:
                yield journal, course, lambda: read_gradebook(journal, course, students, folder)
        except filelock.Timeout:
            click.echo(f"Another grader is grading {folder}. Wait for its end.", err=True)
            sys.exit(CANNOT)


def _find_gradings(
    journal: Journal, course: Course, folder: Path, attempts: list[Kept] | None = None
) -> tuple[dict[str, Grading], dict[str, Verdict]]:
    """Return the gradings that attempts need, and the last verdicts by key, except those of the grader's own errors."""
    from grader.classroom.gradings import Verdicts, make_gradings

    verdicts = Verdicts(journal)
    every = journal.attempts() if attempts is None else attempts
    done = {key: one.verdict for key, one in verdicts.read_last().items() if one.verdict.outcome is not Outcome.error}
    return make_gradings(every, course, folder, verdicts.read_secret()), done


def _prepare(chosen: Chosen, course: Course) -> None:
    """Check the options; with --dry-run, print the job script and exit."""
    from grader.classroom.cluster import ClusterError
    from grader.classroom.slurm import make_job_script

    chosen.check(course)
    if chosen.dry_run and course.slurm is not None:
        try:
            click.echo(make_job_script(course.slurm))
        except ClusterError as error:
            click.echo(str(error), err=True)
            sys.exit(CANNOT)
        sys.exit(0)


def _run(
    journal: Journal,
    course: Course,
    gradings: list[Grading],
    chosen: Chosen,
    because: str = "",
    again: Collection[str] = (),
) -> None:
    """Carry out gradings with a bar, say what became of them, and exit if the machine could not grade some.

    because: why all are graded again. again: the keys of those with a verdict for other options.
    """
    from rich.console import Console

    from grader.classroom.grade_class import MachineError, Options, grade_all

    if not gradings:
        return
    console = Console(stderr=True, highlight=False)
    say = functools.partial(console.print, markup=False, soft_wrap=True)
    steps: list[Step] = []
    status, sentence = 0, ""
    begun = time.monotonic()
    try:
        with open_engine(chosen, course, len(gradings), say) as engine:
            say(engine.sentence)
            options = Options(
                engine.device,
                not chosen.allow_unsandboxed,
                USUAL_TIMEOUT if chosen.timeout is None else chosen.timeout,
                because,
                bool(chosen.scheduler or chosen.slurm),
                again,
            )
            with _Bar(console, len(gradings)) as bar:
                for step in grade_all(journal, gradings, engine.executor, options, engine.at_once, engine.task):
                    steps.append(step)
                    bar.show(step, len(steps))
    except KeyboardInterrupt:
        status, sentence = INTERRUPTED, "Interrupted. The same command grades what is left."
    except MachineError as error:
        status, sentence = CANNOT, str(error)
    _show_steps(console, steps, len(gradings), time.monotonic() - begun)
    if sentence:
        say(sentence)
    if status or any(step.trouble for step in steps):
        sys.exit(status or CANNOT)


class _Bar:
    """A bar with counts, rate and the time that is left; where there is no terminal, a line now and then."""

    def __init__(self, console: Console, total: int):
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.console, self.total, self.begun, self.shown = console, total, time.monotonic(), time.monotonic()
        columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn()
        self.progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self.task = self.progress.add_task("", total=total)
        self.outcomes: Counter[str] = Counter()

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.progress.stop()

    def show(self, step: Step, done: int) -> None:
        """Count one grading that has ended."""
        self.outcomes["without a verdict" if step.trouble else step.verdict.outcome.value if step.verdict else ""] += 1
        now = time.monotonic()
        rate = f"{60 * done / (now - self.begun):.1f} a minute"
        words = ", ".join([*(f"{n} {name.replace('_', ' ')}" for name, n in self.outcomes.most_common()), rate])
        self.progress.update(self.task, completed=done, description=words)
        if self.progress.disable and now - self.shown > LINE_S:
            self.shown = now
            self.console.print(f"{done} of {self.total}: {words}", markup=False)


def _show_steps(console: Console, steps: list[Step], total: int, seconds: float) -> None:
    """Print how many gradings ended how, and those without a verdict."""
    from rich.text import Text

    from grader.reports.terminal import line

    troubles = [step for step in steps if step.trouble]
    for step in troubles[:MOST_SHOWN]:
        name = f"{step.grading.problem} {step.grading.sha256[:8]}"
        console.print(Text(line(f"{name}: no verdict. {step.trouble}")), soft_wrap=True)
    if len(troubles) > MOST_SHOWN:
        console.print(f"and {len(troubles) - MOST_SHOWN} more.")
    done = len(steps) - len(troubles)
    rate = f", {60 * len(steps) / seconds:.1f} a minute" if steps and seconds else ""
    console.print(f"{done} of {total} graded in {seconds:.0f} s{rate}.", markup=False)


def _show_changes(before: Gradebook, after: Gradebook) -> None:
    from grader.cli.class_grades import percent

    changed = [
        (grade, before.grades[key])
        for key, grade in after.grades.items()
        if percent(grade.share) != percent(before.grades[key].share)
    ]
    for grade, old in changed:
        click.echo(f"{grade.student.name}, {grade.problem}: {percent(old.share)} -> {percent(grade.share)}")
    if not changed:
        click.echo("No grade changes.")
