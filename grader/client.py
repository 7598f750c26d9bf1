"""The judge's end of the conversation with a worker: commands with deadlines, and how a dead worker died."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

from grader import channel
from grader.channel import MAX_SOURCE, Channel, ChannelError, ChannelTimeout
from grader.sandbox import Process

START_SECONDS = 600.0  # it may have to build simt's runtime first, on a slow machine
GRACE = 1.5  # seconds between the worker's writing down where it hangs and its end
REPLY_BYTES = 32 << 20  # room for everything in a reply that is not a tensor
BUILT_BYTES = 4 << 20  # more than the worker sends of one build: two arguments, each as a whole and by items, at 4 bytes a character
MOST_BUILDS = 32  # whose sources are kept
DUMP = re.compile(r"^(?:Fatal Python error: .*|Timeout \(.*\)!)$", re.MULTILINE)


class Gone(Exception):
    """The worker is dead, or talks nonsense and was killed. died: how, in words; line: of the submission, if known."""

    def __init__(self, died: str, line: int | None):
        super().__init__(died)
        self.died, self.line = died, line


class Late(Exception):
    """The worker was still busy at the deadline and was killed. line: of the submission, where it was, if known."""

    def __init__(self, seconds: float, line: int | None):
        super().__init__(f"no answer after {seconds:g} s")
        self.seconds, self.line = seconds, line


class NotStarted(Exception):
    """The worker process never said that it is ready: a fault of the machine or of the grader."""


class Client:
    """A worker that carries out one command at a time. sources: the strings it compiled, newest first, of many builds the last ones."""

    def __init__(self, process: Process, submission: Path, progress: Callable[[str], None], build_seconds: float):
        self.process = process
        self.path = str(submission)
        self.progress = progress
        self.build_seconds = build_seconds
        self.channel = Channel(process.sock, process.alive)
        self.sources: list[dict[str, str]] = []
        self.number = 0
        self.versions: dict[str, str] = {}

    def wait_until_ready(self) -> None:
        """Wait for the worker's first message. NotStarted with its last words if it does not come."""
        try:
            reply = self.channel.answer(REPLY_BYTES, time.monotonic() + START_SECONDS).reply
        except ChannelError as error:
            self.process.kill()
            last = (self.process.log.text().strip().splitlines() or [str(error)])[-1]
            raise NotStarted(last[:300]) from None
        if not isinstance(reply, channel.Ready):
            raise NotStarted("its first message makes no sense")
        self.versions = reply.versions

    def ask(self, command: channel.Command, seconds: float, extra_bytes: int = 0) -> channel.Reply:
        """Have one command carried out within `seconds`, compilers not counted. Raises Gone or Late; both kill it."""
        self.number += 1
        left, started = seconds + GRACE, time.monotonic()
        try:
            self.channel.send(channel.Order(self.number, command), seconds + GRACE)
            while True:
                reply = self._next(REPLY_BYTES + extra_bytes, started + left)
                if isinstance(reply, channel.Building):
                    self.progress(f"compiling {reply.name[:200]}")
                    left -= time.monotonic() - started
                    self._compile()
                    started = time.monotonic()
                    self.progress("")
                elif not isinstance(reply, (channel.Built, channel.Ready)):
                    return reply
        except ChannelTimeout:
            self.process.kill()
            raise Late(seconds, self._line()) from None
        except ChannelError as error:
            raise self._gone(error) from None

    def _compile(self) -> None:
        """Wait for the end of one compilation; all of them together have build_seconds."""
        started = time.monotonic()
        while True:
            reply = self._next(BUILT_BYTES, started + self.build_seconds)
            if isinstance(reply, channel.Built):
                self._keep(reply.sources)
                self.build_seconds -= time.monotonic() - started
                return
            if not isinstance(reply, channel.Building):
                raise ChannelError("messages came in an order that makes no sense")

    def _keep(self, sources: dict[str, str]) -> None:
        """Keep a build's sources, at most what worker.labelled makes of them: a submission can send more in the worker's name."""
        kept, left = {}, 4 * MAX_SOURCE
        for label, text in list(sources.items())[:42]:
            kept[label[:200]] = text[: min(left, MAX_SOURCE)]
            left -= len(kept[label[:200]])
        others = [one for one in self.sources if one != kept]  # a kernel is built again for the checks
        self.sources = [kept, *others][:MOST_BUILDS]

    def _next(self, limit: int, deadline: float) -> channel.Reply:
        answer = self.channel.answer(limit, deadline)
        if answer.number != self.number:
            raise ChannelError("an answer came that nobody asked for")
        return answer.reply

    def _gone(self, error: ChannelError) -> Gone:
        """What to say of a broken connection: by how the process ended, or that it was not a message."""
        code, number = self.process.how_it_ended()
        self.process.kill()
        if number == signal.SIGKILL:
            died = "was killed (SIGKILL): by itself, or because the machine ran out of memory"
        elif number is not None:
            died = f"died of {_signal_name(number)}"
        elif code == channel.LOST:
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
        frame = re.search(rf'^  File "{re.escape(self.path)}", line (\d+) in ', text[dumps[-1].start() :], re.MULTILINE)
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
