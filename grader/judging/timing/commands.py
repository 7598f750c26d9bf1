"""Models in workers as commands of the clock: one message starts a batch, and the judge reads what it returned."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Iterator, Sequence

import torch

from grader.judging.timing.results import NoResult, Probe
from grader.judging.timing.watch import Watch
from grader.worker import protocol
from grader.worker.client import Client, Gone, Late


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

    seconds: limit of a batch. model: which of the worker's models, see protocol.Batch. null: it computes nothing.
    """

    client: Client
    seconds: float
    probe: Probe
    model: str = ""
    null: bool = False

    def prepare(self) -> None:
        """Send an empty batch, so that the process is awake."""
        order(self.client, protocol.Batch([], self.seconds), self.seconds)

    def run(self, batch: Sequence[int]) -> None:
        """Run the model on the prepared inputs of these numbers and read elements of the results.

        Raises Gone, Late, NotDone, and NoResult.
        """
        command = protocol.Batch(list(batch), self.seconds, self.model, self.null)
        reply = order(self.client, command, self.seconds)
        if not isinstance(reply, protocol.Timed):
            raise NotDone(reply)
        self.probe.read(reply.results, len(batch))

    def settle(self, batch: Sequence[int]) -> None:
        """Do nothing."""


@dataclasses.dataclass
class Candidate(InWorker):
    """The submission. watch: lets it run. kept: copies of one call's results, and the number of its inputs."""

    watch: Watch = dataclasses.field(kw_only=True)
    kept: tuple[int, list[torch.Tensor]] | None = None

    def prepare(self) -> None:
        self.watch.begin_own()
        super().prepare()

    def settle(self, batch: Sequence[int]) -> None:
        """Copy the results of a call chosen now."""
        call = random.SystemRandom().randrange(len(batch))
        self.kept = None  # before the next copy: two may not fit
        self.kept = batch[call], self.probe.copy(call)


@dataclasses.dataclass
class Other(InWorker):
    """What the submission is compared with, in a process of its own, while the submission is stopped.

    Each method raises OtherFailed where the worker fails.
    """

    watch: Watch = dataclasses.field(kw_only=True)

    def prepare(self) -> None:
        self.watch.begin_other()
        with _blame_other():
            super().prepare()

    def run(self, batch: Sequence[int]) -> None:
        with _blame_other():
            super().run(batch)

    def settle(self, batch: Sequence[int]) -> None:
        """Have the results removed, which the submission could look for."""
        self.watch.end_other()
        if not self.null:
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
