"""Record what a worker sends in a grading, and grade again with a stand-in that replays it, changed or not."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
import random
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import msgspec

from benchmarks.validate import odd_values
from grader.judging import context as contexts
from grader.judging.grading import Limits, grade
from grader.judging.stages import build as build_stage
from grader.judging.trial import Trial
from grader.problems import problem
from grader.verdict import Outcome, StageName, Verdict
from grader.worker import client, protocol, sandbox
from grader.worker.channel import HEADER, Channel
from simt.runtime.monitor import Orders

LIMITS = Limits(own=0.5, build=0.5)


@dataclasses.dataclass
class Recording:
    """A grading as the judge saw it: each message of the worker, encoded, in order.

    conversations: for each message the number of its connection: a worker and its copies have one each. counted:
    whether the verdict depends on the values in it.
    """

    path: Path
    problem: Path | None
    seed: int
    messages: list[bytes]
    conversations: list[int]
    counted: list[bool]
    outcome: Outcome


def record(
    path: Path, model: Path | None, seed: int, start: Callable[..., sandbox.Process] = sandbox.start
) -> Recording:
    """Grade a submission with a real worker and keep what it sent."""
    messages: list[bytes] = []
    channels: list[Channel] = []
    conversations: list[int] = []
    counted: list[bool] = []
    values = Values()
    receive, ask = Channel.answer, client.Client.ask

    def keep(channel: Channel, limit: int, deadline: float) -> protocol.Answer:
        answer = receive(channel, limit, deadline)
        if not any(channel is one for one in channels):
            channels.append(channel)
        messages.append(msgspec.msgpack.encode(answer))
        conversations.append(next(n for n, one in enumerate(channels) if channel is one))
        counted.append(values.counted)
        return answer

    def note(one: client.Client, command: protocol.Command, *rest: Any) -> protocol.Reply:
        values.note(command, next((each for each in rest if isinstance(each, Orders)), Orders()))
        return ask(one, command, *rest)

    with mock.patch.object(Channel, "answer", keep), mock.patch.object(client.Client, "ask", note):
        verdict = grade(path, model, device="cpu", seed=seed, worker=start, progress=values.begin)
    return Recording(path, model, seed, messages, conversations, counted, verdict.outcome)


class Values:
    """Follows a grading: does the verdict depend on the values in the reply to the newest command?

    Not with simt's checks on, nor where it is asked which kernels or operators make them, nor in the first of the two
    calls of "safe" that compare results for other values, which repeats one that "correct" has compared.
    """

    def __init__(self):
        self.stage = StageName.contract
        self.counted, self.repeated = True, False

    def begin(self, stage: StageName, _text: str) -> None:
        """Note the stage; `grade` calls it."""
        self.stage = stage

    def note(self, command: protocol.Command, orders: Orders) -> None:
        """Note a command that is sent, with what simt's runtime is told."""
        if not isinstance(command, (protocol.Forward, protocol.Gradient)):
            self.counted = self.counted and isinstance(command, protocol.Backward)
            return
        self.counted = not (command.check or command.watch or orders.idle or orders.watch)
        if self.counted and self.stage is StageName.safe and command.schedule == "forward" and not self.repeated:
            self.counted, self.repeated = False, True


Script = list[tuple[int, bytes | None]]


class StandIn:
    """A worker's process that is none: it answers each order with the messages of a script.

    scripts: one for each connection, the worker's own first; for each message its order's number and the bytes to send,
    or None to send nothing more. ended: how the process is said to have ended. printed: its log.
    """

    def __init__(self, scripts: list[Script], ended: tuple[int | None, int | None], printed: str):
        self.sock, other = socket.socketpair()
        self.ended, self.description = ended, "none"
        self.work, self.folders, self.monitor = Path(os.devnull), [], None
        self.popen = SimpleNamespace(pid=os.getpid(), poll=lambda: None)
        self.log = SimpleNamespace(text=lambda: printed)
        self.scripts = list(scripts)
        self.others: list[socket.socket] = []
        self.threads: list[threading.Thread] = []
        self._serve(other)

    def _serve(self, other: socket.socket) -> None:
        """Answer at this end of a connection, with the next script."""
        script = self.scripts.pop(0) if self.scripts else []
        self.others.append(other)
        self.threads.append(threading.Thread(target=self._answer, args=(other, script), daemon=True))
        self.threads[-1].start()

    def _answer(self, other: socket.socket, script: Script) -> None:
        waiting, number = list(script), 0
        with contextlib.suppress(OSError):
            while True:
                while waiting and waiting[0][0] <= number:
                    data = waiting.pop(0)[1]
                    if data is None:
                        waiting.clear()
                    else:
                        other.sendall(data)
                self._take_order(other)
                number += 1

    def _take_order(self, other: socket.socket) -> None:
        """Read one order and forget it, but for a connection that comes with it. Raises OSError at the end."""
        header, descriptors, _, _ = socket.recv_fds(other, HEADER, 8)
        for descriptor in descriptors:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                self._serve(socket.socket(fileno=descriptor))
            else:
                os.close(descriptor)
        header += self._read(other, HEADER - len(header)) if header else b""
        left = int.from_bytes(header[-8:], "little")
        if not header:
            raise OSError("closed")
        while left:
            left -= len(self._read(other, min(left, 1 << 20)))

    def _read(self, other: socket.socket, count: int) -> bytes:
        data = other.recv(count, socket.MSG_WAITALL) if count else b""
        if count and not data:
            raise OSError("closed")
        return data

    def alive(self) -> bool:
        return self.sock.fileno() >= 0 and (self.threads[0].is_alive() or self.ended == (None, None))

    def how_it_ended(self, seconds: float = 2.0) -> tuple[int | None, int | None]:
        return self.ended

    def kill(self) -> None:
        for one in (self.sock, *self.others):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(5)
        for one in (self.sock, *self.others):
            one.close()


ENDED = ((None, None), (None, 9), (None, 11), (0, None), (1, None), (74, None), (-1, None), (None, 200))


def make_log(dice: random.Random, path: Path) -> str:
    """Return what the process is said to have printed."""
    line = dice.choice(("7", "0", "9" * 5000, "x"))
    dump = f'Timeout (0:00:01)!\nThread 0x1 (most recent call first):\n  File "{path}", line {line} in forward\n'
    return dice.choice(("", dump, odd_values.make_text(dice) + dump, "Timeout (" * 5000))


class Trials:
    """Keeps each case's expected outputs from one replayed grading to the next: they take longer than the rest."""

    def __init__(self):
        self.kept: dict[tuple[str, str], Trial] = {}
        self.make = contexts.Context.make_trial

    def __call__(self, context: contexts.Context, case: Any) -> Trial:
        key = (str(context.request.path), case.name)
        for trial in context.trials:
            if trial.case is case:
                return trial
        if key not in self.kept:
            self.kept[key] = self.make(context, case)
            return self.kept[key]
        old = self.kept[key]
        trial = dataclasses.replace(
            old, case=case, first_outputs=[], difference=None, launches=[], side_findings=[], gradients=None
        )
        context.trials.append(trial)
        return trial


@contextlib.contextmanager
def fast_judge() -> Iterator[None]:
    """Leave out of gradings what no message changes: the problem's own checks, and what is built once."""
    problems: dict[str, problem.Problem] = {}
    read = problem.read

    def read_once(path: Path, overrides: dict[str, str] | None = None) -> problem.Problem:
        if str(path) not in problems:
            problems[str(path)] = read(path, overrides)
        return copy.copy(problems[str(path)])

    gradients: dict[str, Any] = {}
    from grader.judging.stages import gradient

    compute = gradient.compute_expected_gradients

    def compute_once(asked: problem.Problem, trial: Trial, seed: int) -> Any:
        key = f"{asked.path} {trial.case.name}"
        if key not in gradients:
            gradients[key] = compute(asked, trial, seed)
        return gradients[key]

    kept = Trials()
    with (
        mock.patch.object(contexts.Context, "make_trial", lambda context, case: kept(context, case)),
        mock.patch.object(problem, "read", read_once),
        mock.patch.object(gradient, "compute_expected_gradients", compute_once),
        mock.patch.object(build_stage, "check_determined", lambda *_: None),
        mock.patch.object(build_stage, "_warm_up", lambda *_: None),
        mock.patch.object(client, "GRACE", 0.1),
        mock.patch.object(client, "START_SECONDS", 0.5),
    ):
        yield


def replay(recording: Recording, script: Script, dice: random.Random) -> Verdict:
    """Grade with a stand-in that follows a script, which has an entry for each recorded message."""
    numbers = sorted({0, *recording.conversations})
    scripts = [[sent for sent, n in zip(script, recording.conversations) if n == number] for number in numbers]
    made = StandIn(scripts, dice.choice(ENDED), make_log(dice, recording.path))

    def start(*_: object, **__: object) -> sandbox.Process:
        return cast(sandbox.Process, made)

    try:
        return grade(recording.path, recording.problem, device="cpu", seed=recording.seed, limits=LIMITS, worker=start)
    finally:
        made.kill()
