"""Looks for the wrong line while the judge still works: a second core compiles the edits as soon as one case has wrong values."""

from __future__ import annotations

import threading
from collections.abc import Callable

from grader import repair, sandbox
from grader.contract import Source
from grader.verdict import Reason, Stage, Verdict


class Beside:
    """A repair.Search in a thread of its own, told by the judge what it needs; `lead` waits for it.

    The judge calls `wrong` when the first case fails by its values and `ended` after that stage ("correct", "gradient"); it makes inputs
    and right answers (which draws from torch's one generator), the thread only runs edits on them. start: as sandbox.start.
    """

    def __init__(self, start: Callable[..., sandbox.Process] = sandbox.start):
        self.start = start
        self.search: repair.Search | None = None
        self.thread: threading.Thread | None = None
        self.told = threading.Event()
        self.reason: Reason | None = None
        self.cases: list[repair.Tried] = []

    def wrong(self, source: Source, exercise: str = "") -> None:
        """A case has wrong values: begin. exercise: what the file answers."""
        if self.thread is None:
            self.search = repair.Search(source, exercise, self.start)
            self.thread = threading.Thread(target=self._run, daemon=True)
            self.thread.start()

    def ended(self, stage: Stage, problem, trials: list) -> None:
        """The stage is over. trials: the judge's, with what each case should give."""
        if self.thread is None:
            return
        if stage.reason in repair.WANTED:
            self.cases = repair.all_tried(problem, stage, trials)
            self.reason = stage.reason
        self.told.set()

    @property
    def running(self) -> bool:
        """Whether it is still looking."""
        return self.thread is not None and self.thread.is_alive()

    def lead(self, verdict: Verdict, seconds: float | None = None) -> repair.Lead | None:
        """The line to look at, with evidence; None where there is none, nothing was looked for, or it is not found within so many seconds."""
        if self.thread is None:
            return None
        self.told.set()
        self.thread.join(seconds)
        return self.search.said(verdict) if not self.running and repair.wanted(verdict) else None

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


class Looking:
    """What a search has found, or the search while it still runs."""

    def __init__(self, lead: repair.Lead | None = None, beside: Beside | None = None, verdict: Verdict | None = None):
        self._lead, self._beside, self._verdict = lead, beside, verdict

    @property
    def running(self) -> bool:
        """Whether it is still looking."""
        return self._beside is not None and self._beside.running

    @property
    def lead(self) -> repair.Lead | None:
        """The line, if it is known by now."""
        return None if self.running else self.wait()

    def wait(self) -> repair.Lead | None:
        """The line, when the search is done."""
        if self._beside is not None:
            self._lead = self._beside.lead(self._verdict)
            self.close()
        return self._lead

    def close(self) -> None:
        """Look no further."""
        if self._beside is not None:
            self._beside.close()
        self._beside = None
