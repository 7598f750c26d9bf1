"""grader.check: grade a kernel in a notebook and show what is wrong, where and why, with hints one at a time."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import time
from pathlib import Path
from textwrap import shorten

from grader.authoring import working_copies
from grader.diagnosis import fault_localization, hints
from grader.diagnosis.background import BackgroundDiagnosis, Looking
from grader.notebook import cells, spare_worker
from grader.notebook.progress_bar import waiting
from grader.problems import exercises
from grader.reports import feedback, predicted
from grader.reports.feedback import Words
from grader.verdict import Outcome, Prediction, Verdict
from grader.worker import sandbox
from simt.devices import UnknownDevice, find_name
from simt.own_torch import with_own_torch

# verdict, pictures and suspected line, by everything that they depend on
_kept: dict[str, tuple[Verdict, list, Looking]] = {}
_given: dict[tuple[str, ...], Given] = {}  # by a kernel's name, its problem and the hints themselves
KEPT = 64  # checks whose results are kept
_last_search = Looking()  # the last check's fault localization
# from the start of a check; where outputs are compared, it waits until the end
LOCALIZATION_TIMEOUT_S = 3.0
LOCALIZATION_ON_GPU_S = 1.5  # at least, after the verdict: only then the cases can be made


@dataclasses.dataclass
class Given:
    """How many hints on one kernel were given so far, by all checks of it that have the same hints.

    lead: the words on the wrong line that were given as a hint.
    """

    count: int = 0
    lead: str = ""


class Interrupted(KeyboardInterrupt):
    """The check was stopped from the keyboard and its worker has ended. IPython shows the text without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class CannotCheck(ValueError):
    """Nothing can be checked; the text says what to do. IPython shows it without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def check(
    what,
    *,
    case: str | None = None,
    hints: int = 0,
    problem: str | Path | None = None,
    seed: int | None = None,
    times: bool = False,
    gpu: str = "H200",
) -> Checked:
    """Grade a kernel and show the verdict: its stages, the first failure in plain words, the lines, pictures.

    what: a problem's name ("groupnorm" is kernels_student/groupnorm.py), the path of a file, or a ModelNew class
    defined in this notebook. case: run this one only. hints: how many to show at once. problem: the name or the file of
    the problem, where `what` does not tell it. seed: of inputs and weights; by default the same for each check of a
    problem, so that the same kernel shows the same numbers again (`grader grade` uses a secret seed). times: show
    seconds too. gpu: whose time is predicted for a kernel that passes where there is no GPU (T4, A100, L4, H100, H200,
    …). A kernel that has not changed is not run again, and the next hint is shown. Raises CannotCheck, and Interrupted
    if the keyboard stops it.
    """
    gpu = find_gpu(gpu)
    try:
        return _checked(what, case, hints, problem, seed, times, gpu)
    except KeyboardInterrupt:
        sandbox.end_all()
        raise Interrupted(STOPPED) from None


@with_own_torch
def _checked(what, case, hints_shown, problem, seed, times, gpu) -> Checked:
    subject = find_subject(what, problem)
    check_case(subject, case)
    if seed is not None and (type(seed) is not int or seed < 0):
        raise CannotCheck(f"seed is {seed!r}. Give an int that is not negative.")
    seed = seed_of(subject) if seed is None else seed
    key = spare_worker.key(subject.text, subject.problem_file, (str(subject.path), case, seed, gpu))
    stays = spare_worker.self_contained(subject.text, subject.path.parent)
    if stays and key in _kept:
        verdict, pictures, looking = _kept[key]
        given, news = _given_of(verdict, subject), unchanged(verdict, subject)
        again = Checked(verdict, subject, pictures, looking, hints_shown, times, case, news, given)
        again.give_next()
        return again
    verdict, pictures, looking = run(subject, case, seed, gpu)
    spare_worker.prepare()
    if stays and spare_worker.keepable(verdict):
        while len(_kept) >= KEPT:
            del _kept[next(iter(_kept))]
        _kept[key] = verdict, pictures, looking
    given, news = _given_of(verdict, subject), note_progress(verdict, case, subject)
    return Checked(verdict, subject, pictures, looking, hints_shown, times, case, news, given)


def _given_of(verdict: Verdict, subject: cells.Subject) -> Given:
    return _given.setdefault((subject.name, subject.problem, *hints.of(verdict)), Given())


def unchanged(verdict: Verdict, subject: cells.Subject) -> str:
    """Return the sentence on a file that is checked again as it was; empty where none is needed."""
    return "" if verdict.outcome is Outcome.passed or subject.cells else UNCHANGED


def find_gpu(gpu: str) -> str:
    """Return the full name of a GPU. Raises CannotCheck for one whose figures are not known."""
    try:
        return find_name(gpu)
    except UnknownDevice as error:
        raise CannotCheck(str(error)) from None


class UnknownCase(CannotCheck):
    """The problem has no case of the name that is asked for."""


def check_case(subject: cells.Subject, case: str | None) -> None:
    """Raise UnknownCase for a case that the problem does not have, and CannotCheck for an unusable problem."""
    if case is None or subject.problem_file is None:
        return
    from grader.problems import cases, problem

    try:
        cases.choose(subject.problem, problem.read(subject.problem_file).cases(), case)
    except cases.UnknownCase as error:
        raise UnknownCase(str(error)) from None
    except cases.ProblemError as error:
        raise CannotCheck(str(error)) from None


def run(
    subject: cells.Subject, case: str | None, seed: int, gpu: str, drawn: bool = True
) -> tuple[Verdict, list, Looking]:
    """Grade a kernel. Return the verdict, its pictures if they are to be `drawn`, and for wrong values the line that
    fault localization found, or the search that still runs. Raises CannotCheck, and KeyboardInterrupt.
    """
    from grader.judging.grading import Refused, grade
    from grader.judging.trial import FEWEST_ROUNDS, Limits
    from grader.problems.cases import ProblemError

    global _last_search
    if _last_search.running:
        _last_search.close()  # this check is about another kernel
    begun, diagnosis, looking = time.monotonic(), BackgroundDiagnosis(spare_worker.SECOND.start), Looking()
    try:
        with waiting(subject.name) as progress:
            verdict = grade(
                subject.path,
                problem=subject.problem_file,
                seed=seed,
                progress=progress,
                limits=Limits(rounds=FEWEST_ROUNDS),  # whoever edits waits; `grader grade` tells the time more exactly
                case=case,
                worker=spare_worker.SPARE.start,
                observer=diagnosis,
                predict=gpu,
            )
            if verdict.is_interrupted:
                raise KeyboardInterrupt
            pictures = _pictures(verdict) if drawn else []
            if not feedback.plain():
                for picture in pictures:  # drawn while the search runs; kept until they are shown
                    picture.svg()

            if diagnosis.running and (first := verdict.first_problem):
                progress(first.name, f"{shorten(first.message, 70, placeholder=' …')} (searching for the wrong line)")
            least = 0.0 if verdict.device.startswith("cpu") else LOCALIZATION_ON_GPU_S
            left = max(least, begun + LOCALIZATION_TIMEOUT_S - time.monotonic())
            lead = diagnosis.lead(verdict, None if feedback.plain() else left, subject.problem_file)
            looking = Looking(lead, diagnosis if diagnosis.running else None, verdict)
    except (ProblemError, Refused) as error:
        raise CannotCheck(str(error)) from None
    finally:
        if not looking.running:
            diagnosis.close()
    _last_search = looking
    return verdict, pictures, looking


UNCHANGED = "The file has not changed since the last check. If you have edited it, save it first."
LAST = "That was the last hint."
CALL_HINT = "Call `.hint()` on this result for a hint; each further hint is more specific."
STOPPED = "Interrupted: the check was stopped and its worker has ended. Run the cell again to restart it."


def _pictures(verdict: Verdict) -> list:
    """Return the pictures that explain a verdict; none without matplotlib."""
    with contextlib.suppress(ImportError):
        from grader import pictures

        if found := predicted.find(verdict):
            time = found[0].find_time()
            return _draw_ladder(verdict.problem, found[1], time.value if time else None)
        return pictures.explain_verdict(verdict)
    return []


def _draw_ladder(problem: str, prediction: Prediction, measured: float | None) -> list:
    """Return a picture of the submission between the other kernels; none if none is known.

    measured: the submission's milliseconds. With it, the others' measured times are taken where they are known, else
    all times are predicted.
    """
    from grader import pictures

    others = [
        pictures.Step(rung.name, rung.measured / 1e3)
        if measured is not None and rung.measured is not None
        else pictures.Step(rung.name, rung.predicted / 1e3, predicted=True)
        for rung in prediction.rungs
        if rung.predicted is not None
    ]
    if not others:
        return []
    slowest_first = sorted(others, key=lambda step: -step.seconds)
    if measured is None:
        mine = pictures.Step("your kernel", prediction.ms / 1e3, predicted=True)
    else:
        mine = pictures.Step("your kernel", measured / 1e3)
    return [pictures.ladder(slowest_first, mine, device=prediction.gpu, problem=problem)]


def note_progress(verdict: Verdict, case: str | None, subject: cells.Subject) -> str:
    """Record the verdict in the student's progress, unless outputs are compared. Returns a sentence on what is new."""
    if feedback.plain() or case is not None:
        return ""
    with contextlib.suppress(Exception):  # a verdict is shown even if it cannot be recorded
        from grader.reports import progress

        return progress.note(verdict, subject.problem if subject.cells else None)
    return ""


def seed_of(subject: cells.Subject) -> int:
    """Return the seed of a problem's checks, the same each time."""
    return int(hashlib.sha256(subject.problem.encode()).hexdigest()[:8], 16)


def find_subject(what: object, problem: str | Path | None) -> cells.Subject:
    """Return what is to be checked. Raises CannotCheck."""
    try:
        return cells.subject(what, problem)
    except cells.NothingThere as error:
        raise CannotCheck(str(error)) from None


class Checked:
    """A verdict that displays itself. verdict: the judge's; pictures: what explains it; hint(): the next hint."""

    def __init__(
        self,
        verdict: Verdict,
        subject: cells.Subject,
        pictures: list,
        looking: Looking | None = None,
        hints_shown: int = 0,
        times: bool = False,
        case: str | None = None,
        news: str = "",
        given: Given | None = None,
        next_step: str = CALL_HINT,
    ):
        self.verdict, self.pictures = verdict, pictures
        self._looking = looking or Looking()
        self._late = self._looking.running
        self._subject, self._times, self._case, self._news = subject, times, case, news
        self._next_step = next_step
        self._hints = hints.of(verdict)
        self._given = given or Given()
        while self._given.count < min(hints_shown, len(self._hints)):
            self.hint()

    @property
    def lead(self) -> fault_localization.Lead | None:
        """The line that fault localization found, if it is known by now."""
        return self._looking.lead

    @property
    def passed(self) -> bool:
        return self.verdict.outcome is Outcome.passed

    def hint(self) -> Hint:
        """Return the next hint, which is more specific than the one before.

        While fault localization runs, the first hint waits for it. Where it found what to correct, no hint says more.
        """
        if self._late:
            try:
                self._looking.wait()
            except KeyboardInterrupt:
                self._looking.close()
                raise Interrupted(STOPPED) from None
            self._late = False
        if self.lead and self.lead.says_all:
            if self._given.lead == self.lead.words:
                return Hint(LAST, 0, 0)
            self._given.lead = self.lead.words
            return Hint(feedback.moved(self.lead.words, self._subject.where), 1, 1)
        if self._given.count < len(self._hints):
            self._given.count += 1
            return Hint(self._hints[self._given.count - 1], self._given.count, len(self._hints))
        if self.passed:
            return Hint("The kernel passed, so there is no hint.", 0, 0)
        return Hint(LAST if self._hints else "There is no hint for this result.", 0, 0)

    def give_next(self) -> None:
        """Give one hint more, if there is one."""
        if self.has_more_hints:
            self.hint()

    @property
    def has_more_hints(self) -> bool:
        """Whether another hint would say more than what is shown."""
        return self.searching or (not self._says_all and self._given.count < len(self._hints))

    @property
    def _says_all(self) -> bool:
        return self.lead is not None and self.lead.says_all

    @property
    def hints_given(self) -> int:
        return self._given.count

    @property
    def searching(self) -> bool:
        """Whether the search for the wrong line still runs."""
        return self._looking.running

    def parts(self, pictures: bool = True) -> list[object]:
        """Return the parts for feedback.as_text and feedback.as_html."""
        return [*self.findings(pictures), *self.notes()]

    def findings(self, pictures: bool = True) -> list[object]:
        """Return the verdict's parts, and which marked places are still empty."""
        note = f"Only the case {self._case} was run." if self._case else ""
        note = " ".join(filter(None, [note, working_copies.name_both(self._subject.path)]))
        drawn = self.pictures if pictures else []
        parts = feedback.verdict_parts(
            self.verdict, self._subject.text, drawn, self._subject.where, self._times, note, self.lead
        )
        if self.verdict.outcome is Outcome.failed and (empty := exercises.still_empty(self._subject.text)):
            parts.append(Words(empty, "lead"))
        return parts

    def notes(self) -> list[object]:
        """Return the hints given so far, what is new, and how to get the next hint."""
        parts: list[object] = []
        for number, text in enumerate([] if self._says_all else self._hints[: self._given.count], 1):
            parts += [Words(f"Hint {number} of {len(self._hints)}", "lead"), Words(text)]
        parts += [Words(self._news, "soft")] if self._news else []
        parts += (
            [Words("The search for the wrong line is still running. `.hint()` waits for it.", "soft")]
            if self._looking.running
            else []
        )
        if self.has_more_hints:
            parts.append(Words(self._next_step, "soft"))
        return parts

    def __repr__(self) -> str:
        return feedback.as_text(self.parts())

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return feedback.bundle(self.parts())

    def _ipython_display_(self) -> None:
        """Display it in a notebook, with what comes later. Raises NotImplementedError elsewhere."""
        from grader.notebook import live

        live.show(self)


class Hint(str):
    """A hint that displays itself."""

    head: str

    def __new__(cls, text: str, number: int, total: int) -> Hint:
        hint = super().__new__(cls, text)
        hint.head = f"Hint {number} of {total}" if number else ""
        return hint

    def parts(self) -> list[object]:
        return [*([Words(self.head, "title")] if self.head else []), Words(str(self))]

    def __repr__(self) -> str:
        return feedback.as_text(self.parts())

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return feedback.bundle(self.parts())
