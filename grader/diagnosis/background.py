"""Fault localization in parallel with the judge: a second core compiles the mutants once a case has wrong values."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from grader.diagnosis import fault_localization
from grader.diagnosis.mutant_worker import WorkerLost
from grader.diagnosis.search_cases import SearchCase, make_search_cases
from grader.source.contract import Source
from grader.verdict import Reason, Stage, Verdict
from grader.worker import sandbox

if TYPE_CHECKING:
    from grader.judging.trial import Trial
    from grader.problems.problem import Problem

LEAST_S = 0.5  # that a search gets after its cases were made


class BackgroundDiagnosis:
    """Fault localization in a separate thread, as an observer of the judge; `lead` waits for it.

    It starts when the first case has wrong values, and runs mutants once the stage is over. The judge makes inputs and
    expected outputs, because that draws from torch's only generator; the thread only runs mutants on them. start: as
    sandbox.start.
    """

    def __init__(self, start: Callable[..., sandbox.Process] = sandbox.start):
        self.start = start
        self.search: fault_localization.Search | None = None
        self.thread: threading.Thread | None = None
        self.ready = threading.Event()  # set once the stage is over, or the search must end
        self.reason: Reason | None = None
        self.gradient: str | None = None  # the one that the stage names
        self.cases: list[SearchCase] = []
        self.on_gpu = False  # the judge's cases lie there, and lead() makes them anew on the CPU

    def case_failed(self, source: Source, exercise: str, reason: Reason, device: str) -> None:
        """Start the search, if it can help. exercise: its name. device: of the judge; mutants run on the CPU."""
        if self.thread is None and reason in fault_localization.WANTED:
            self.on_gpu = device != "cpu"
            self.search = fault_localization.Search(source, exercise, self.start)
            self.thread = threading.Thread(target=self._run, args=(self.search,), daemon=True)
            self.thread.start()

    def stage_failed(self, stage: Stage, problem: Problem, trials: list[Trial]) -> None:
        """Take the cases on which to run mutants. trials: the judge's, with each case's expected outputs."""
        if self.thread is None or self.on_gpu:
            return
        if stage.reason in fault_localization.WANTED:
            self.cases = make_search_cases(problem, stage, trials)
            self.reason, self.gradient = stage.reason, fault_localization.failed_gradient(stage)
        self.ready.set()

    def judged(self, verdict: Verdict) -> None:
        pass

    @property
    def running(self) -> bool:
        """Return whether the search still runs."""
        return self.thread is not None and self.thread.is_alive()

    def lead(
        self, verdict: Verdict, seconds: float | None = None, problem: Path | None = None
    ) -> fault_localization.Lead | None:
        """Return the line to blame, with evidence.

        None if there is no such line, nothing was searched, or the search does not end within `seconds`, in which the
        cases are made for a verdict of a GPU. problem: its model.py, needed for that.
        """
        if self.thread is None or self.search is None:
            return None
        begun = time.monotonic()
        if self.on_gpu and problem is not None and not self.ready.is_set() and fault_localization.wanted(verdict):
            self.cases, self.reason = fault_localization.remake_cases(problem, verdict), verdict.reason
            self.gradient = fault_localization.failed_gradient(verdict.first_problem)
        self.ready.set()
        left = None if seconds is None else max(LEAST_S, begun + seconds - time.monotonic())
        self.thread.join(left)
        done = not self.running and fault_localization.wanted(verdict)
        return self.search.best_candidate(verdict) if done else None

    def close(self) -> None:
        """End the search at its current step."""
        self.ready.set()
        self.cases = []
        if self.search is not None:
            self.search.close()

    def _run(self, search: fault_localization.Search) -> None:
        try:
            search.prepare()
            self.ready.wait()
            if self.cases and search.candidates:
                search.run(self.reason, self.cases, self.gradient)
        except (WorkerLost, sandbox.SandboxError):
            pass
        finally:
            search.close()


class Looking:
    """The result of a search, or the search while it runs."""

    def __init__(
        self,
        lead: fault_localization.Lead | None = None,
        diagnosis: BackgroundDiagnosis | None = None,
        verdict: Verdict | None = None,
    ):
        self._lead, self._diagnosis, self._verdict = lead, diagnosis, verdict

    @property
    def running(self) -> bool:
        """Return whether the search still runs."""
        return self._diagnosis is not None and self._diagnosis.running

    @property
    def lead(self) -> fault_localization.Lead | None:
        """Return the line to blame; None while the search runs."""
        return None if self.running else self.wait()

    def wait(self) -> fault_localization.Lead | None:
        """Wait for the search to end and return the line to blame."""
        if self._diagnosis is not None:
            assert self._verdict is not None  # the constructor gets it with every search
            self._lead = self._diagnosis.lead(self._verdict)
            self.close()
        return self._lead

    def close(self) -> None:
        """End the search."""
        if self._diagnosis is not None:
            self._diagnosis.close()
        self._diagnosis = None
