"""The protocol by which the judge reports failures while it grades, before there is a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from grader.source.contract import Source
from grader.verdict import Reason, Stage, Verdict

if TYPE_CHECKING:
    from grader.judging.trial import Trial
    from grader.problems.problem import Problem


class Observer(Protocol):
    """Receives what the judge sees. Calls come from the grading thread, which waits for them: return soon."""

    def case_failed(self, source: Source, exercise: str, reason: Reason, device: str) -> None:
        """Handle a case that failed in "correct" or "gradient". exercise: what the submission answers."""
        ...

    def stage_failed(self, stage: Stage, problem: Problem, trials: list[Trial]) -> None:
        """Handle the end of "correct" or "gradient" where a case failed; the stage has its reason and its cases.

        trials: of all cases up to now, with expected outputs and, after "gradient", expected gradients.
        """
        ...

    def judged(self, verdict: Verdict) -> None:
        """Handle the verdict on a submission that passed, whose time is predicted next."""
        ...


class NoObserver:
    """An observer that ignores everything."""

    def case_failed(self, source: Source, exercise: str, reason: Reason, device: str) -> None:
        pass

    def stage_failed(self, stage: Stage, problem: Problem, trials: list[Trial]) -> None:
        pass

    def judged(self, verdict: Verdict) -> None:
        pass
