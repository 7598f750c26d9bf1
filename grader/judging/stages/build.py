"""The stage "build": import the submission, construct ModelNew for the first case, load the weights."""

from __future__ import annotations

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
from grader.verdict import Reason, Stage, StageName, spelled
from grader.worker import protocol, sandbox
from grader.worker.client import Client, NotStarted
from grader.worker.locks import sole_builder


def run(context: Context, stage: Stage) -> None:
    """Build the submission; leaves a session with its worker, and the cases."""
    cases = context.problem.cases()  # before anything is compiled: an unusable problem is reported at once
    check_determined(context.problem, cases, context.device)
    if not context.gpu:
        _warm_up(context)
    _open_session(context)
    if context.gpu:
        context.canary = Canary()  # before any of the submission's code can use the GPU
    _import(context)
    context.cases = _select(context, cases)
    context.session.construct(context.make_trial(context.cases[0]), "end")


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
    with sole_builder(sandbox.extensions(context.source.sha256)):
        request = context.request
        build = protocol.Build(context.source.text, spelled(str(request.place)), request.limits.own)
        context.session.query(build, findings.IMPORT, None)


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
