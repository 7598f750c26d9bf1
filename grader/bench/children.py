"""Start child processes and collect the lines they write, until a problem is measured."""

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

from grader.bench.order import Order
from grader.bench.work import Work
from grader.paths import ROOT

SILENCE_S = 900.0  # without a line (a child compiles meanwhile) before a child is ended


class Child:
    """A child process and the lines it writes. Leaving the `with` block ends it. tick: called about once per second."""

    def __init__(self, order: Order, tick: Callable[[], None]):
        take, give = os.pipe()
        self.process = subprocess.Popen(
            order.make_command(give),
            pass_fds=[give],
            env=make_environment(),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        os.close(give)
        assert self.process.stderr is not None
        self.take, self.tick = take, tick
        self.stderr, self.stderr_end = self.process.stderr, b""

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # with torch.compile's own processes
        self.process.wait()
        self.stderr.close()
        os.close(self.take)

    def __iter__(self) -> Iterator[dict]:
        """Yield its lines. Raises TimeoutError if it writes nothing for SILENCE_S seconds."""
        rest, last, stderr = b"", time.monotonic(), self.stderr.fileno()
        watched = [self.take, stderr]
        while True:
            ended = self.process.poll() is not None
            ready, _, _ = select.select(watched, [], [], 0 if ended else 1.0)
            self.tick()
            if stderr in ready:  # its last line says why a child died
                piece = os.read(stderr, 1 << 16)
                self.stderr_end = (self.stderr_end + piece)[-4000:]
                watched = watched if piece else [self.take]
            if self.take in ready:
                piece, last = os.read(self.take, 1 << 16), time.monotonic()
                if not piece:
                    return
                *whole, rest = (rest + piece).split(b"\n")
                yield from (json.loads(line) for line in whole)
            elif ended and not ready:
                return
            elif time.monotonic() - last > SILENCE_S:
                raise TimeoutError

    def describe_end(self) -> str:
        """Return how the process ended, with the last line it wrote to stderr."""
        code = self.process.wait()
        lines = self.stderr_end.decode(errors="replace").strip().splitlines()
        ended = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return f"its process ended ({ended})" + (f": {lines[-1].strip()[:200]}" if lines else "")


@dataclasses.dataclass
class Measured:
    """What the children of a problem have reported, by row name.

    samples: seconds of each row's rounds. parts: errors of the result and of each gradient. without_gradient: rows
    whose result carries none. done, skipped: sizes of a sweep.
    """

    work: Work | None = None
    roof: dict[str, float] = dataclasses.field(default_factory=dict)
    errors: dict[str, float | None] = dataclasses.field(default_factory=dict)
    parts: dict[str, dict[str, float | None]] = dataclasses.field(default_factory=dict)
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    without_gradient: set[str] = dataclasses.field(default_factory=set)
    samples: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    done: list[str] = dataclasses.field(default_factory=list)
    skipped: dict[str, str] = dataclasses.field(default_factory=dict)
    trying: str | None = None

    def record(self, line: dict) -> None:
        """Add a child's line."""
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
            self.without_gradient.add(line["row"])
        if "size" in line:
            self.done.append(line["size"])
            if "skipped" in line:
                self.skipped[line["size"]] = line["skipped"]
        for name, seconds in line.get("round", {}).items():
            self.samples.setdefault(name, []).append(seconds)

    def known_rows(self) -> set[str]:
        """Return the names of the rows for which anything was reported."""
        return {*self.errors, *self.failed, *self.samples}

    def drop_unfinished(self) -> None:
        """Drop the times that the next child measures again: rows that are compared must run in one process."""
        ended = tuple(f"{size}: " for size in self.done)
        self.samples = {name: s for name, s in self.samples.items() if name.startswith(ended)} if ended else {}

    def select(self, prefix: str) -> Measured:
        """Return what is known of the rows whose names begin with prefix, without the prefix."""

        def cut(table: dict) -> dict:
            return {name.removeprefix(prefix): value for name, value in table.items() if name.startswith(prefix)}

        bare = set(cut(dict.fromkeys(self.without_gradient)))
        return Measured(
            self.work, self.roof, cut(self.errors), cut(self.parts), cut(self.failed), bare, cut(self.samples)
        )


def make_environment() -> dict[str, str]:
    """Return environment variables with which a child finds this package."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}


def measure(
    order: Order, found: Measured, notify: Callable[[str], None], tick: Callable[[], None] = lambda: None
) -> None:
    """Fill `found`, starting another child without the failed row each time one dies.

    notify: called with each row that is tried for the first time. KeyboardInterrupt passes through; `found` keeps what
    was reported before.
    """
    deadline = time.monotonic() + order.seconds
    while True:
        found.drop_unfinished()
        order.done = list(found.done)
        with Child(order, tick) as child:
            try:
                for line in child:
                    if "trying" in line and line["trying"] not in found.errors | found.samples:
                        notify(f"{Path(order.problem).parent.name}: {line['trying']}")
                    found.record(line)
                ended = child.process.wait() == 0
                reason = "" if ended else child.describe_end()
            except TimeoutError:
                ended, reason = False, f"it wrote nothing for {SILENCE_S:.0f} seconds"
        if ended:
            return
        if found.trying is None or found.trying in order.skip:
            raise RuntimeError(reason)
        found.failed[found.trying] = reason
        order.skip.append(found.trying)
        found.trying = None
        if order.task == "sweep":  # its seconds are shared by all sizes
            order.seconds = max(0.0, deadline - time.monotonic())


def build_extensions(files: Sequence[str], notify: Callable[[str], None]) -> None:
    """Compile extensions into torch's cache in parallel, each in a process. A failure is reported when the row runs."""
    loading = "import sys, pathlib; from grader.bench.models import load; load(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", loading]

    def build_one(file: str) -> None:
        subprocess.run([*command, file], capture_output=True, env=make_environment() | {"MAX_JOBS": "2"}, check=False)

    notify(f"compiling {len(files)} files")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(build_one, files))
