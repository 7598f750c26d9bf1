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
from grader.worker.exchange import GpuMemory

MOST_INPUTS = 96
MEMORY_SHARE = 0.6  # of the free GPU memory, at most, for the inputs and for the outputs that three workers keep
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

    @property
    def like(self) -> list[torch.Tensor]:
        """Return tensors of the dtypes and shapes of what a timed call returns."""
        return [*self.backward.outputs, *self.backward.like] if self.backward else self.trial.eager

    def prepare(self, inputs: list[list[protocol.Value]], arity: int) -> protocol.Prepare:
        """Return the command that gives a worker its inputs, which are the first `arity` of each list."""
        back = self.backward
        if back is None:
            return protocol.Prepare(inputs)
        batches, upstream = [one[:arity] for one in inputs], [one[arity:] for one in inputs]
        return protocol.Prepare(batches, upstream, back.inputs, back.parameters)


def make_inputs(bench: Bench) -> TimedInputs:
    """Return as many distinct inputs of the full size as fit."""
    trial, context = bench.trial, bench.context
    trial.expected, trial.noise = [], []  # large, and not needed any more
    torch.cuda.empty_cache()
    outputs = bench.backward.outputs if bench.backward else []
    size = _bytes(trial.instance.inputs) + _bytes(outputs)
    each = 2 * size + WORKERS * (_bytes(bench.like) + (size if bench.backward else 0))
    fit = int(MEMORY_SHARE * torch.cuda.mem_get_info()[0] / max(each, 1))
    count = max(1, min(MOST_INPUTS, fit))
    made = TimedInputs(context.problem, trial.case, secrets.randbits(SEED_BITS), bench.memory, count, outputs)
    torch.cuda.empty_cache()
    return made


def _bytes(values: Sequence[object]) -> int:
    return sum(v.numel() * v.element_size() for v in values if isinstance(v, torch.Tensor))


def find_bound(bench: Bench, inputs: TimedInputs) -> float | None:
    """Return the lowest time in ms that the memory traffic allows."""
    gradients = bench.backward.like if bench.backward else []
    return clock.roofline_bound(_bytes(inputs.ours[0]) + _bytes(bench.trial.eager) + _bytes(gradients))
