"""The student's desk: check a kernel in a notebook and see what is wrong, where and why; hints one step at a time."""

from __future__ import annotations

import contextlib
import hashlib
import time
from pathlib import Path

from grader import cells, hints, repair, sandbox, shown, student, warm
from grader.beside import Beside, Looking
from grader.shown import Words
from grader.verdict import Outcome, Reason, StageName, Verdict
from grader.waiting import waiting

ROOT = Path(__file__).resolve().parent.parent
_kept: dict[str, tuple[Verdict, list, Looking]] = {}  # verdicts, pictures, lines to look at, by everything that they depend on
KEPT = 64
_looking = Looking()  # the last check's search
PATIENCE = 3.0  # seconds from the start of a check that it waits for the search at most; where outputs are compared, it waits until the end


class Interrupted(KeyboardInterrupt):
    """The check was stopped from the keyboard; its worker is gone. IPython shows the sentence without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class CannotCheck(ValueError):
    """There is nothing that can be checked; the text says what to do. IPython shows it without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def check(what, *, case: str | None = None, hints: int = 0, problem: str | Path | None = None, seed: int | None = None, times: bool = False) -> Checked:
    """Grade a kernel and show the verdict: its stages, the first failure in plain words, the lines, pictures.

    what: a problem's name ("groupnorm" is kernels_student/groupnorm.py), the path of a file, or a ModelNew class defined in this
    notebook. case: run this one only. hints: how many to show at once. problem: the name or the file of the problem, where `what`
    does not say it. seed: of inputs and weights; without it, the same each time for a problem, so that a second look at the same
    kernel shows the same numbers (`grader grade` draws a secret one). times: show seconds too.
    A kernel that has not changed is not run again. Raises CannotCheck, and Interrupted where the keyboard stops it.
    """
    try:
        return _checked(what, case, hints, problem, seed, times)
    except KeyboardInterrupt:
        sandbox.end_all()
        raise Interrupted(STOPPED) from None


def _checked(what, case, hints_shown, problem, seed, times) -> Checked:
    subject = _subject(what, problem)
    seed = _seed(subject.problem) if seed is None else seed
    key = warm.key(subject.text, subject.problem_file, (str(subject.path), case, seed))
    stays = warm.self_contained(subject.text, subject.path.parent)
    if stays and key in _kept:
        verdict, pictures, looking = _kept[key]
        news = "" if verdict.outcome is Outcome.passed or subject.cells else UNCHANGED
        return Checked(verdict, subject, pictures, looking, hints_shown, times, case=case, news=news)
    verdict, pictures, looking = _graded(subject, case, seed)
    if stays and warm.keepable(verdict):
        while len(_kept) >= KEPT:
            del _kept[next(iter(_kept))]
        _kept[key] = verdict, pictures, looking
    return Checked(verdict, subject, pictures, looking, hints_shown, times, case=case, news=_note(verdict, case, subject))


def _graded(subject: cells.Subject, case: str | None, seed: int) -> tuple[Verdict, list, Looking]:
    """The verdict, its pictures, and where values are wrong the line that an edit shows to be the cause, or the search for it."""
    from grader.cases import ProblemError
    from grader.judge import Refused, grade

    global _looking
    if _looking.running:
        _looking.close()  # another kernel is of interest now
    begun, beside, looking = time.monotonic(), Beside(warm.SECOND.start), Looking()
    try:
        with waiting(subject.name) as progress:
            verdict = grade(subject.path, problem=subject.problem_file, seed=seed, progress=progress, case=case, worker=warm.SPARE.start, beside=beside)
            if verdict.reason is Reason.interrupted:
                raise KeyboardInterrupt
            pictures = _pictures(verdict)
            if not shown.plain():
                for picture in pictures:  # drawn while the search goes on; kept until they are shown
                    picture.svg()
            say = lambda words: progress(StageName.safe, f"looking for the wrong line {words}")  # noqa: E731
            say("")
            if subject.problem_file and not verdict.device.startswith("cpu"):  # on a GPU the edits wait for its verdict
                looking = Looking(repair.lead(subject.path, subject.text, subject.problem_file, verdict, progress=say))
            else:
                lead = beside.lead(verdict, None if shown.plain() else max(0.0, begun + PATIENCE - time.monotonic()))
                looking = Looking(lead, beside if beside.running else None, verdict)
    except (ProblemError, Refused) as error:
        raise CannotCheck(str(error)) from None
    finally:
        if not looking.running:
            beside.close()
    _looking = looking
    warm.prepare()
    return verdict, pictures, looking


UNCHANGED = "The file is what it was at the last check: if you have edited it, save it first."
STOPPED = "Interrupted: the check was stopped and its worker has ended; run the cell again to start anew."


def _pictures(verdict: Verdict) -> list:
    """grader.pictures of it; none where they, or matplotlib, are missing."""
    with contextlib.suppress(ImportError):
        from grader import pictures

        return pictures.of(verdict)
    return []


def _note(verdict: Verdict, case: str | None, subject: cells.Subject) -> str:
    """Tell the student's progress of it, unless outputs are being compared; what is new, in a sentence."""
    if shown.plain() or case is not None:
        return ""
    with contextlib.suppress(Exception):  # a lost note is no reason to lose the verdict
        from grader import progress

        return progress.note(verdict, subject.problem if subject.cells else None)
    return ""


def _seed(name: str) -> int:
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)


def _subject(what, problem) -> cells.Subject:
    try:
        return cells.subject(what, problem)
    except cells.NothingThere as error:
        raise CannotCheck(str(error)) from None


class Checked:
    """A verdict that displays itself. verdict: the judge's; pictures: what explains it; hint(): one step further each time."""

    def __init__(
        self, verdict: Verdict, subject: cells.Subject, pictures: list, looking: Looking | None = None, hints_shown: int = 0,
        times: bool = False, case: str | None = None, news: str = "",
    ):  # fmt: skip
        self.verdict, self.pictures = verdict, pictures
        self._looking = looking or Looking()
        self._late = self._looking.running
        self._subject, self._times, self._case, self._news = subject, times, case, news
        self._hints = hints.of(verdict)
        self._given = 0
        for _ in range(min(hints_shown, len(self._hints))):
            self.hint()

    @property
    def lead(self) -> repair.Lead | None:
        """The line that an edit shows to be wrong, if one is known by now."""
        return self._looking.lead

    @property
    def passed(self) -> bool:
        return self.verdict.outcome is Outcome.passed

    def hint(self) -> Hint:
        """The next hint: plainer than the one before. If the wrong line was still being looked for, the first one waits for it."""
        if self._late:
            try:
                found = self._looking.wait()
            except KeyboardInterrupt:
                self._looking.close()
                raise Interrupted(STOPPED) from None
            self._late = False
            if found:
                self._hints = [shown.moved(found.words, self._subject.where), *self._hints]
        if self._hints and self._given < len(self._hints):
            self._given += 1
            return Hint(self._hints[self._given - 1], self._given, len(self._hints))
        if self.passed:
            return Hint("It passed: there is nothing to hint at.", 0, 0)
        return Hint("That was the last hint." if self._hints else "There is no hint for this.", 0, 0)

    def parts(self, pictures: bool = True) -> list[object]:
        """What there is to show, for shown.as_text and shown.as_html."""
        note = f"only the case {self._case}" if self._case else ""
        drawn = self.pictures if pictures else []
        parts = shown.verdict_parts(self.verdict, self._subject.text, drawn, self._subject.where, self._times, note, self.lead)
        if self.verdict.outcome is Outcome.failed and (empty := student.still_empty(self._subject.text)):
            parts.append(Words(empty, "lead"))
        for number, text in enumerate(self._hints[: self._given], 1):
            parts += [Words(f"Hint {number} of {len(self._hints)}", "lead"), Words(text)]
        parts += [Words(self._news, "soft")] if self._news else []
        parts += [Words("The wrong line is still being looked for: `.hint()` waits for it.", "soft")] if self._looking.running else []
        if self._given < len(self._hints):
            parts.append(Words("`.hint()` of this result gives a hint, and a plainer one each time.", "soft"))
        return parts

    def __repr__(self) -> str:
        return shown.as_text(self.parts())

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return shown.bundle(self.parts())


class Hint(str):
    """A hint that displays itself."""

    def __new__(cls, text: str, number: int, total: int):
        made = super().__new__(cls, text)
        made.head = f"Hint {number} of {total}" if number else ""
        return made

    def parts(self) -> list[object]:
        return ([Words(self.head, "title")] if self.head else []) + [Words(str(self))]

    def __repr__(self) -> str:
        return shown.as_text(self.parts())

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return shown.bundle(self.parts())
