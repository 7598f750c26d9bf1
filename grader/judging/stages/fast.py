"""The stage "fast": on a GPU, a correct submission's time next to the reference solution, eager and torch.compile."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Callable, Sequence

import torch

from grader.judging import clock, findings, tolerance
from grader.judging.context import Context
from grader.judging.gradients import does_rounding_pick
from grader.judging.results import skip_stage
from grader.judging.trial import Finding, FindingError, Trial
from grader.judging.worker_process import start_worker
from grader.problems import exercises
from grader.problems.cases import Case
from grader.problems.instance import Instance
from grader.problems.values import ends
from grader.source import contract
from grader.verdict import EXPLANATIONS, Evidence, Measurement, Reason, Stage, StageName, spelled
from grader.worker import protocol
from grader.worker.client import Client, Gone, Late, NotStarted
from grader.worker.exchange import GpuMemory, same_bits

MOST_INPUTS = 8
MEMORY_SHARE = 0.6  # of the free GPU memory, at most, for the inputs and for the outputs that two workers keep
# Where rounding picks which of many sums is passed on, a few gradients go elsewhere: off by this share of the whole
# (Euclidean norms) at most.
PICKED_SHARE = 0.02
CANDIDATE = "this submission"
REFERENCE = "reference solution"


def run(context: Context, stage: Stage) -> None:
    """Time the submission at full size, on a GPU."""
    if not context.gpu:
        skip_stage(stage, Reason.no_gpu, EXPLANATIONS[Reason.no_gpu])
        return
    trial = context.trials[-1]  # the full size
    context.session.construct(trial, None)
    backward = _make_backward(context, trial) if context.requires_gradient else None
    finding = _measure(Bench(context, trial, GpuMemory(), backward), stage)
    if finding is not None:
        raise FindingError(finding)


@dataclasses.dataclass
class InWorker:
    """A model in a worker as a clock.Command: one message starts a whole batch."""

    client: Client
    seconds: float

    def run(self, batch: Sequence[int]) -> None:
        """Run forward on the prepared inputs of these numbers, keep the results, wait for the device."""
        self.query(protocol.Batch(list(batch), self.seconds))

    def empty(self) -> None:
        """Send the same message with nothing to do."""
        self.query(protocol.Batch([], self.seconds))

    def query(self, command: protocol.Command) -> None:
        """Send any command that is answered by Done. Raises Gone, Late, or NotDone."""
        reply = self.client.ask(command, self.seconds)
        if not isinstance(reply, protocol.Done):
            raise NotDone(reply)


@dataclasses.dataclass
class Backward:
    """The backward that is timed too.

    upstream: what it starts with. inputs, parameters: numbers and names of what gets a gradient. like: tensors of the
    gradients' shapes.
    """

    upstream: list[torch.Tensor]
    inputs: list[int]
    parameters: list[str]
    like: list[torch.Tensor]

    def of(self, model: Callable[..., object], parameters: dict[str, torch.Tensor]) -> Callable[..., object]:
        """Return forward and backward of a model in this process, as one call."""

        def there_and_back(*inputs):
            # the judge writes to its own
            inputs = [value.detach() if isinstance(value, torch.Tensor) else value for value in inputs]
            wanted = [inputs[n].requires_grad_() for n in self.inputs] + [parameters[name] for name in self.parameters]
            with torch.enable_grad():
                outputs = [out for out in ends(model(*inputs)) if out.is_floating_point()]
                return torch.autograd.grad(outputs, wanted, self.upstream)

        return there_and_back


def _make_backward(context: Context, trial: Trial) -> Backward:
    """Return what the backward of a NAME_backward is timed with."""
    inputs, parameters = context.differentiated
    own = dict(trial.instance.model.named_parameters())
    like = [trial.instance.inputs[n] for n in inputs] + [own[name].detach() for name in parameters]
    upstream = context.problem.upstream(trial.case, context.request.seed + 1, trial.eager)
    return Backward(upstream, inputs, parameters, like)


class NotDone(Exception):
    """Raised where a worker replied with something other than Done, which is kept in `reply`."""

    def __init__(self, reply: protocol.Reply):
        super().__init__("not done")
        self.reply = reply


@dataclasses.dataclass
class Bench:
    """One measurement. trial: of the full size. backward: of a NAME_backward; None for forward alone."""

    context: Context
    trial: Trial
    memory: GpuMemory
    backward: Backward | None = None

    @property
    def client(self) -> Client:
        return self.context.session.client

    @property
    def seconds(self) -> float:
        """Return the limit of one command."""
        return self.context.request.limits.own

    def report(self, text: str) -> None:
        self.context.report(StageName.fast, text)

    def prepare(self, packed: list[list[protocol.Value]]) -> protocol.Prepare:
        """Return the command that gives a worker its inputs."""
        back = self.backward
        if back is None:
            return protocol.Prepare(packed)
        return protocol.Prepare(packed, self.memory.inputs(back.upstream), back.inputs, back.parameters)


def _measure(bench: Bench, stage: Stage) -> Finding | None:
    """Time everything and write it into the stage. Returns a finding if the submission failed meanwhile."""
    reference: Client | None = None
    try:
        inputs, packed = _make_inputs(bench)
        mine = InWorker(bench.client, bench.seconds)
        prepare = bench.prepare(packed)
        mine.query(prepare)
        bench.report("starting the reference solution")
        reference = _start_reference(bench, prepare)
        baselines: dict[str, clock.Command] = {}
        if reference is not None:
            baselines[REFERENCE] = InWorker(reference, bench.seconds)
        baselines |= _make_baselines(bench, inputs)
        bench.report(f"timing against {', '.join(baselines)}")
        result = clock.measure(
            mine, baselines, len(inputs), floor_ms=_find_floor(bench, inputs), refresh=lambda: _refresh(inputs)
        )
        bench.report("checking what the timed calls computed")
        finding = _check_timed_call(bench, mine, inputs)
        _record(stage, result)
        if bench.backward:
            stage.message = f"Times of forward and backward together. {stage.message}".strip()
        return finding or _find_too_fast(result)
    except (Gone, Late) as error:
        return findings.of_death(error, bench.context.source, "full size", "forward")
    except NotDone as error:
        if isinstance(error.reply, protocol.Failure):
            sources = bench.client.sources
            return findings.of_failure(error.reply, bench.context.source, sources, "full size", protocol.Batch)
        return Finding(Reason.crash, "The program answered the grader with something that makes no sense.", [])
    finally:
        if reference is not None:
            reference.close()
        with contextlib.suppress(Gone, Late):
            if bench.client.process.alive():
                bench.client.ask(protocol.Release(), bench.seconds)
        bench.memory.free()


# --- inputs ----------------------------------------------------------------------------------------------------------


def _make_inputs(bench: Bench) -> tuple[list[list], list[list[protocol.Value]]]:
    """Return as many distinct inputs of the full size as fit, in memory that the workers map: (ours, as sent)."""
    trial, context, memory = bench.trial, bench.context, bench.memory
    trial.expected, trial.noise = [], []  # large, and not needed any more
    torch.cuda.empty_cache()
    size = _bytes(trial.instance.inputs)
    each = size + 2 * (_bytes(trial.eager) + (size if bench.backward else 0))
    fit = int(MEMORY_SHARE * torch.cuda.mem_get_info()[0] / max(each, 1))
    count = max(1, min(MOST_INPUTS, fit))
    ours, wire = [], []
    for number in range(count):
        made = context.problem.instantiate(context.problem.full(), context.request.seed + 1 + number, "cuda").inputs
        wire.append(memory.inputs(made))
        ours.append([sent.tensor if isinstance(sent, protocol.Shared) else sent for sent, _ in memory.given[-1]])
        memory.given.clear()  # the originals are not needed: we own the copies
        del made
    torch.cuda.empty_cache()
    return ours, wire


def _bytes(values: Sequence[object]) -> int:
    return sum(v.numel() * v.element_size() for v in values if isinstance(v, torch.Tensor))


def _refresh(inputs: list[list]) -> None:
    """Give the inputs new values before each round: rotate every floating one by a random amount."""
    for one in inputs:
        for value in one:
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > 1:
                value.copy_(value.flatten().roll(random.randrange(1, value.numel())).view(value.shape))
    torch.cuda.synchronize()


def _find_floor(bench: Bench, inputs: list[list]) -> float | None:
    """Return the lowest time in ms that the memory traffic allows."""
    gradients = bench.backward.like if bench.backward else []
    return clock.floor(_bytes(inputs[0]) + _bytes(bench.trial.eager) + _bytes(gradients))


# --- baselines -------------------------------------------------------------------------------------------------------


def _start_reference(bench: Bench, prepare: protocol.Prepare) -> Client | None:
    """Return a worker with the reference solution, ready to be timed; None if there is none or it fails here."""
    context = bench.context
    path = exercises.source_of(context.problem_name)
    source, broken = contract.read(path)
    if broken is not None or source.sha256 == context.source.sha256:
        return None
    process = start_worker(context.request, source, context.report)
    client = Client(process, path.resolve(), bench.report, context.request.limits.build)
    try:
        client.wait_until_ready()
        worker = InWorker(client, bench.seconds)
        worker.query(protocol.Build(source.text, spelled(str(path.resolve())), bench.seconds))
        worker.query(context.session.construct_command(bench.trial, None))
        worker.query(prepare)
        worker.run([0])
    except (NotStarted, NotDone, Gone, Late):
        client.close()
        return None
    return client


def _make_baselines(bench: Bench, inputs: list[list]) -> dict[str, clock.Command]:
    """Return eager and torch.compile, as torch is set up by default; what cannot run here is left out."""

    def calls(compile_it: bool) -> clock.Command:
        model = bench.trial.instance.build()
        function = torch.compile(model) if compile_it else model
        if bench.backward:
            function = bench.backward.of(function, dict(model.named_parameters()))
        return clock.Calls(function, inputs)

    commands = {"eager": calls(False)}
    bench.report("torch.compile")
    compiled = calls(True)
    with contextlib.suppress(Exception):  # no Triton, or a model that it cannot take
        compiled.run([0])
        commands["torch.compile"] = compiled
    return commands


# --- results ---------------------------------------------------------------------------------------------------------


def _check_timed_call(bench: Bench, mine: InWorker, inputs: list[list]) -> Finding | None:
    """Run one more batch as it was timed: one result, chosen now, must be right, and its inputs unchanged."""
    number = random.randrange(len(inputs))
    before = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs[number]]
    mine.run(range(len(inputs)))
    rooms = bench.memory.rooms(bench.backward.like if bench.backward else bench.trial.eager)
    mine.query(protocol.Collect(number, rooms))
    for position, (value, old) in enumerate(zip(inputs[number], before)):
        if isinstance(value, torch.Tensor) and not same_bits(value, old):
            message = f"forward changed input {position} while it was timed."
            return Finding(Reason.input_modified, message, [Evidence(case="timed")])
    again = dataclasses.replace(bench.trial.instance, inputs=before)
    got = [shared.tensor for shared in bench.memory.room[-1]]
    if bench.backward:
        return _check_timed_gradients(bench.backward, again, got)
    difference = tolerance.compare(got, again.expected(), again.eager(), bench.trial.case)
    return findings.of_difference(dataclasses.replace(difference, case="timed")) if difference else None


def _check_timed_gradients(backward: Backward, instance: Instance, got: list[torch.Tensor]) -> Finding | None:
    """Compare gradients; skip it where the GPU is too small for the expected ones next to all that is timed."""
    names = [instance.names()[n] for n in backward.inputs] + backward.parameters
    try:
        eager, most = instance.gradients(backward.upstream)
        expected = instance.expected_gradients(backward.upstream)
        picks = does_rounding_pick(instance)
        for name, mine, right, theirs in zip(names, got, expected, eager):
            if picks and right is not None and _relative_distance(mine, right) <= PICKED_SHARE:
                continue
            difference = tolerance.compare(mine, right, theirs, Case("timed"), reduction=most)
            if difference is not None:
                found = findings.of_difference(difference)
                sentence = f"While it was timed, the gradient of `{name}` was wrong: {found.message}"
                return dataclasses.replace(found, reason=Reason.wrong_gradient, message=sentence)
    except torch.OutOfMemoryError:
        pass
    return None


def _relative_distance(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the norm of the difference over the norm of the expected; infinity where that is undefined."""
    if got.shape != expected.shape:
        return float("inf")
    apart = float((got.double() - expected).norm() / expected.norm())
    return apart if apart == apart else float("inf")


def _find_too_fast(result: clock.Measurement) -> Finding | None:
    if not result.below_floor:
        return None
    return Finding(Reason.inconclusive, result.notes[-1], [])


def _record(stage: Stage, result: clock.Measurement) -> None:
    """Write times and ratios into the stage, with what is uncertain."""
    for timing in (result.candidate, *result.baselines):
        name = CANDIDATE if timing is result.candidate else timing.name
        made = Measurement(
            name=name, value=timing.median_ms, unit="ms", low=timing.q1_ms, high=timing.q3_ms, samples=timing.n
        )
        stage.measurements.append(made)
    for ratio in result.ratios:
        made = Measurement(
            name=f"speed-up over {ratio.baseline}", value=ratio.speedup, unit="x", low=ratio.low, high=ratio.high
        )
        stage.measurements.append(made)
    stage.message = " ".join(result.notes)
    if not result.conclusive:
        stage.reason = Reason.inconclusive
