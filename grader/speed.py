"""The stage "fast": on a GPU, a right submission's time beside the reference solution, eager and torch.compile."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from grader import channel, clock, compare, contract, findings, gradient, sandbox
from grader.cases import Case
from grader.client import Client, Gone, Late, NotStarted
from grader.exchange import GpuMemory, same_bits
from grader.problem import ends
from grader.verdict import Evidence, Measurement, Reason, spelled

MOST_INPUTS = 8
SHARE = 0.6  # of the free GPU memory, at most, for the inputs and for the outputs that two workers keep
# Where rounding picks which of many sums goes on, a few gradients go elsewhere: off by this share of the whole (Euclidean norms) at most.
PICKED = 0.02
CANDIDATE = "this submission"
REFERENCE = "reference solution"


@dataclasses.dataclass
class InWorker:
    """A model in a worker as a clock.Command: one message starts a whole batch."""

    client: Client
    seconds: float

    def run(self, batch: Sequence[int]) -> None:
        """Forward on the prepared inputs of these numbers, results kept, device waited for."""
        self.ask(channel.Batch(list(batch), self.seconds))

    def empty(self) -> None:
        """The same message with nothing to do."""
        self.ask(channel.Batch([], self.seconds))

    def ask(self, command: channel.Command) -> None:
        """Any command that is answered by Done. Raises Gone, Late, or NotDone."""
        reply = self.client.ask(command, self.seconds)
        if not isinstance(reply, channel.Done):
            raise NotDone(reply)


@dataclasses.dataclass
class Back:
    """The backward that is timed too. upstream: what it starts with; inputs, parameters: numbers and names of what gets a gradient; like: tensors of
    the gradients' shapes."""

    upstream: list[torch.Tensor]
    inputs: list[int]
    parameters: list[str]
    like: list[torch.Tensor]

    def of(self, model: Callable[..., object], parameters: dict[str, torch.Tensor]) -> Callable[..., object]:
        """Forward and backward of a model in this process, as one call."""

        def there_and_back(*inputs):
            inputs = [value.detach() if isinstance(value, torch.Tensor) else value for value in inputs]  # the judge writes to its own
            wanted = [inputs[n].requires_grad_() for n in self.inputs] + [parameters[name] for name in self.parameters]
            with torch.enable_grad():
                outputs = [out for out in ends(model(*inputs)) if out.is_floating_point()]
                return torch.autograd.grad(outputs, wanted, self.upstream)

        return there_and_back


class NotDone(Exception):
    """A worker answered with something other than Done, which is kept in `reply`."""

    def __init__(self, reply: channel.Reply):
        super().__init__("not done")
        self.reply = reply


@dataclasses.dataclass
class Bench:
    """What a measurement needs of the grading: the constructed worker, the full-size trial, limits, and a voice.

    start: starts a worker for another file. construct: the command that builds the model with the trial's weights. reference: the
    file of the reference solution. back: what a NAME_backward is timed with; None for forward alone.
    """

    client: Client
    source: contract.Source
    trial: object
    problem: object
    seed: int
    seconds: float
    build_seconds: float
    construct: channel.Construct
    start: Callable[[contract.Source], sandbox.Process]
    say: Callable[[str], None]
    reference: Path
    back: Back | None = None

    def prepare(self, packed: list[list[channel.Value]], memory: GpuMemory) -> channel.Prepare:
        """The command that gives a worker its inputs."""
        if self.back is None:
            return channel.Prepare(packed)
        return channel.Prepare(packed, memory.inputs(self.back.upstream), self.back.inputs, self.back.parameters)


def measure(bench: Bench, stage) -> findings.Finding | None:
    """Time everything and write it into the stage. A finding if the submission failed meanwhile."""
    memory = GpuMemory()
    reference: Client | None = None
    try:
        inputs, packed = _inputs(bench, memory)
        mine = InWorker(bench.client, bench.seconds)
        prepare = bench.prepare(packed, memory)
        mine.ask(prepare)
        bench.say("starting the reference solution")
        reference = _reference(bench, prepare)
        baselines: dict[str, clock.Command] = {}
        if reference is not None:
            baselines[REFERENCE] = InWorker(reference, bench.seconds)
        baselines |= _in_process(bench, inputs)
        bench.say(f"timing against {', '.join(baselines)}")
        result = clock.measure(
            mine, baselines, len(inputs), floor_ms=_floor(bench, inputs), refresh=lambda: _refresh(inputs)
        )
        bench.say("checking what the timed calls computed")
        finding = _recheck(bench, mine, inputs, memory)
        _record(stage, result)
        if bench.back:
            stage.message = f"Times of forward and backward together. {stage.message}".strip()
        return finding or _too_fast(result)
    except (Gone, Late) as error:
        return findings.of_death(error, bench.source, "full size", "forward")
    except NotDone as error:
        if isinstance(error.reply, channel.Failure):
            return findings.of_failure(error.reply, bench.source, bench.client.sources, "full size")
        return findings.Finding(Reason.crash, "The program answered the grader with something that makes no sense.", [])
    finally:
        if reference is not None:
            reference.close()
        with contextlib.suppress(Gone, Late):
            if bench.client.process.alive():
                bench.client.ask(channel.Release(), bench.seconds)
        memory.free()


# --- inputs ----------------------------------------------------------------------------------------------------------


def _inputs(bench: Bench, memory: GpuMemory) -> tuple[list[list], list[list[channel.Value]]]:
    """As many distinct inputs of the full size as fit, in memory that the workers map: (ours, for the wire)."""
    trial = bench.trial
    trial.expected, trial.noise = [], []  # large, and not needed any more
    torch.cuda.empty_cache()
    size = _bytes(trial.instance.inputs)
    each = size + 2 * (_bytes(trial.eager) + (size if bench.back else 0))
    fit = int(SHARE * torch.cuda.mem_get_info()[0] / max(each, 1))
    count = max(1, min(MOST_INPUTS, fit))
    ours, wire = [], []
    for number in range(count):
        made = bench.problem.instantiate(bench.problem.full(), bench.seed + 1 + number, "cuda").inputs
        wire.append(memory.inputs(made))
        ours.append([sent.tensor if isinstance(sent, channel.Shared) else sent for sent, _ in memory.given[-1]])
        memory.given.clear()  # the originals are not needed: we own the copies
        del made
    torch.cuda.empty_cache()
    return ours, wire


def _bytes(values: Sequence[object]) -> int:
    return sum(v.numel() * v.element_size() for v in values if isinstance(v, torch.Tensor))


def _refresh(inputs: list[list]) -> None:
    """New values before each round: every floating input is rotated by a random amount."""
    for one in inputs:
        for value in one:
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > 1:
                value.copy_(value.flatten().roll(random.randrange(1, value.numel())).view(value.shape))
    torch.cuda.synchronize()


def _floor(bench: Bench, inputs: list[list]) -> float | None:
    return clock.floor(_bytes(inputs[0]) + _bytes(bench.trial.eager) + (_bytes(bench.back.like) if bench.back else 0))


# --- baselines -------------------------------------------------------------------------------------------------------


def _reference(bench: Bench, prepare: channel.Prepare) -> Client | None:
    """A worker with the reference solution, ready to be timed; None if there is none or it does not work here."""
    path = bench.reference
    source, broken = contract.read(path)
    if broken is not None or source.sha256 == bench.source.sha256:
        return None
    process = bench.start(source)
    client = Client(process, path.resolve(), bench.say, bench.build_seconds)
    try:
        client.wait_until_ready()
        worker = InWorker(client, bench.seconds)
        worker.ask(channel.Build(source.text, spelled(str(path.resolve())), bench.seconds))
        worker.ask(bench.construct)
        worker.ask(prepare)
        worker.run([0])
    except (NotStarted, NotDone, Gone, Late):
        client.close()
        return None
    return client


def _in_process(bench: Bench, inputs: list[list]) -> dict[str, clock.Command]:
    """Eager and torch.compile, as torch is set up by default; what cannot run here is left out."""
    def calls(compile_it: bool) -> clock.Command:
        model = bench.trial.instance.build()
        function = torch.compile(model) if compile_it else model
        return clock.Calls(bench.back.of(function, dict(model.named_parameters())) if bench.back else function, inputs)

    commands = {"eager": calls(False)}
    bench.say("torch.compile")
    compiled = calls(True)
    with contextlib.suppress(Exception):  # no Triton, or a model that it cannot take
        compiled.run([0])
        commands["torch.compile"] = compiled
    return commands


# --- results ---------------------------------------------------------------------------------------------------------


def _recheck(bench: Bench, mine: InWorker, inputs: list[list], memory: GpuMemory) -> findings.Finding | None:
    """One more batch as it was timed: one result, chosen now, must be right, and its inputs as they were."""
    number = random.randrange(len(inputs))
    before = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs[number]]
    mine.run(range(len(inputs)))
    rooms = memory.rooms(bench.back.like if bench.back else bench.trial.eager)
    mine.ask(channel.Collect(number, rooms))
    for position, (value, old) in enumerate(zip(inputs[number], before)):
        if isinstance(value, torch.Tensor) and not same_bits(value, old):
            message = f"forward changed input {position} while it was timed."
            return findings.Finding(Reason.input_modified, message, [Evidence(case="timed")])
    again = dataclasses.replace(bench.trial.instance, inputs=before)
    got = [shared.tensor for shared in memory.room[-1]]
    if bench.back:
        return _recheck_gradients(bench, again, got)
    difference = compare.compare(got, again.expected(), again.eager(), bench.trial.case)
    return findings.of_difference(dataclasses.replace(difference, case="timed")) if difference else None


def _recheck_gradients(bench: Bench, instance, got: list[torch.Tensor]) -> findings.Finding | None:
    """The same for gradients; nothing where the GPU is too small for the right ones beside all that is timed."""
    names = [instance.names()[n] for n in bench.back.inputs] + bench.back.parameters
    try:
        eager, most = instance.gradients(bench.back.upstream)
        expected = instance.expected_gradients(bench.back.upstream)
        picks = gradient.rounding_picks(instance)
        for name, *one in zip(names, got, expected, eager):
            if picks and _apart(*one[:2]) <= PICKED:
                continue
            difference = compare.compare(*one, Case("timed"), reduction=most)
            if difference is not None:
                found = findings.of_difference(difference)
                said = f"While it was timed, the gradient of `{name}` was wrong: {found.message}"
                return dataclasses.replace(found, reason=Reason.wrong_gradient, message=said)
    except torch.OutOfMemoryError:
        pass
    return None


def _apart(got: torch.Tensor, expected: torch.Tensor) -> float:
    """The norm of the difference over the norm of what is right; infinite where it cannot be told."""
    if got.shape != expected.shape:
        return float("inf")
    apart = float((got.double() - expected).norm() / expected.norm())
    return apart if apart == apart else float("inf")


def _too_fast(result: clock.Measurement) -> findings.Finding | None:
    if not result.below_floor:
        return None
    return findings.Finding(Reason.inconclusive, result.notes[-1], [])


def _record(stage, result: clock.Measurement) -> None:
    """Times and ratios as measurements; what is uncertain is said."""
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

