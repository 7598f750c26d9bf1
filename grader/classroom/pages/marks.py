"""What a page says of a grade in a word: passed, failed, missing, and so on."""

from __future__ import annotations

from dataclasses import dataclass

from grader.classroom.collect import State
from grader.classroom.gradebook import Grade
from grader.verdict import Outcome, Reason, StageName, Verdict

SYMBOLS = {  # next to a word: no state is told by its colour alone
    "passed": "✓",
    "failed": "✗",
    "error": "!",
    "skipped": "–",
    "not attempted": "○",
    "waiting": "…",
    "missing": "–",
    "unreadable": "?",
    "wrong name": "?",
}


@dataclass(frozen=True)
class Mark:
    """The state of a student's work on a problem. word: of SYMBOLS; stage, reason: where and why it failed."""

    word: str
    stage: StageName | None = None
    reason: Reason | None = None

    @property
    def symbol(self) -> str:
        """Return the sign that stands next to the word."""
        return SYMBOLS[self.word]

    @property
    def tone(self) -> str:
        """Return the word as a class of the style sheet."""
        return self.word.replace(" ", "_")

    @property
    def why(self) -> str:
        """Return the reason in words, empty without one."""
        return write_reason(self.reason)


def find_verdict(grade: Grade) -> Verdict | None:
    """Return the verdict on the attempt that counts; None without one."""
    return grade.counted.graded.verdict if grade.counted and grade.counted.graded else None


def make_mark(grade: Grade) -> Mark:
    """Return the state of a student's work."""
    verdict = find_verdict(grade)
    if verdict is not None:
        return mark_verdict(verdict)
    if grade.attempts:
        return Mark("waiting")
    state = State.missing if grade.state is State.attempt else grade.state
    return Mark(state.value.replace("_", " "))


def mark_verdict(verdict: Verdict) -> Mark:
    """Return what a verdict on a submission says, in a word: not one of the grader's own errors."""
    if verdict.outcome is Outcome.passed:
        return Mark("passed", None, verdict.doubt)
    stage = verdict.first_problem
    name, reason = (stage.name, stage.reason) if stage else (None, None)
    word = "not attempted" if verdict.outcome is Outcome.not_attempted else "failed"
    return Mark(word, name, reason)


def write_reason(reason: Reason | None) -> str:
    """Return a reason in words."""
    return reason.value.replace("_", " ") if reason else ""
