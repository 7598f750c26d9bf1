"""Grade one submission: run its stages in order and return a verdict.

The judge owns seed, inputs, expected outputs and timer; the worker, which runs the submission, never sees them.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import secrets
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from grader.judging.context import Context, Request, guess_problem_name
from grader.judging.observer import NoObserver, Observer
from grader.judging.results import VALUE_REASONS, end_stage, fail_stage, is_own_work_missing, skip_stage
from grader.judging.trial import PRINTED_CHARACTERS, FindingError, Limits, Progress, Refused
from grader.paths import find_place
from grader.source.contract import Source
from grader.verdict import EXPLANATIONS, Evidence, Reason, Stage, StageName, Status, Submission, Verdict, outcome_of
from grader.worker import sandbox
from simt.own_torch import with_own_torch

__all__ = ["Limits", "Refused", "grade"]

DEFAULT_LIMITS = Limits()
ON_GPU = (StageName.correct, StageName.safe, StageName.gradient, StageName.fast)  # "build" does it for parts alone
NOT_OWN = "Skipped, because the submission's own kernels do not compute the results."
NOT_OWN_GRADIENT = "Skipped, because the submission's own kernels do not compute the gradients."


class _Interrupted(Exception):
    """The keyboard has ended a stage: no further one is run."""


@with_own_torch
def grade(
    path: str | Path,
    problem: str | Path | None = None,
    overrides: dict[str, str] | None = None,
    device: str | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    limits: Limits = DEFAULT_LIMITS,
    require_sandbox: bool = False,
    case: str | None = None,
    worker: Callable[..., sandbox.Process] | None = None,
    observer: Observer | None = None,
    folder: Path | None = None,
    predict: str | None = None,
) -> Verdict:
    """Grade one submission.

    problem: a KernelBench file; found by the submission's name if None. overrides: its literals to replace, as text.
    device: "cpu", "cuda", or None for a GPU where there is one. seed: of inputs and weights; a secret one if None.
    progress: called with a stage and a few words. case: the name of the only case to run; Refused if there is none.
    worker: starts the process instead of sandbox.start, which has the same arguments. observer: receives what fails
    while the grading goes on. folder: the folder that holds several submissions, below which no link is followed; None
    for a single file. predict: the GPU whose time is predicted where this machine has none; on a GPU that one's time is
    predicted, next to the measured one; None: no time is. Nothing that a submission does makes this raise. It raises
    ProblemError for an unusable problem and Refused if the machine lacks what the options need. An interrupt from the
    keyboard ends the worker and gives a verdict whose reason is `interrupted`.
    """
    context = make_context(
        path,
        problem,
        overrides,
        device,
        seed,
        progress,
        limits,
        require_sandbox,
        case,
        worker,
        observer,
        folder,
        predict,
    )
    try:
        with contextlib.suppress(_Interrupted):
            _run_stages(context)
        return _make_verdict(context)
    finally:
        context.close()
        context.forget()


def make_context(
    path: str | Path,
    problem: str | Path | None = None,
    overrides: dict[str, str] | None = None,
    device: str | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    limits: Limits = DEFAULT_LIMITS,
    require_sandbox: bool = False,
    case: str | None = None,
    worker: Callable[..., sandbox.Process] | None = None,
    observer: Observer | None = None,
    folder: Path | None = None,
    predict: str | None = None,
) -> Context:
    """Return the state in which a grading begins; the arguments are those of grade(). The caller closes it."""
    path = Path(path)
    request = Request(
        path=path,
        place=find_place(path, folder),
        problem_path=Path(problem) if problem is not None else None,
        overrides=overrides or {},
        device=device,
        seed=secrets.randbits(48) if seed is None else seed,
        limits=limits,
        require_sandbox=require_sandbox,
        case=case,
        folder=folder,
        start_process=worker or sandbox.start,
        predict=predict,
    )
    return Context(
        request=request,
        report=progress or (lambda stage, text: None),
        observer=observer or NoObserver(),
        problem_name=guess_problem_name(path, request.problem_path, folder),
        source=Source(path, "", ""),
        versions={"python": platform.python_version()},
        results=[Stage(name=name, status=Status.skipped, reason=Reason.not_reached) for name in StageName],
    )


def _run_stages(context: Context) -> None:
    """Run the stages in order. One that does not pass is the last, except that "safe" may explain "correct".

    On a GPU the same file is graded on the CPU from the build on. Where that would disturb the timing, its result is
    awaited first.
    """
    if context.request.device != "cpu" and sandbox.has_gpu():
        _carry_out(context, context.result(StageName.contract), "grader.judging.both", "start_process")
    if not _run_stage(context, StageName.contract):
        return
    if context.gpu:
        _carry_out(context, context.result(StageName.contract), "grader.judging.both", "begin")
        _carry_out(context, context.result(StageName.contract), "grader.judging.worker_process", "start_trusted")
    if not _run_stage(context, StageName.build):
        return
    is_correct = _run_stage(context, StageName.correct)
    if is_correct and context.request.case is None:
        _carry_out(context, context.result(StageName.build), "grader.judging.prediction", "build_ahead")
    if is_correct or _are_values_wrong(context.result(StageName.correct)):
        _run_stage(context, StageName.safe)
    waits = not context.times_beside
    if waits:
        _join_run_beside(context, StageName.safe, "join")
    if is_correct and not _has_failed(context, StageName.correct, StageName.safe):
        _run_stage(context, StageName.gradient)
        if waits:
            _join_run_beside(context, StageName.gradient, "join_gradient")
        if not _has_failed(context, StageName.gradient):
            _run_stage(context, StageName.fast)
    if not waits:
        _join_run_beside(context, StageName.safe, "join")
        _join_run_beside(context, StageName.gradient, "join_gradient")
        _drop_later_stages(context)
    _join_run_beside(context, StageName.fast, "join_fast")
    _examine_kernels(context)  # it may end the worker
    if _is_predicted(context):
        context.observer.judged(_make_verdict(context))
        _carry_out(context, context.result(StageName.fast), "grader.judging.prediction", "run")


def _join_run_beside(context: Context, name: StageName, step: str) -> None:
    """On a GPU, complete a stage with what the same file showed on the CPU. Only "safe" may not have been run."""
    reached = name is StageName.safe or context.result(name).reason is not Reason.not_reached
    if context.beside is not None and reached:
        _carry_out(context, context.result(name), "grader.judging.both", step)


def _drop_later_stages(context: Context) -> None:
    """Leave out the stages after the first that the run on the CPU has let fail since."""
    if _has_failed(context, StageName.correct, StageName.safe):
        _skip_stages(context, "", StageName.gradient, StageName.fast)
    elif _has_failed(context, StageName.gradient):
        _skip_stages(context, "", StageName.fast)


def _has_failed(context: Context, *names: StageName) -> bool:
    return any(context.result(name).status in (Status.failed, Status.error) for name in names)


def _is_predicted(context: Context) -> bool:
    """Return whether a time is to be predicted: of a submission that passed, where there is no GPU to measure it."""
    fast, request = context.result(StageName.fast), context.request
    return fast.reason is Reason.no_gpu and bool(request.predict) and request.case is None


def _examine_kernels(context: Context) -> None:
    """Find out whether the submission's own kernels computed what is right, in a submission that failed later too.

    What they did not compute does not count, so that the stages after it are skipped.
    """
    statuses = [stage.status for stage in context.results]
    if Status.error in statuses or (Status.failed in statuses and context.problem.allowed_operators is None):
        return
    correct, gradient = context.result(StageName.correct), context.result(StageName.gradient)
    if not is_own_work_missing(correct):
        _add_to_stage(context, StageName.correct, "examine_forward")
    if is_own_work_missing(correct):
        _skip_stages(context, NOT_OWN, StageName.safe, StageName.gradient, StageName.fast)
        return
    _add_to_stage(context, StageName.gradient, "examine_backward")
    if is_own_work_missing(gradient):
        _skip_stages(context, NOT_OWN_GRADIENT, StageName.fast)
    _add_to_stage(context, StageName.build, "mark_missing_build")


def _skip_stages(context: Context, message: str, *names: StageName) -> None:
    """Leave out stages that do not count, with what they found."""
    for stage in map(context.result, names):
        skip_stage(stage, Reason.not_reached, message)
        stage.evidence, stage.cases, stage.measurements = [], [], []


def _run_stage(context: Context, name: StageName) -> bool:
    """Run a stage; return whether it did not fail. Raises ProblemError and Refused alone."""
    stage = context.result(name)
    stage.status, stage.reason = Status.passed, None
    succeeded = _carry_out(context, stage, f"grader.judging.stages.{name}", "run")
    if not succeeded and context.beside is not None:
        context.show_finding(stage, stage.message)
    return succeeded


def _add_to_stage(context: Context, name: StageName, step: str) -> None:
    """Run a step of kernel_use, whose findings belong to a stage that has ended."""
    _carry_out(context, context.result(name), "grader.judging.kernel_use", step)


def _carry_out(context: Context, stage: Stage, module: str, function: str) -> bool:
    """Call a function and time it, and turn whatever happens in it into the stage's result. Raises _Interrupted."""
    begun = time.monotonic()
    try:
        context.report(stage.name, "")
        alone = context.take_gpu(stage.name) if function == "run" and stage.name in ON_GPU else contextlib.nullcontext()
        with alone:
            begun = time.monotonic()
            # Imported here: most stages need torch, and the first starts the worker before it loads torch.
            getattr(importlib.import_module(module), function)(context, stage)
    except FindingError as error:
        fail_stage(stage, error.finding)
    except KeyboardInterrupt:
        before = f" What was found before: {stage.message}" if stage.message else ""
        end_stage(stage, Status.error, Reason.interrupted, EXPLANATIONS[Reason.interrupted] + before, [])
        raise _Interrupted from None
    except Exception as error:
        _end_unexpectedly(stage, error)
    finally:
        stage.seconds = round(stage.seconds + time.monotonic() - begun, 3)
    return stage.status not in (Status.failed, Status.error)


def _are_values_wrong(stage: Stage) -> bool:
    return stage.status is Status.failed and stage.reason in VALUE_REASONS


def _end_unexpectedly(stage: Stage, error: Exception) -> None:
    """End a stage where the grader, the problem or the machine is at fault, not the submission.

    Raises what grade() raises.
    """
    from grader.problems.cases import ProblemError

    if isinstance(error, (Refused, ProblemError)):
        raise error
    message, evidence = EXPLANATIONS[Reason.grader_error], []
    if type(error).__name__ == "OutOfMemoryError":
        message = (
            "The GPU has too little free memory for this problem at this size: wait until other programs that use it "
            "have ended, or lower the sizes with --set."
        )
    else:
        frames = traceback.extract_tb(error.__traceback__)
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        evidence = [Evidence(detail=f"{type(error).__name__} at {where}: {str(error)[:500]}")]
    end_stage(stage, Status.error, Reason.grader_error, message, evidence)


def _make_verdict(context: Context) -> Verdict:
    """Return the verdict from the stages' results."""
    for stage in context.results:
        if stage.reason is Reason.not_reached and not stage.message:
            stage.message = EXPLANATIONS[Reason.not_reached]
    return Verdict(
        problem=context.problem_name,
        submission=Submission(path=str(context.request.path), sha256=context.source.sha256),
        outcome=outcome_of(context.results),
        stages=context.results,
        device=_name_device(context.gpu),
        versions=context.versions,
        seed=context.request.seed,
        seconds=round(time.monotonic() - context.begun, 3),
        sandbox=context.process.description if context.process else sandbox.NOT_RUN,
        output=context.printed()[-PRINTED_CHARACTERS:],
        timeout=context.request.limits.own,
    )


def _name_device(gpu: bool) -> str:
    if not gpu:
        return f"cpu ({platform.machine()}, {os.cpu_count()} cores)"
    import torch

    return torch.cuda.get_device_name()
