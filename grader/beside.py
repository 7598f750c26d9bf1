"""Looks for the wrong line while the judge still works: a second core compiles the edits as soon as one case has wrong values."""

from __future__ import annotations

import threading
from collections.abc import Callable

from grader import repair, sandbox
from grader.contract import Source
from grader.verdict import Reason, Stage, Status, Verdict


class Beside:
    """A repair.Search in a thread of its own, told by the judge what it needs; `lead` waits for it.

    The judge calls `wrong` when the first case fails by its values and `ended` after the stage "correct"; it makes inputs and right answers (which
    draws from torch's one generator), the thread only runs edits on them. start: as sandbox.start.
    """

    def __init__(self, start: Callable[..., sandbox.Process] = sandbox.start):
        self.start = start
        self.search: repair.Search | None = None
        self.thread: threading.Thread | None = None
        self.told = threading.Event()
        self.reason: Reason | None = None
        self.cases: list[repair.Tried] = []

    def wrong(self, source: Source) -> None:
        """A case has wrong values: begin."""
        if self.thread is None:
            self.search = repair.Search(source, self.start)
            self.thread = threading.Thread(target=self._run, daemon=True)
            self.thread.start()

    def ended(self, stage: Stage, problem, trials: list) -> None:
        """The stage "correct" is over. trials: the judge's, with what each case should give."""
        if self.thread is None:
            return
        if stage.reason in repair.WANTED:
            went = {case.name: case.status for case in stage.cases}
            by_name = {trial.case.name: trial for trial in trials}
            for case in repair.chosen([trial.case for trial in trials], went):
                trial = by_name[case.name]
                fails = went[case.name] is Status.failed
                self.cases.append(repair.tried(problem, case, trial.instance, trial.expected, trial.eager, trial.noise, fails))
            self.reason = stage.reason
        self.told.set()

    def lead(self, verdict: Verdict) -> repair.Lead | None:
        """The line to look at, with evidence; None where there is none, or nothing was looked for."""
        if self.thread is None:
            return None
        self.told.set()
        self.thread.join()
        return self.search.said(verdict) if repair.wanted(verdict) else None

    def close(self) -> None:
        """End the search, wherever it is."""
        self.told.set()
        self.cases = []
        if self.search is not None:
            self.search.close()

    def _run(self) -> None:
        try:
            self.search.prepare()
            self.told.wait()
            if self.cases and self.search.edits:
                self.search.run(self.reason, self.cases)
        except (repair.Lost, sandbox.SandboxError):
            pass
        finally:
            self.search.close()
