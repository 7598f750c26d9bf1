"""The judge's end of the conversation with a worker: commands with deadlines, and how a dead worker died."""

from __future__ import annotations

import math
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

from grader.worker import protocol
from grader.worker.claims import is_reply_to
from grader.worker.process import Process
from grader.worker.protocol import MAX_SOURCE, Channel, ChannelError, ChannelTimeout
from grader.worker.quota import Quota
from simt.runtime.monitor import Monitor, Orders, Report, ReportError

START_SECONDS = 600.0  # it may have to build simt's runtime first, on a slow machine
GRACE = 1.5  # seconds between the worker's writing down where it hangs and its end
REPLY_BYTES = 4 << 20  # room for everything in a reply that is not a tensor: more than the schema's bounds allow
# more than the worker sends of one build: two arguments, each as a whole and by items, at 4 bytes a character
KEPT_BUILDS = 32  # whose sources are kept
MOST_BUILDS = 1000  # that are taken for builds: more would be a way to make time
CONSTRUCT_KERNEL_S = 10.0  # limit of one launch while ModelNew is constructed
DUMP = re.compile(r"^(?:Fatal Python error: .*|Timeout \(.*\)!)$", re.MULTILINE)


KILLED = "was killed (SIGKILL)"  # begins what is said of a process that something else may have ended


class Gone(Exception):
    """The worker is dead, or talks nonsense and was killed. died: how, in words; line: of the submission, if known."""

    def __init__(self, died: str, line: int | None):
        super().__init__(died)
        self.died, self.line = died, line


class Late(Exception):
    """The worker was still busy at the deadline and was killed. line: of the submission, where it was, if known.

    seconds: the limit, of all commands together if `total`.
    """

    def __init__(self, seconds: float, line: int | None, total: bool = False):
        super().__init__(f"no answer after {seconds:g} s")
        self.seconds, self.line, self.total = seconds, line, total


class NotStarted(Exception):
    """The worker process never reported that it is ready: a fault of the machine or of the grader."""


def make_orders(command: protocol.Command) -> Orders:
    """Return the orders for simt's runtime that a command stands for."""
    if isinstance(command, (protocol.Forward, protocol.Gradient)):
        return Orders(
            check=command.check, schedule=command.schedule, guard=command.guard, seconds=command.kernel_seconds
        )
    if isinstance(command, protocol.Tally):
        return Orders(count=True, seconds=command.kernel_seconds)
    if isinstance(command, protocol.Construct):
        return Orders(guard=command.guard, seconds=CONSTRUCT_KERNEL_S)
    return Orders()


class Client:
    """A worker that carries out one command at a time.

    build_seconds: for the compilers of all commands together. total_seconds: for all else that the commands do.
    sources: the strings it compiled, newest first, of many builds the last ones. failed_build: the last one that gave
    no extension. monitor: of simt's runtime in the worker; None on a GPU and where no kernel can be built. report: the
    runtime's on the last command.
    """

    def __init__(
        self,
        process: Process,
        submission: Path,
        progress: Callable[[str], None],
        build_seconds: float,
        total_seconds: float = math.inf,
    ):
        self.process = process
        self.path = str(submission)
        self.progress = progress
        self.build_seconds = build_seconds
        self.total_seconds, self.used_seconds = total_seconds, 0.0
        self.quota = Quota(process.folders)
        self.channel = Channel(process.sock, self._may_go_on)
        self.sources: list[dict[str, str]] = []
        self.failed_build: protocol.Failure | None = None
        self.number, self.builds = 0, 0
        self.versions: dict[str, str] = {}
        self.monitor: Monitor | None = None
        self.report = Report()

    def _may_go_on(self) -> bool:
        """Return whether the worker runs and its folders are within their limits."""
        return self.process.alive() and not self.quota.is_exceeded()

    def wait_until_ready(self) -> None:
        """Wait for the worker's first message. NotStarted with its last words if it does not come."""
        try:
            reply = self.channel.answer(REPLY_BYTES, time.monotonic() + START_SECONDS).reply
        except ChannelError as error:
            self.process.kill()
            last = (self.process.log.text().strip().splitlines() or [str(error)])[-1]
            raise NotStarted(last[:300]) from None
        if not isinstance(reply, protocol.Ready):
            self.process.kill()
            raise NotStarted("its first message makes no sense")
        self.versions = reply.versions
        monitor = self.process.monitor
        if monitor is not None and monitor.is_obeyed():
            monitor.lock()
            self.monitor = monitor

    def ask(
        self, command: protocol.Command, seconds: float, extra_bytes: int = 0, orders: Orders | None = None
    ) -> protocol.Reply:
        """Have one command carried out within `seconds`, compilers not counted. Raises Gone or Late; both kill it.

        orders: for simt's runtime, those of make_orders(command) if None.
        """
        self.number += 1
        if self.monitor is not None:
            self.monitor.order(orders or make_orders(command))
        is_last = self.total_seconds - self.used_seconds < seconds
        left, started = GRACE + (self.total_seconds - self.used_seconds if is_last else seconds), time.monotonic()
        try:
            self.channel.send(protocol.Order(self.number, command), seconds + GRACE)
            while True:
                reply = self._next(REPLY_BYTES + extra_bytes, started + left)
                passed = time.monotonic() - started
                if isinstance(reply, protocol.Building):
                    left -= passed
                    self.used_seconds += passed
                    reply = self._compile(reply, REPLY_BYTES + extra_bytes)
                    started, passed = time.monotonic(), 0.0
                if self.quota.is_exceeded():
                    raise ChannelError(self.quota.excess)
                if is_reply_to(reply, command):
                    self.used_seconds += passed
                    self._read_report()
                    return reply
                if isinstance(reply, protocol.Built):
                    self._keep_build(reply)
                else:
                    raise ChannelError("a reply came that does not answer the command")
        except ChannelTimeout:
            self.process.kill()
            raise Late(self.total_seconds if is_last else seconds, self._line(), is_last) from None
        except ChannelError as error:
            raise self._gone(error) from None

    def _read_report(self) -> None:
        """Read what simt's runtime reports of the command. Raises ChannelError where it makes no sense."""
        try:
            self.report = self.monitor.read() if self.monitor is not None else Report()
        except ReportError as error:
            raise ChannelError(f"the report of the kernels makes no sense ({error})") from None

    def _compile(self, first: protocol.Building, limit: int) -> protocol.Reply:
        """Wait until no compiler runs: threads may build side by side. All builds together have build_seconds.

        Returns what ended it: the last build's Built, or the command's reply if a build goes on in another thread.
        """
        started, running = time.monotonic(), 0
        reply: protocol.Reply = first
        while True:
            if isinstance(reply, protocol.Building):
                self.progress(f"compiling {reply.name[:200]}")
                self.builds, running = self.builds + 1, running + 1
                if self.builds > MOST_BUILDS:
                    raise ChannelError(f"more than {MOST_BUILDS} builds were reported")
            elif isinstance(reply, protocol.Built) and running > 1:
                self._keep_build(reply)
                running -= 1
            else:
                break
            reply = self._next(limit, started + self.build_seconds)
        self.build_seconds -= time.monotonic() - started
        self.progress("")
        return reply

    def _keep_build(self, reply: protocol.Built) -> None:
        if reply.sources:  # torch.compile's graphs have none
            self._keep(reply.sources)
        self.failed_build = reply.failure or self.failed_build

    def _keep(self, sources: dict[str, str]) -> None:
        """Keep a build's sources, at most what worker.labelled makes of them: a submission can send more in the
        worker's name.
        """
        kept, left = {}, 4 * MAX_SOURCE
        for label, text in list(sources.items())[:42]:
            kept[label[:200]] = text[: min(left, MAX_SOURCE)]
            left -= len(kept[label[:200]])
        others = [one for one in self.sources if one != kept]  # a kernel is built again for the checks
        self.sources = [kept, *others][:KEPT_BUILDS]

    def _next(self, limit: int, deadline: float) -> protocol.Reply:
        answer = self.channel.answer(limit, deadline)
        # a build in another thread may be reported between two commands, with the number of the one before
        is_early = answer.number == self.number - 1 and isinstance(answer.reply, protocol.Building | protocol.Built)
        if answer.number != self.number and not is_early:
            raise ChannelError("an answer came without a request")
        return answer.reply

    def _gone(self, error: ChannelError) -> Gone:
        """What to say of a broken connection: by how the process ended, or that it was not a message."""
        code, number = (None, None) if self.quota.excess else self.process.how_it_ended()
        self.process.kill()
        if self.quota.excess:
            died = f"was stopped: {self.quota.excess}"
        elif number == signal.SIGKILL:
            died = f"{KILLED}: by itself, or because the machine ran out of memory"
        elif number is not None:
            died = f"died of {_signal_name(number)}"
        elif code == protocol.LOST:
            died = "closed its connection to the grader: it closes files that it did not open"
        elif code is None:
            died = f"broke the connection to the grader: {error}"
        else:
            died = f"ended itself with exit status {code}"
        return Gone(died, self._line())

    def _line(self) -> int | None:
        """The submission's line in the last list of frames that faulthandler printed."""
        text = self.process.log.text()
        dumps = list(DUMP.finditer(text))
        if not dumps:
            return None
        frame = re.search(
            rf'^  File "{re.escape(self.path)}", line (\d{{1,10}}) in ', text[dumps[-1].start() :], re.MULTILINE
        )
        return int(frame.group(1)) if frame else None

    def printed(self) -> str:
        """What the program printed, without faulthandler's own words."""
        text = self.process.log.text()
        first = DUMP.search(text)
        return text[: first.start()] if first else text

    def close(self) -> None:
        """End the worker."""
        self.process.kill()


def _signal_name(number: int) -> str:
    words = {
        signal.SIGSEGV: "a segmentation fault",
        signal.SIGABRT: "an abort",
        signal.SIGFPE: "an arithmetic fault, such as an integer division by zero",
        signal.SIGILL: "an illegal instruction",
        signal.SIGBUS: "a bus error",
    }
    try:
        name = signal.Signals(number)
    except ValueError:
        return f"signal {number}"
    return f"{words[name]} ({name.name})" if name in words else name.name
