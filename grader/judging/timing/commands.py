"""Models in workers as commands of the clock: one message starts a batch, and the judge reads what it returned."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import time
from collections.abc import Iterator, Sequence

import torch

from grader.judging import clock
from grader.judging.timing.inputs import TimedInputs
from grader.judging.timing.results import NoResult, Probe
from grader.judging.timing.watch import Watch
from grader.worker import protocol
from grader.worker.client import Client, Gone, Late

WARM_CALLS = 3
SPIN_S = 2.0  # seconds: a judge that sleeps while it waits wakes up late, the later the longer it has slept


class NotDone(Exception):
    """Raised where a worker replied with something else than what a command asks for, which is kept in `reply`."""

    def __init__(self, reply: protocol.Reply):
        super().__init__("not done")
        self.reply = reply


class OtherFailed(Exception):
    """Raised where a worker other than the submission's fails; the text says how."""


def order(client: Client, command: protocol.Command, seconds: float) -> protocol.Reply:
    """Have a worker carry out a command of the timing. Raises Gone, Late, or NotDone."""
    reply = client.ask(command, seconds)
    if isinstance(reply, (protocol.Failure, protocol.Outputs, protocol.Gradients)):
        raise NotDone(reply)
    return reply


@dataclasses.dataclass
class InWorker:
    """A model in a worker as a clock.Command.

    seconds: limit of a batch. watch: looks for others on the GPU. inputs: of the batches. model: which of the worker's
    models, see protocol.Batch. may_modify: whether the model may write to its inputs. calls: see clock.Way.
    """

    client: Client
    seconds: float
    probe: Probe
    watch: Watch
    inputs: TimedInputs
    model: str = ""
    may_modify: bool = False
    calls: int | None = None

    def prepare(self, batch: Sequence[int]) -> None:
        """Have a few calls computed, so that the process is awake and knows its way."""
        if self.may_modify:
            self.inputs.restore(batch)
        order(self.client, protocol.Batch(list(batch[:WARM_CALLS]), self.model), self.seconds)
        if self.may_modify:
            self.inputs.restore(batch)

    def _run(self, batch: Sequence[int]) -> protocol.Timed:
        """Run the model on the prepared inputs of these numbers and read elements of some of the results.

        Raises Gone, Late, NotDone, and NoResult.
        """
        self.client.channel.spin_seconds = SPIN_S
        command = protocol.Batch(list(batch), self.model, self.calls or 0)
        try:
            reply = order(self.client, command, self.seconds)
        finally:
            self.client.channel.spin_seconds = 0.0
        if not isinstance(reply, protocol.Timed):
            raise NotDone(reply)
        self.probe.read(reply.results, len(batch))
        return reply


@dataclasses.dataclass
class Candidate(InWorker):
    """The submission. It gets its inputs when its turn has begun. Methods raise Gone, Late, NotDone, and NoResult.

    kept: copies of one call's results, and the number of its inputs. claims: what the worker says that its batches
    took; nothing depends on it.
    """

    kept: tuple[int, list[torch.Tensor]] | None = None
    claims: list[float] = dataclasses.field(default_factory=list)

    def prepare(self, batch: Sequence[int]) -> None:
        """Let the submission run, and have a few calls computed on the inputs that it had before."""
        self.watch.begin_own()
        super().prepare(batch)

    def run(self, batch: Sequence[int]) -> clock.Turn:
        """Write the inputs and run the submission on them."""
        started = time.perf_counter()
        self.inputs.give(batch)
        giving = self.inputs.given(time.perf_counter() - started, len(batch))
        self.claims.append(self._run(batch).gpu_seconds)
        return clock.Turn(aside=giving)

    def settle(self, batch: Sequence[int]) -> None:
        """Read the other results, stop the submission, and copy the results of a call chosen now."""
        self.probe.read_rest()
        self.watch.end_own()
        call = random.SystemRandom().randrange(len(batch))
        self.kept = None  # before the next copy: two may not fit
        self.kept = batch[call], self.probe.copy(call)


@dataclasses.dataclass
class Other(InWorker):
    """What the submission is compared with, in a process of its own, while the submission is stopped.

    Methods raise OtherFailed where the worker fails. trusted: whether its word is taken for how long its work took.
    """

    trusted: bool = False

    def prepare(self, batch: Sequence[int]) -> None:
        self.watch.begin_other()
        with _blame_other():
            super().prepare(batch)

    def run(self, batch: Sequence[int]) -> clock.Turn:
        """Wait as long as the submission does for its inputs: a worker wakes up the later the longer it has slept."""
        started = time.perf_counter()
        while (waited := time.perf_counter() - started) < self.inputs.giving:
            pass
        with _blame_other():
            reply = self._run(batch)
        return clock.Turn(work=reply.gpu_seconds if self.trusted else 0.0, aside=waited)

    def settle(self, batch: Sequence[int]) -> None:
        """Have the results removed, which the submission could look for."""
        with _blame_other():
            self.probe.read_rest()
        self.watch.end_other()
        with _blame_other():
            order(self.client, protocol.Clear(), self.seconds)


@contextlib.contextmanager
def _blame_other() -> Iterator[None]:
    try:
        yield
    except (Gone, Late, NoResult) as error:
        raise OtherFailed(str(error)) from None
    except NotDone as error:
        raise OtherFailed(getattr(error.reply, "message", "it gave a reply that makes no sense")) from None
