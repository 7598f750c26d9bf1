"""What a submission is timed next to: eager, torch.compile and the reference solution, each in a worker of its own."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence

import torch

from grader.judging.context import Context
from grader.judging.timing.bench import Bench, count_inputs, make_inputs
from grader.judging.timing.commands import NotDone, Other, OtherFailed, order
from grader.judging.timing.inputs import TimedInputs
from grader.judging.timing.results import NoResult, Probe, draw_places
from grader.judging.timing.watch import Watch
from grader.judging.worker_process import start_worker
from grader.problems import exercises
from grader.source import contract
from grader.source.contract import Source
from grader.verdict import spelled
from grader.worker import baselines, protocol, sandbox
from grader.worker.client import Client, Gone, Late, NotStarted

BASELINE_S = 300.0  # for a baseline's command: torch.compile compiles in one
REFERENCE, EAGER, COMPILED = "reference solution", "eager", "torch.compile"
NAMES = (REFERENCE, EAGER, COMPILED)  # in the order in which they are shown
COMPARED = NAMES  # eager is always one of them


@dataclasses.dataclass
class Others:
    """Workers: of the problem's Model, and of the reference solution if there is one."""

    models: Client
    reference: Client | None


def read_reference(context: Context) -> Source | None:
    """Return the reference solution's file, if there is one."""
    source, broken = contract.read(exercises.source_of(context.problem_name))
    return source if broken is None else None


def list_compared(context: Context) -> list[str]:
    """Return the names of what a submission is timed next to: not the reference solution where it is that itself."""
    reference = read_reference(context)
    has_reference = reference is not None and reference.sha256 != context.source.sha256
    return [name for name in COMPARED if name != REFERENCE or has_reference]


def start_others(bench: Bench, compared: Sequence[str], stack: contextlib.ExitStack) -> Others:
    """Start the workers and construct their models; the stack ends them. compared: names. Raises OtherFailed."""
    context = bench.context
    source = read_reference(context) if REFERENCE in compared else None
    reference = None
    if source is not None:
        path = source.path.resolve()
        own = dataclasses.replace(context.request, start_process=sandbox.start)  # not one that waits for the submission
        process = start_worker(own, source, path, context.report)
        reference = Client(process, path, bench.report, context.request.limits.build)
        stack.callback(reference.close)
    process, context.trusted = context.trusted or sandbox.start_trusted(), None
    models = Client(process, context.problem.path, bench.report, context.request.limits.build)
    stack.callback(models.close)
    try:
        _construct(bench, models, baselines.SOURCE, str(context.problem.path.resolve()))
    except (NotStarted, NotDone, Gone, Late) as error:
        raise OtherFailed(getattr(getattr(error, "reply", None), "message", str(error))) from None
    if source is not None and reference is not None:
        try:
            _construct(bench, reference, source.text, str(path))
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
    bench: Bench,
    others: Others,
    compared: Sequence[str],
    inputs: TimedInputs,
    watch: Watch,
    stack: contextlib.ExitStack,
) -> tuple[dict[str, Other], Other]:
    """Return the baselines that run here, and eager once more: what the way to it takes is subtracted.

    Raises OtherFailed where eager does not run.
    """
    clients = {REFERENCE: others.reference, EAGER: others.models, COMPILED: others.models}
    models = {EAGER: baselines.EAGER, COMPILED: baselines.COMPILED}
    found: dict[str, Other] = {}
    for name in compared:
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
