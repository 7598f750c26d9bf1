"""One measurement of a submission: its case, its memory, and the inputs that fit."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Sequence

import torch

from grader.judging import clock
from grader.judging.context import Context
from grader.judging.timing.inputs import TimedInputs
from grader.judging.trial import Trial
from grader.verdict import StageName
from grader.worker import protocol
from grader.worker.client import Client

MOST_INPUTS = 96
# Of the free GPU memory, at most, for the inputs and for the outputs that workers keep; and for one call's alone.
MEMORY_SHARE, ONE_SHARE = 0.6, 0.9
WORKERS = 3
SEED_BITS = 61  # fewer could be tried out by a submission that knows how inputs are drawn


@dataclasses.dataclass
class Backward:
    """The backward that is timed too.

    outputs: tensors of the dtypes and shapes of forward's floating outputs, whose gradients it starts with. inputs,
    parameters: numbers and names of what gets a gradient. like: tensors of the shapes of these gradients.
    """

    outputs: list[torch.Tensor]
    inputs: list[int]
    parameters: list[str]
    like: list[torch.Tensor]


def make_backward(context: Context, trial: Trial) -> Backward:
    """Return what the backward of a NAME_backward is timed with."""
    inputs, parameters = context.differentiated
    own = dict(trial.instance.model.named_parameters())
    like = [trial.instance.inputs[n] for n in inputs] + [own[name].detach() for name in parameters]
    return Backward([one for one in trial.eager if one.is_floating_point()], inputs, parameters, like)


@dataclasses.dataclass
class Bench:
    """One measurement. trial: of the full size. backward: of a NAME_backward; None for forward alone."""

    context: Context
    trial: Trial
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

    @property
    def like(self) -> list[torch.Tensor]:
        """Return tensors of the dtypes and shapes of what a timed call returns."""
        return [*self.backward.outputs, *self.backward.like] if self.backward else self.trial.eager

    def prepare(self, inputs: TimedInputs) -> protocol.Prepare:
        """Return the command that has a worker make room for its inputs."""
        back, arity = self.backward, inputs.arity
        if back is None:
            return protocol.Prepare(inputs.sent)
        batches, upstream = [one[:arity] for one in inputs.sent], [one[arity:] for one in inputs.sent]
        return protocol.Prepare(batches, upstream, back.inputs, back.parameters)


def count_inputs(bench: Bench, workers: int) -> int:
    """Return how many distinct inputs of the full size fit, if so many workers have each of them."""
    bench.trial.expected, bench.trial.noise = [], []  # large, and not needed any more
    torch.cuda.empty_cache()
    size = _bytes(bench.trial.instance.inputs) + (_bytes(bench.backward.outputs) if bench.backward else 0)
    each = workers * size + WORKERS * (_bytes(bench.like) + (size if bench.backward else 0))
    free = torch.cuda.mem_get_info()[0]
    return min(MOST_INPUTS, int(MEMORY_SHARE * free / max(each, 1)) or int(each <= ONE_SHARE * free))


def make_inputs(bench: Bench, count: int) -> TimedInputs:
    """Return so many distinct inputs of the full size, for which no worker has room yet."""
    outputs = bench.backward.outputs if bench.backward else []
    made = TimedInputs(bench.context.problem, bench.trial.case, secrets.randbits(SEED_BITS), count, outputs)
    torch.cuda.empty_cache()
    return made


def _bytes(values: Sequence[object]) -> int:
    return sum(v.numel() * v.element_size() for v in values if isinstance(v, torch.Tensor))


def find_bound(bench: Bench, inputs: TimedInputs) -> float | None:
    """Return the lowest time in ms that the memory traffic allows."""
    gradients = bench.backward.like if bench.backward else []
    return clock.roofline_bound(_bytes(inputs.ours[0]) + _bytes(bench.trial.eager) + _bytes(gradients))
