"""Starting children and hearing what they say, until a problem is measured."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from grader.bench.child import Order
from grader.bench.work import Work

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 900.0  # seconds in which a child says nothing (it compiles) before it is given up


class Lines:
    """A child's lines as they come. It is ended with the with. tick: called about once a second meanwhile."""

    def __init__(self, order: Order, tick: Callable[[], None]):
        take, give = os.pipe()
        self.process = subprocess.Popen(
            order.command(give), pass_fds=[give], env=environment(), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        os.close(give)
        self.take, self.tick, self.said = take, tick, b""

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # with torch.compile's own processes
        self.process.wait()
        self.process.stderr.close()
        os.close(self.take)

    def __iter__(self) -> Iterator[dict]:
        """Raises TimeoutError if it is silent for too long."""
        rest, heard, stderr = b"", time.monotonic(), self.process.stderr.fileno()
        watched = [self.take, stderr]
        while True:
            ended = self.process.poll() is not None
            ready, _, _ = select.select(watched, [], [], 0 if ended else 1.0)
            self.tick()
            if stderr in ready:  # its end says why a child died
                piece = os.read(stderr, 1 << 16)
                self.said = (self.said + piece)[-4000:]
                watched = watched if piece else [self.take]
            if self.take in ready:
                piece, heard = os.read(self.take, 1 << 16), time.monotonic()
                if not piece:
                    return
                *whole, rest = (rest + piece).split(b"\n")
                yield from (json.loads(line) for line in whole)
            elif ended and not ready:
                return
            elif time.monotonic() - heard > PATIENCE:
                raise TimeoutError

    def last_words(self) -> str:
        """The last line that it wrote, or how it ended."""
        code = self.process.wait()
        lines = self.said.decode(errors="replace").strip().splitlines()
        ended = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return f"its process ended ({ended})" + (f": {lines[-1].strip()[:200]}" if lines else "")


@dataclasses.dataclass
class Measured:
    """What a problem's children have said so far, by the names of its rows. samples: seconds of every row's rounds. parts:
    errors of the result and of each gradient. bare: rows without a backward. done, skipped: a sweep's sizes."""

    work: Work | None = None
    roof: dict[str, float] = dataclasses.field(default_factory=dict)
    errors: dict[str, float | None] = dataclasses.field(default_factory=dict)
    parts: dict[str, dict[str, float | None]] = dataclasses.field(default_factory=dict)
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    bare: set[str] = dataclasses.field(default_factory=set)
    samples: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    done: list[str] = dataclasses.field(default_factory=list)
    skipped: dict[str, str] = dataclasses.field(default_factory=dict)
    trying: str | None = None

    def hear(self, line: dict) -> None:
        if "work" in line:
            self.work, self.roof = Work(**line["work"]), line["roof"]
        if "trying" in line:
            self.trying = line["trying"]
        if "error" in line:
            self.errors[line["row"]] = line["error"]
        if "errors" in line:
            self.parts[line["row"]] = line["errors"]
            known = [error for error in line["errors"].values() if error is not None]
            self.errors[line["row"]] = max(known) if len(known) == len(line["errors"]) and known else None
        if "failed" in line:
            self.failed[line["row"]] = line["failed"]
        if "no_gradient" in line:
            self.bare.add(line["row"])
        if "size" in line:
            self.done.append(line["size"])
            if "skipped" in line:
                self.skipped[line["size"]] = line["skipped"]
        for name, seconds in line.get("round", {}).items():
            self.samples.setdefault(name, []).append(seconds)

    def heard(self) -> set[str]:
        """Names of the rows of which something is known."""
        return {*self.errors, *self.failed, *self.samples}

    def begin_again(self) -> None:
        """Drop what the next child measures anew: rows that are run side by side must be of one process."""
        ended = tuple(f"{size}: " for size in self.done)
        self.samples = {name: s for name, s in self.samples.items() if name.startswith(ended)} if ended else {}

    def only(self, prefix: str) -> Measured:
        """What is known of the rows whose names begin so, under the rest of their names."""

        def cut(table: dict) -> dict:
            return {name.removeprefix(prefix): value for name, value in table.items() if name.startswith(prefix)}

        return Measured(
            self.work, self.roof, cut(self.errors), cut(self.parts), cut(self.failed), set(cut(dict.fromkeys(self.bare))),
            cut(self.samples),
        )  # fmt: skip


def environment() -> dict[str, str]:
    """In which a child finds this package."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}


def measure(order: Order, found: Measured, say: Callable[[str], None], tick: Callable[[], None] = lambda: None) -> None:
    """Fill `found` by as many children as it takes. KeyboardInterrupt passes through; what was heard before stays."""
    deadline = time.monotonic() + order.seconds
    while True:
        found.begin_again()
        order.done = list(found.done)
        with Lines(order, tick) as lines:
            try:
                for line in lines:
                    if "trying" in line and line["trying"] not in found.errors | found.samples:
                        say(f"{Path(order.problem).parent.name}: {line['trying']}")
                    found.hear(line)
                ended = lines.process.wait() == 0
                words = "" if ended else lines.last_words()
            except TimeoutError:
                ended, words = False, f"it said nothing for {PATIENCE:.0f} seconds"
        if ended:
            return
        if found.trying is None or found.trying in order.skip:
            raise RuntimeError(words)
        found.failed[found.trying] = words
        order.skip.append(found.trying)
        found.trying = None
        if order.task == "sweep":  # its seconds are those of the whole
            order.seconds = max(0.0, deadline - time.monotonic())


def build(files: Sequence[str], say: Callable[[str], None]) -> None:
    """Compile extensions into torch's cache, side by side, each in a process; what fails says so when it is run."""
    loading = "import sys, pathlib; from grader import bench; bench.load(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", loading]

    def one(file: str) -> None:
        subprocess.run([*command, file], capture_output=True, env=environment() | {"MAX_JOBS": "2"}, check=False)

    say(f"compiling {len(files)} files")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(one, files))
