"""The stage "contract": is the file a submission? Reads it and runs nothing of it. Loads no torch until it has to."""

from __future__ import annotations

from grader.judging.context import Context
from grader.judging.loading import uncollected
from grader.judging.trial import Finding, FindingError, Refused
from grader.judging.worker_process import start_worker
from grader.problems import exercises
from grader.source import contract
from grader.source.contract import Broken
from grader.verdict import EXPLANATIONS, Reason, Stage
from grader.worker import sandbox

CHANGED = "was replaced or changed after it was read. Grade it again when nothing writes to it."


def run(context: Context, stage: Stage) -> None:
    """Read the file, find its problem and hold the one against the other.

    Starts the worker as soon as the file parses: it loads torch while this process does.
    """
    request = context.request
    context.source, broken = contract.read(request.path, request.folder)
    _require(context, broken)
    tree, broken = contract.parse(context.source)
    _require(context, broken)
    if exercises.is_untouched(context.source.text, context.problem_name):
        _require(context, Broken(Reason.not_attempted, EXPLANATIONS[Reason.not_attempted]))
    try:
        context.process = start_worker(
            request, context.source, request.place, context.report, required=request.require_sandbox
        )
    except sandbox.SandboxError as error:
        raise Refused(str(error)) from None
    except sandbox.SubmissionChanged:
        _require(context, Broken(Reason.unreadable, f"{request.path} {CHANGED}"))
    # This loads torch, which cannot be loaded again once that was interrupted.
    with sandbox.undisturbed(), uncollected():
        from grader.problems import problem as problems

    assert tree is not None  # it parses
    problem_path = request.problem_path or problems.find(request.path, request.folder).path
    context.problem = problems.read(problem_path, request.overrides)
    context.problem_name = exercises.exercise_of(request.path, context.problem.name, request.folder)
    _require(context, contract.check(tree, context.problem.tree, request.path.name))
    _settle_device(context)


def _require(context: Context, broken: Broken | None) -> None:
    """Raise FindingError if the file is no submission."""
    if broken is None:
        return
    evidence = [broken.evidence] if broken.evidence else []
    for one in evidence:
        one.text = one.text or context.source.line(one.line) or None
    raise FindingError(Finding(broken.reason, broken.message, evidence))


def _settle_device(context: Context) -> None:
    """Choose GPU or CPU, now that torch is loaded."""
    import torch

    wanted = context.request.device
    context.gpu = wanted != "cpu" and torch.cuda.is_available()
    if wanted == "cuda" and not context.gpu:
        raise Refused("--device cuda: torch sees no GPU on this machine; `grader doctor` says what is missing.")
    context.versions["torch"] = str(torch.__version__)
    if context.gpu:
        context.versions["cuda"] = torch.version.cuda or ""
