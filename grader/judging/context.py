"""What a stage is given, and what the stages before it left. Loads no torch."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Protocol

from grader.judging.observer import Observer
from grader.judging.trial import Finding, Limits, Progress, Trial, prepare_trial
from grader.paths import find_place
from grader.problems import exercises
from grader.source.contract import Source
from grader.verdict import Stage, StageName, Verdict
from grader.worker import sandbox
from grader.worker.turns import take_gpu

if TYPE_CHECKING:
    from grader.judging.session import Session
    from grader.judging.timing.watch import Canary
    from grader.problems.cases import Case
    from grader.problems.problem import Problem

IDLE_CORES = 12  # of a machine that has idle ones while the CPU's run compiles its three builds
SHOWN_CHARACTERS = 70  # of a finding, while the grading goes on


@dataclasses.dataclass(frozen=True)
class Request:
    """What grade() was called with; see there. place: where the submission lies, for its name and for the worker."""

    path: Path
    place: Path
    problem_path: Path | None
    overrides: dict[str, str]
    device: str | None
    seed: int
    limits: Limits
    require_sandbox: bool
    case: str | None
    folder: Path | None
    start_process: Callable[..., sandbox.Process]
    predict: str | None = None


class RunBeside(Protocol):
    """A grading of the same file that runs meanwhile."""

    def wait(self) -> Verdict | str:
        """Return its verdict, which may lack a prediction; or in a sentence why there is none."""
        ...

    def wait_for_end(self) -> Verdict | str:
        """Return its whole verdict, once its processes compute nothing any more."""
        ...

    def close(self) -> None:
        """End it if it still runs."""
        ...


@dataclasses.dataclass
class Context:
    """The state of one grading.

    report: shows a stage and a few words. results: of all stages, in order. process: the submission's worker. problem,
    gpu, versions: left by "contract". session, cases: by "build". trials: of the cases run up to now. differentiated:
    numbers of the inputs and names of the parameters that have a gradient, left by "gradient". canary: left by "build"
    on a GPU. beside: the grading on the CPU, on a GPU. trusted: a worker for the problem's Model that loads torch
    meanwhile, on a GPU. begun: when, on time's monotonic clock.
    """

    request: Request
    report: Progress
    observer: Observer
    problem_name: str
    source: Source
    versions: dict[str, str]
    results: list[Stage]
    process: sandbox.Process | None = None
    problem: Problem = dataclasses.field(init=False)
    gpu: bool = False
    session: Session = dataclasses.field(init=False)
    cases: list[Case] = dataclasses.field(default_factory=list)
    trials: list[Trial] = dataclasses.field(default_factory=list)
    differentiated: tuple[list[int], list[str]] = dataclasses.field(default_factory=lambda: ([], []))
    canary: Canary | None = None
    beside: RunBeside | None = None
    trusted: sandbox.Process | None = None
    begun: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def device(self) -> str:
        """Return torch's name of the device that is graded on."""
        return "cuda" if self.gpu else "cpu"

    @property
    def times_beside(self) -> bool:
        """Return whether a time on the GPU may be measured while the CPU's run goes on: enough cores stay idle."""
        return self.beside is not None and (os.cpu_count() or 1) >= IDLE_CORES

    @property
    def requires_gradient(self) -> bool:
        """Return whether the submission must have gradients: it answers a NAME_backward."""
        return self.problem_name != self.problem.name

    def result(self, name: StageName) -> Stage:
        """Return the result of a stage, as far as there is one."""
        return next(stage for stage in self.results if stage.name is name)

    def show_finding(self, stage: Stage, words: str) -> None:
        """Show what was found, and from now on before all else: the rest of the grading may take seconds more."""
        report, start = self.report, shorten(words, SHOWN_CHARACTERS, placeholder=" …")
        self.report = lambda name, text: report(name, f"{start} ({text})" if text else start)
        self.report(stage.name, "")

    def printed(self) -> str:
        """Return what the submission printed; empty where its worker never became ready."""
        session = getattr(self, "session", None)
        return session.client.printed() if session and session.client.versions else ""

    def make_trial(self, case: Case) -> Trial:
        """Return the case with its inputs and expected outputs, made once.

        Raises ProblemError where there is nothing to compare.
        """
        import torch

        from grader.problems.cases import check_comparable

        for trial in self.trials:
            if trial.case is case:
                return trial
        instance = self.problem.instantiate(case, self.request.seed, self.device)
        trial = prepare_trial(case, instance)
        if case in self.cases:
            check_comparable(case, trial.eager, self.problem.path)
        self.trials.append(trial)
        if self.gpu:  # both processes share the card: give back what the expected outputs took on the way
            torch.cuda.empty_cache()
        return trial

    def take_gpu(self, name: StageName) -> contextlib.AbstractContextManager[None]:
        """Wait until no other grading computes on the GPU, where there is one. In this context none does."""
        if not self.gpu:
            return contextlib.nullcontext()
        return take_gpu(lambda words: self.report(name, words))

    def notify_case(self, finding: Finding | None) -> None:
        """Report a case that failed to the observer."""
        if finding:
            self.observer.case_failed(self.source, self.problem_name, finding.reason, self.device)

    def release_memory(self) -> None:
        """On a GPU, have the worker unmap the judge's memory, then free it."""
        if not self.gpu:
            return
        for trial in self.trials:
            trial.first_outputs = []
        self.session.release_memory()

    def close(self) -> None:
        """End the workers, whatever state they are in, and the grading beside."""
        if self.beside is not None:
            self.beside.close()
        for process in (self.process, self.trusted):
            if process is not None:
                process.kill()

    def forget(self) -> None:
        """Drop what was computed, and give the GPU's memory back."""
        self.trials = []  # this process may grade again before the collector finds them, and they fill half a GPU
        if self.gpu:
            import torch

            torch.cuda.empty_cache()


def guess_problem_name(path: Path, problem_path: Path | None, folder: Path | None) -> str:
    """Return the problem's name as far as paths alone give it. folder: as for contract.read."""
    if problem_path is not None:
        name = problem_path.parent.name if problem_path.name == "model.py" else problem_path.stem
        return exercises.exercise_of(path, name, folder)
    model = exercises.model_of(path, folder)
    return exercises.exercise_of(path, model.parent.name, folder) if model else find_place(path, folder).stem
