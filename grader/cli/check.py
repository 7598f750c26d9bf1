"""The commands `grader check` and `grader hint`: what grader.check shows in a notebook, in words."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from grader.cli.grade import exit_code, explain_error
from grader.cli.options import DEFAULT_GPU, FileCommand, gpu_option
from grader.cli.statuses import CANNOT, USAGE

if TYPE_CHECKING:
    from grader.cli.parts import Printer
    from grader.diagnosis.background import Looking
    from grader.diagnosis.fault_localization import Lead
    from grader.notebook.cells import Subject
    from grader.notebook.check import Checked, Given
    from grader.notebook.kept_checks import KeptCheck, Place
    from grader.verdict import Verdict

EXITS = """
\b
Exit status:
    0  the kernel passed
    1  it failed
    4  not attempted: still the exercise as handed out
    2  wrong usage: there is no such file, problem, case or GPU
    3  the grader or this machine could not do it
  130  interrupted
"""


NO_MORE = "The line to change is shown above, and no hint says more."


class NoSuchKernel(click.ClickException):
    """What the command line names, such as a file or a case, does not exist."""

    exit_code = USAGE


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What a command line asks to check. gpu: whose time is predicted; None: of the last check, or else the default."""

    what: str
    problem: str | None
    case: str | None = None
    seed: int | None = None
    gpu: str | None = None


def subject_options(command: Callable) -> Callable:
    """Add the arguments that name a kernel."""
    command = click.option(
        "--problem", metavar="NAME|FILE", help="The problem, where the kernel's file does not tell which one it is."
    )(command)
    return click.argument("what", metavar="NAME|FILE")(command)


@click.command(cls=FileCommand, epilog=EXITS)
@subject_options
@click.option("--case", metavar="NAME", help="Run this case only.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Seed of inputs and weights. Without it, the same for each check of a problem.",
)
@gpu_option
def check(what: str, problem: str | None, case: str | None, seed: int | None, gpu: str) -> None:
    """Check a kernel and show why it fails: the wrong line, the values, and hints.

    NAME is a problem of the course: groupnorm means kernels_student/groupnorm.py. The words are those that grader.check
    shows in a notebook. A file that has not changed since its last check is not run again: its next hint is shown, if
    the line to change is not known.
    """
    sys.exit(_check(Wanted(what, problem, case, seed, gpu), is_hint=False))


@click.command(cls=FileCommand, epilog=EXITS)
@subject_options
def hint(what: str, problem: str | None) -> None:
    """Show the next hint on a kernel; each one is more specific than the one before.

    A file that has changed since its last check is checked first, as by `grader check`.
    """
    sys.exit(_check(Wanted(what, problem), is_hint=True))


def _check(wanted: Wanted, is_hint: bool) -> int:
    """Check a kernel, or show the next hint on one that was checked. Returns the exit status."""
    from grader.notebook.check import CannotCheck, UnknownCase, check_case, seed_of
    from grader.notebook.kept_checks import Place

    subject = find_subject(wanted.what, wanted.problem)
    seed = seed_of(subject) if wanted.seed is None else wanted.seed
    try:
        check_case(subject, wanted.case)
        place = Place(subject, wanted.case, seed)
        checked = _Terminal(subject, place, wanted, seed)
        return checked.show_next_hint() if is_hint else checked.show()
    except UnknownCase as error:
        raise NoSuchKernel(str(error)) from None
    except CannotCheck as error:
        click.echo(str(error), err=True)
        return CANNOT
    except Exception as error:
        sentence, status = explain_error(error)
        click.echo(f"{wanted.what}: {sentence}", err=True)
        return status


def find_subject(what: str, problem: str | None) -> Subject:
    """Return the kernel that a command line names. Raises NoSuchKernel."""
    from grader.notebook import cells

    if not what.strip():
        raise NoSuchKernel(f"{what!r} cannot be checked. Give a problem's name (conv2d) or a file's path.")
    try:
        return cells.subject(what, problem)
    except cells.NothingThere as error:
        raise NoSuchKernel(str(error).replace("give problem=", "give --problem")) from None


class _Terminal:
    """One kernel, checked for a terminal."""

    def __init__(self, subject: Subject, place: Place, wanted: Wanted, seed: int):
        self.subject, self.place, self.wanted, self.seed = subject, place, wanted, seed
        self.gpu = wanted.gpu or DEFAULT_GPU
        self.is_late = False  # whether the wrong line is found after the verdict is shown
        named = [wanted.what, *(["--problem", wanted.problem] if wanted.problem else [])]
        self.next_step = f"`grader hint {shlex.join(named)}` shows a hint; each further one is more specific."

    def show(self) -> int:
        """Show the verdict, the hints given so far, and one more if nothing has changed. Returns the exit status."""
        from grader.diagnosis.background import Looking
        from grader.notebook.check import unchanged
        from grader.reports.feedback import Words

        kept = self.place.read()
        if kept is None or not self.place.is_of_this(kept, self.wanted.gpu) or not kept.repeats:
            return self._run(with_hint=False)
        given = _given_by(kept)
        checked = self._made(kept.verdict, Looking(kept.lead), given, unchanged(kept.verdict, self.subject))
        checked.give_next()
        printer, self.is_late = _printer(checked), kept.is_late
        if kept.lead and kept.is_late:  # as the first time: before the line was known, others were suspect
            printer.print(self._made(kept.verdict, Looking(), given).findings(pictures=False))
            printer.print(self._show_lead(kept.lead))
        else:
            printer.print(checked.findings(pictures=False))
        printer.print([*checked.notes(), *([Words(NO_MORE, "soft")] if kept.lead and kept.lead.says_all else [])])
        return self._keep(checked, given)

    def show_next_hint(self) -> int:
        """Show the next hint, after the verdict if it is not known yet. Returns the exit status."""
        from grader.diagnosis.background import Looking

        kept = self.place.read()
        if kept is None or not self.place.is_of_this(kept, self.wanted.gpu):
            return self._run(with_hint=True)
        self.gpu, self.is_late, given = kept.gpu, kept.is_late, _given_by(kept)
        checked = self._made(kept.verdict, Looking(kept.lead), given)
        _printer(checked).print(checked.hint().parts())
        return self._keep(checked, given)

    def _run(self, with_hint: bool) -> int:
        """Grade the kernel, show the verdict at once, and the wrong line as soon as the search for it has ended."""
        from grader.diagnosis import hints
        from grader.notebook.check import LAST, Given, note_progress, run
        from grader.reports.feedback import Words

        before = self.place.read()
        verdict, _, looking = run(self.subject, self.wanted.case, self.seed, self.gpu, drawn=False)
        given = Given(before.given if before and hints.of(before.verdict) == hints.of(verdict) else 0)
        news = note_progress(verdict, self.wanted.case, self.subject)
        checked = self._made(verdict, looking, given, news)
        printer = _printer(checked)
        printer.print(checked.findings(pictures=False))
        self.is_late = looking.running
        if looking.running:
            printer.print(self._search(looking))
            checked = self._made(verdict, looking, given, news)  # to which the line is no hint
        is_last = with_hint and not checked.has_more_hints and given.count > 0
        if with_hint:
            checked.give_next()
        printer.print([*checked.notes(), *([Words(LAST)] if is_last else [])])
        return self._keep(checked, given)

    def _search(self, looking: Looking) -> list[object]:
        """Wait for the search for the wrong line; return the parts that show it, none if there is none."""
        from grader.notebook.progress_bar import waiting
        from grader.verdict import StageName

        with waiting(self.subject.name) as say:
            say(StageName.safe, "searching for the wrong line")
            try:
                lead = looking.wait()
            except KeyboardInterrupt:
                looking.close()
                raise
        return self._show_lead(lead) if lead else []

    def _show_lead(self, lead: Lead) -> list[object]:
        from grader.reports.feedback import Words, at_lead, cut_lines

        return [Words(lead.words, "lead"), at_lead(lead, cut_lines(self.subject.text), self.subject.where)]

    def _made(self, verdict: Verdict, looking: Looking, given: Given, news: str = "") -> Checked:
        from grader.notebook.check import Checked

        case = self.wanted.case
        return Checked(verdict, self.subject, [], looking, case=case, news=news, given=given, next_step=self.next_step)

    def _keep(self, checked: Checked, given: Given) -> int:
        self.place.write(checked.verdict, self.gpu, checked.lead, self.is_late, given)
        return exit_code(checked.verdict)


def _given_by(kept: KeptCheck) -> Given:
    """Return the hints that were given on the kernel of a kept check."""
    from grader.notebook.check import Given

    return Given(kept.given, kept.lead.words if kept.lead and kept.is_lead_given else "")


def _printer(checked: Checked) -> Printer:
    """Return what prints a verdict, after the warning that its kernel ran without a sandbox."""
    from grader.cli.parts import Printer
    from grader.reports.terminal import UNPROTECTED
    from grader.worker.levels import is_unprotected

    if is_unprotected(checked.verdict.sandbox):
        click.secho(UNPROTECTED, err=True, fg="red", bold=True)
    return Printer(checked.verdict.outcome.value)
