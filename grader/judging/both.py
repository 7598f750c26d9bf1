"""One verdict from two runs: while a submission is built and run on a GPU, the same file is graded on the CPU.

Only there do simt's checks see each access: what they find decides the stage "safe", and what the CPU tells of a wrong
result, its place and its kernels, is told. Whether values are right is for the GPU to say, as functions round
differently; where the two disagree, the verdict says which of them is which. Loads no torch.
"""

from __future__ import annotations

import contextlib
import os

from grader.judging.context import Context
from grader.judging.processes.beside import Beside, prepare
from grader.judging.processes.judge import Order
from grader.judging.results import MAX_MESSAGE, VALUE_REASONS
from grader.verdict import EXPLANATIONS, NOT_OWN_WORK, Reason, Stage, StageName, Status, Verdict
from grader.worker import sandbox
from simt.devices import UnknownDevice, find_name

VALUES = VALUE_REASONS | {Reason.wrong_gradient, Reason.nondeterministic_gradient}
# With these the CPU could not run the file to its end, which says nothing against it; and with them on the GPU a right
# run on the CPU says nothing of the GPU.
CANNOT_TELL = {
    *(Reason.timeout, Reason.kernel_timeout, Reason.build_timeout, Reason.out_of_memory, Reason.unsupported_cuda),
    *(Reason.exception, Reason.backward_exception, Reason.crash, Reason.launch_error, Reason.wrong_device),
}
# What a GPU shows, and what the CPU calls it, with the kernel and the line.
_SAME = {
    (Reason.timeout, Reason.kernel_timeout),
    (Reason.exception, Reason.launch_error),
    (Reason.backward_exception, Reason.launch_error),
}
GPU_IS_RIGHT = (
    "The run on the CPU found this. The GPU's results were right, but on another GPU or with another size they may not "
    "be."
)
CPU_IS_RIGHT = (
    "On the CPU the same cases give the expected results, and its checks find nothing: look for what only a GPU does, "
    "such as threads of a warp that run apart (a missing __syncwarp()), writes that another block sees in another "
    "order (a missing __threadfence()), blocks that run at the same time, and flags like --use_fast_math."
)


def start_process(context: Context, stage: Stage) -> None:
    """Start the process that will grade on the CPU, while this one loads torch. The stage is left as it is."""
    with contextlib.suppress(OSError):  # begin() tries again, and says what is missing
        prepare()


def begin(context: Context, stage: Stage) -> None:
    """Start the grading on the CPU. The stage that has ended is left as it is."""
    request = context.request
    model, gpu = request.problem_path or context.problem.path, _find_device()
    context.beside = Beside(
        Order(
            name=request.path.name,
            data=b"",
            model=os.path.abspath(model),
            settings=dict(request.overrides),
            seed=request.seed,
            device="cpu",
            require_sandbox=request.require_sandbox,
            seconds=request.limits.own,
            path=os.path.abspath(request.path),
            folder=os.path.abspath(request.folder) if request.folder else None,
            case=request.case,
            gpu=gpu,
            predict=gpu if request.predict else None,
            keep_ready=request.start_process is not sandbox.start,  # the caller keeps workers ready, too
        ),
        lambda verdict: _tell(context, verdict),
    )


def _tell(context: Context, verdict: Verdict) -> None:
    """Show what the CPU found while the GPU's run still goes on: its build takes longer than the whole other run."""
    first = verdict.first_problem
    if first is not None and not _find_obstacle(verdict):
        words = first.message or EXPLANATIONS[first.reason or Reason.grader_error]
        context.show_finding(first, f"on the CPU: {words}")


def _find_device() -> str | None:
    """Return simt's name of this machine's GPU, or None if it knows no such GPU."""
    import torch

    try:
        return find_name(torch.cuda.get_device_name())
    except UnknownDevice:
        return None


def join(context: Context, safe: Stage) -> None:
    """Write what the CPU found into the stages "correct" and "safe"."""
    context.report(StageName.safe, "waiting for the checks on the CPU")
    verdict = _wait(context)
    why = verdict if isinstance(verdict, str) else _find_obstacle(verdict)
    if why and safe.status is not Status.skipped:
        _add(safe, f"Not checked on the CPU: {why}")
    elif not why and isinstance(verdict, Verdict):
        combine(context.result(StageName.correct), safe, verdict)


def join_gradient(context: Context, stage: Stage) -> None:
    """Write what the CPU found in the stage "gradient" into it."""
    verdict = _wait(context)
    if isinstance(verdict, Verdict) and not _find_obstacle(verdict):
        combine_gradient(stage, verdict.stage(StageName.gradient))


def join_fast(context: Context, stage: Stage) -> None:
    """Put the time that the CPU's run predicts for this GPU beside the measured one."""
    verdict = _wait(context, whole=True)
    if isinstance(verdict, Verdict) and stage.measurements:
        stage.prediction = verdict.stage(StageName.fast).prediction


def _wait(context: Context, whole: bool = False) -> Verdict | str:
    assert context.beside is not None
    verdict = context.beside.wait_for_end() if whole else context.beside.wait()
    if isinstance(verdict, Verdict) and verdict.submission.sha256 != context.source.sha256:
        return "The file was changed meanwhile. Grade it again."
    return verdict


def _find_obstacle(verdict: Verdict) -> str:
    """Return why the CPU did not come to run the file, or ""."""
    first = verdict.first_problem
    if first is None or (first.status is Status.failed and first.name not in (StageName.contract, StageName.build)):
        return ""
    return first.message or EXPLANATIONS[first.reason or Reason.grader_error]


def combine(correct: Stage, safe: Stage, verdict: Verdict) -> None:
    """Write what the CPU's verdict says of these stages into the GPU's."""
    theirs, cause = verdict.stage(StageName.correct), verdict.stage(StageName.safe)
    if theirs.reason in NOT_OWN_WORK and theirs.status is Status.failed:
        _adopt(correct, theirs)
        return
    if theirs.reason in NOT_OWN_WORK and correct.status is Status.passed:  # a remark
        correct.reason, correct.message = theirs.reason, theirs.message
    if correct.status is Status.failed:
        _combine_failed(correct, theirs, ran_through=cause.status is not Status.failed)
        if cause.status is Status.failed:
            _adopt(safe, cause)
    elif cause.status is Status.failed:
        _adopt(safe, cause, GPU_IS_RIGHT if correct.status is Status.passed else "")
    elif theirs.status is Status.failed:
        _tell_disagreement(safe, theirs, "results")


def combine_gradient(gradient: Stage, theirs: Stage) -> None:
    """Write what the CPU says of the gradients into the GPU's stage."""
    if gradient.status is Status.failed:
        _combine_failed(gradient, theirs, ran_through=theirs.status is Status.passed)
    elif theirs.status is Status.failed and theirs.reason in NOT_OWN_WORK:
        _adopt(gradient, theirs)
    elif theirs.status is Status.failed:
        _tell_disagreement(gradient, theirs, "gradients")


def _combine_failed(mine: Stage, theirs: Stage, ran_through: bool) -> None:
    """Complete a stage that failed on the GPU. ran_through: nothing else was found on the CPU."""
    if theirs.status is not Status.failed:
        if ran_through and theirs.status is Status.passed and mine.reason not in CANNOT_TELL:
            _add(mine, CPU_IS_RIGHT)
    elif (mine.reason, theirs.reason) in _SAME:
        _adopt(mine, theirs)
    elif theirs.reason in CANNOT_TELL and theirs.reason is not mine.reason:
        _add(mine, f"Not checked on the CPU: {theirs.message}")
    elif theirs.reason in VALUES and mine.reason not in VALUES:
        _add(mine, f"On the CPU: {theirs.message}")
    else:
        _adopt(mine, theirs)


def _tell_disagreement(stage: Stage, theirs: Stage, results: str) -> None:
    """Complete a stage that passed on the GPU where the CPU's run failed."""
    if theirs.reason in CANNOT_TELL:
        _add(stage, f"Not checked to the end on the CPU: {theirs.message}")
    elif theirs.reason in VALUES:
        _add(
            stage,
            f"On the GPU the {results} are right, on the CPU they are not: {theirs.message} Nothing was found that "
            "explains it, so the GPU's word is taken.",
        )
    else:
        _adopt(stage, theirs, GPU_IS_RIGHT)


def _adopt(stage: Stage, theirs: Stage, more: str = "") -> None:
    """Let a stage have the CPU's result. What the GPU showed besides is said after it."""
    before = stage.message if stage.status is Status.failed and stage.reason is not theirs.reason else ""
    stage.status, stage.reason, stage.message = theirs.status, theirs.reason, theirs.message
    stage.evidence = theirs.evidence
    if before:
        _add(stage, f"On the GPU: {before}")
    elif more:
        _add(stage, more)
    known = {case.name: case for case in theirs.cases}
    kept = [case if case.status is Status.failed else known.pop(case.name, case) for case in stage.cases]
    names = {case.name for case in kept}
    stage.cases = kept + [case for case in theirs.cases if case.name not in names]


def _add(stage: Stage, sentence: str) -> None:
    stage.message = f"{stage.message} {sentence}".strip()[:MAX_MESSAGE]
