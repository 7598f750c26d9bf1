"""The stage "build": import the submission, construct ModelNew for the first case, load the weights."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import simt
from grader.judging import findings
from grader.judging.context import Context
from grader.judging.session import Session
from grader.judging.stages.contract import CHANGED
from grader.judging.timing.watch import Canary
from grader.judging.trial import Finding, FindingError, Refused
from grader.judging.worker_process import PREPARING, start_worker
from grader.problems.cases import Case, UnknownCase, choose
from grader.problems.determinism import check_determined
from grader.problems.values import find_tensors
from grader.source.companions import Companions, find_companions
from grader.verdict import Reason, Stage, StageName, spelled
from grader.worker import protocol, sandbox
from grader.worker.client import Client, NotStarted
from grader.worker.locks import sole_builder

SAME_SEED = (
    "ModelNew's weights do not fit Model's by name or shape: both are constructed with the same random seed instead, "
    "so that ModelNew has the weights that its constructor draws in Model's order."
)


def run(context: Context, stage: Stage) -> None:
    """Build the submission; leaves a session with its worker, and the cases."""
    cases = context.problem.cases()  # before anything is compiled: an unusable problem is reported at once
    with context.take_gpu(StageName.build):
        check_determined(context.problem, cases, context.device)
    if not context.gpu:
        _warm_up(context)
    _open_session(context)
    if context.gpu:
        with context.take_gpu(StageName.build):
            context.canary = Canary()  # before any of the submission's code can use the GPU
    _import(context)
    context.cases = _select(context, cases)
    _construct(context, stage)


def restart(context: Context) -> None:
    """Replace a worker that has died by a new one, which imports the submission again. Raises FindingError."""
    context.close()
    request = context.request
    try:
        context.process = start_worker(request, context.source, request.place, context.report, request.require_sandbox)
    except sandbox.SandboxError as error:
        raise Refused(str(error)) from None
    except sandbox.SubmissionChanged:
        raise FindingError(Finding(Reason.unreadable, f"{request.path} {CHANGED}", [])) from None
    _open_session(context)
    _import(context)


def _open_session(context: Context) -> None:
    """Wait for the worker and leave a session with it."""
    assert context.process is not None  # "contract" has started it
    request, limits = context.request, context.request.limits
    client = Client(
        context.process, request.place, lambda text: context.report(StageName.build, text), limits.build, limits.total
    )
    context.session = Session(client, context.source, context.problem, limits, context.gpu)
    try:
        client.wait_until_ready()
    except NotStarted as error:
        message = f"The worker process did not start: {error}"
        raise FindingError(Finding(Reason.grader_error, message, [])) from None


def _import(context: Context) -> None:
    """Have the worker import the submission, which builds its kernels."""
    with sole_builder(sandbox.extensions(context.source.sha256, context.gpu)):
        request = context.request
        found = Companions()
        if request.folder is None:  # the folder of many hands holds the files of others
            found = find_companions(context.source, request.place.parent)
        path, seconds = spelled(str(request.place)), request.limits.own
        build = protocol.Build(context.source.text, path, seconds, files=found.texts, modules=found.modules)
        context.session.query(build, findings.IMPORT, None)


def _construct(context: Context, stage: Stage) -> None:
    """Construct ModelNew for the first case, and for another one if weights were matched by their shapes.

    If its weights do not fit Model's, both are constructed with the same seed and the case is run: a ModelNew whose
    constructor makes the same weights in another form gives Model's results then. Raises FindingError if it does not.
    """
    first, *others = context.cases
    try:
        context.session.construct(context.make_trial(first), "end")
        if context.session.renamed and others:  # in a case of many sizes of 1, all weights have the same shape
            context.session.construct(context.make_trial(others[-1]), "end")
            context.session.construct(context.make_trial(first), "end")
    except FindingError as error:
        if error.finding.reason is not Reason.missing_weights:
            raise
        if not _shares_seed(context):
            raise error from None
        context.session.construct(context.make_trial(first), "end")
        stage.message = SAME_SEED


def _shares_seed(context: Context) -> bool:
    """Return whether ModelNew gives Model's results where both are constructed with the same seed.

    The problem then constructs Model in this way from here on.
    """
    before = context.problem
    context.problem = context.session.problem = before.share_seed()
    context.trials.clear()
    with contextlib.suppress(FindingError):
        trial = context.make_trial(max(context.cases, key=_count_elements(context)))
        context.session.construct(trial, "end")
        if context.session.run_forward(trial)[0].difference is None:
            return True
    context.problem = context.session.problem = before
    context.trials.clear()
    return False


def _count_elements(context: Context) -> Callable[[Case], int]:
    """Return a function that counts the elements of a case's inputs."""
    return lambda case: sum(t.numel() for t in find_tensors(context.make_trial(case).instance.inputs))


def _select(context: Context, cases: list[Case]) -> list[Case]:
    """Return all cases, or the requested one."""
    wanted = context.request.case
    if wanted is None:
        return cases
    try:
        return choose(context.problem_name, cases, wanted)
    except UnknownCase as error:
        raise Refused(str(error)) from None


def _warm_up(context: Context) -> None:
    """Build what simt builds once on a machine, before the submission's time counts."""
    try:
        context.report(StageName.build, PREPARING)
        simt.warm_up()
    except simt.CacheError as error:  # every submission's build would meet it, after as long again
        raise FindingError(Finding(Reason.grader_error, str(error), [])) from None
    except simt.BuildError:
        return  # the submission's own build reports it, if it needs a compiler
    except ValueError as error:  # one of simt's environment variables has a value that makes no sense
        raise Refused(str(error)) from None
    context.report(StageName.build, "")
