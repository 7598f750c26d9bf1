"""What a submission is timed next to: eager, torch.compile and the reference solution, each in a worker of its own."""

from __future__ import annotations

import contextlib
import dataclasses

import torch

from grader.judging.timing.bench import Bench, count_inputs, make_inputs
from grader.judging.timing.commands import NotDone, Other, OtherFailed, order
from grader.judging.timing.inputs import TimedInputs
from grader.judging.timing.results import NoResult, Probe, draw_places
from grader.judging.timing.watch import Watch
from grader.judging.worker_process import start_worker
from grader.problems import exercises
from grader.source import contract
from grader.verdict import spelled
from grader.worker import baselines, protocol, sandbox
from grader.worker.client import Client, Gone, Late, NotStarted

BASELINE_S = 300.0  # for a baseline's command: torch.compile compiles in one
REFERENCE, EAGER, COMPILED = "reference solution", "eager", "torch.compile"
COMPARED = (REFERENCE, EAGER, COMPILED)  # eager is always one of them


@dataclasses.dataclass
class Others:
    """Workers: of the problem's Model, and of the reference solution if there is one."""

    models: Client
    reference: Client | None


def start_others(bench: Bench, stack: contextlib.ExitStack) -> Others:
    """Start the workers and construct their models; the stack ends them. Raises OtherFailed."""
    context = bench.context
    path = exercises.source_of(context.problem_name)
    source, broken = contract.read(path)
    reference = None
    if REFERENCE in COMPARED and broken is None and source.sha256 != context.source.sha256:
        process = start_worker(context.request, source, path.resolve(), context.report)
        reference = Client(process, path.resolve(), bench.report, context.request.limits.build)
        stack.callback(reference.close)
    models = Client(sandbox.start_trusted(), context.problem.path, bench.report, context.request.limits.build)
    stack.callback(models.close)
    try:
        _construct(bench, models, baselines.SOURCE, str(context.problem.path.resolve()))
    except (NotStarted, NotDone, Gone, Late) as error:
        raise OtherFailed(getattr(getattr(error, "reply", None), "message", str(error))) from None
    if reference is not None:
        try:
            _construct(bench, reference, source.text, str(path.resolve()))
        except (NotStarted, NotDone, Gone, Late):
            reference = None
    return Others(models, reference)


def _construct(bench: Bench, client: Client, text: str, path: str) -> None:
    client.wait_until_ready()
    order(client, protocol.Build(text, spelled(path), BASELINE_S), BASELINE_S)
    order(client, bench.context.session.construct_command(bench.trial, None), BASELINE_S)


def share_inputs(bench: Bench, others: Others) -> TimedInputs:
    """Return as many inputs as fit, which the others have. Without room for the reference solution it is left out.

    Raises OtherFailed where eager's worker cannot take them.
    """
    count = count_inputs(bench, 3 if others.reference else 2)
    if others.reference and not count:
        others.reference.close()
        others.reference, count = None, count_inputs(bench, 2)
    inputs = make_inputs(bench, max(1, count))
    try:
        inputs.map(order(others.models, bench.prepare(inputs), BASELINE_S))
    except (NoResult, NotDone, Gone, Late) as error:
        raise OtherFailed(getattr(getattr(error, "reply", None), "message", str(error))) from None
    try:
        if others.reference:
            inputs.map(order(others.reference, bench.prepare(inputs), BASELINE_S))
    except (NoResult, NotDone, Gone, Late):
        others.reference = None
    return inputs


def make_commands(
    bench: Bench, others: Others, inputs: TimedInputs, watch: Watch, stack: contextlib.ExitStack
) -> tuple[dict[str, Other], Other]:
    """Return the baselines that run here, and eager once more: what the way to it takes is subtracted.

    Raises OtherFailed where eager does not run.
    """
    clients = {REFERENCE: others.reference, EAGER: others.models, COMPILED: others.models}
    models = {EAGER: baselines.EAGER, COMPILED: baselines.COMPILED}
    found: dict[str, Other] = {}
    for name in COMPARED:
        client = clients[name]
        if client is None:
            continue
        bench.report(name)
        probe, trusted = make_probe(bench.like, stack), client is others.models
        other = Other(client, BASELINE_S, probe, watch, inputs, models.get(name, ""), trusted=trusted)
        try:
            other.probe.draw(draw_places(bench.like))
            other.run([0])
            other.settle([0])
        except (OtherFailed, NotDone, Gone, Late) as error:
            if name == EAGER:
                raise OtherFailed(str(error)) from None
            continue  # no Triton, or a model that it cannot take
        found[name] = other
    eager = found[EAGER]
    return found, dataclasses.replace(eager, probe=make_probe(bench.like, stack))


def make_probe(like: list[torch.Tensor], stack: contextlib.ExitStack) -> Probe:
    """Return a probe of results like these; the stack releases it."""
    probe = Probe(like)
    stack.callback(probe.release)
    return probe
