"""The processes that grade for this one. The end of one is the end of one grading and of nothing else."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from grader.judging.processes.judge import NAME, Answer, Order
from grader.judging.trial import Limits
from grader.paths import ROOT
from grader.verdict import Verdict
from simt.toolchain.removal import remove_tree

MARGIN_S = 600.0  # of one grading, besides the limits of its submission: the judge's own work, and building simt
MOST_TRIES = 3  # of a grading whose process ended
LAST_WORDS = 300  # characters of what a process printed that are shown


@dataclass(frozen=True)
class Result:
    """What became of an order: an answer, or how its process ended."""

    answer: Answer | None
    died: str = ""


class _Judge:
    """A process that grades.

    gpu: the one that it sees, as CUDA_VISIBLE_DEVICES names it; None for those that this process sees.
    """

    def __init__(self, threads: int, gpu: str | None):
        self.gpu = gpu
        self.log = tempfile.TemporaryFile()  # noqa: SIM115
        self.folder = Path(tempfile.mkdtemp(prefix="grader-class-"))
        self.folder.chmod(0o711)  # its workers may be other users
        answers, descriptor = os.pipe()
        environment = {
            name: str(threads) for name in ("OMP_NUM_THREADS", "SIMT_THREADS") if name not in os.environ and threads
        }
        if gpu is not None:
            environment["CUDA_VISIBLE_DEVICES"] = gpu
        search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        try:
            self.popen = subprocess.Popen(
                [sys.executable, "-P", "-m", "grader.judging.processes.judge", str(descriptor)],
                stdin=subprocess.PIPE,
                stdout=self.log,
                stderr=self.log,
                cwd=self.folder,
                env=os.environ | environment | {"PYTHONPATH": search, "TMPDIR": str(self.folder), NAME: "1"},
                pass_fds=(descriptor,),
                start_new_session=True,  # Ctrl-C is for the process that gives the orders
            )
        finally:
            os.close(descriptor)
        self.answers = os.fdopen(answers, "rb")
        self.killed = ""

    def carry_out(self, order: Order, early: Callable[[Verdict], None] = lambda verdict: None) -> Result:
        """Grade one file. If the process ends instead of answering, it is of no further use.

        early: called with the verdict before a time is predicted.
        """
        limits = Limits(own=order.seconds)
        seconds = limits.total + limits.build + MARGIN_S
        timer = threading.Timer(seconds, self.kill, [f"did not end within {seconds:g} s"])
        timer.start()
        answer: Answer | None = None
        try:
            assert self.popen.stdin is not None
            self.popen.stdin.write(msgspec.json.encode(order) + b"\n")
            self.popen.stdin.flush()
            for line in self.answers:
                answer = msgspec.json.decode(line, type=Answer) if line.endswith(b"\n") else None
                if answer is None or answer.is_last:
                    break
                if answer.verdict:
                    early(answer.verdict)
        except OSError:
            pass  # it has ended
        finally:
            timer.cancel()
        if answer is None or not answer.is_last:
            return Result(None, self._describe_end())
        return Result(answer)

    def kill(self, why: str = "") -> None:
        """End the process, and with it the workers that it has started."""
        self.killed = self.killed or why
        self.popen.kill()
        self.popen.wait()
        with contextlib.suppress(OSError):
            assert self.popen.stdin is not None
            self.popen.stdin.close()
        remove_tree(self.folder)

    def _describe_end(self) -> str:
        self.kill()
        if self.killed:
            return self.killed
        self.log.seek(0)
        words = self.log.read().decode(errors="replace").strip().splitlines()
        code = self.popen.returncode
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit status {code}"
        return f"{how}{': ' + words[-1][:LAST_WORDS] if words else ''}"


class Judges:
    """The processes that grade for this one. They are kept for later tasks.

    gpus: as CUDA_VISIBLE_DEVICES names them. Each process sees one; as many processes see each, or one more. If there
    are none in the list, all processes see what this one sees.
    """

    def __init__(self) -> None:
        self.gpus: list[str] = []
        self.lock = threading.Lock()
        self.idle: list[_Judge] = []
        self.all: set[_Judge] = set()
        self.closed = False

    def prepare(self, threads: int) -> None:
        """Start a process that take() will lend, unless one is idle."""
        with self.lock:
            if not self.idle and not self.closed:
                self.idle.append(self._add(threads))

    @contextlib.contextmanager
    def take(self, threads: int) -> Iterator[_Judge]:
        """Lend an idle process, or a new one; it is kept for later if it still runs afterwards."""
        with self.lock:
            judge = self.idle.pop() if self.idle else self._add(threads)
            if self.closed:
                judge.kill("was stopped")
        try:
            yield judge
        finally:
            with self.lock:
                if judge.popen.poll() is None and not self.closed:
                    self.idle.append(judge)
                else:
                    self.all.discard(judge)
                    judge.kill()

    def close(self) -> None:
        """End all processes, also those that grade."""
        with self.lock:
            self.closed = True
            left, self.idle = list(self.all), []
            self.all.clear()
        for judge in left:
            judge.kill("was stopped")

    def close_idle(self) -> None:
        """End the processes that wait for a task."""
        with self.lock:
            idle, self.idle = self.idle, []
            self.all.difference_update(idle)
        for judge in idle:
            judge.kill()

    def open(self, gpus: Sequence[str] = ()) -> None:
        """Allow new processes after close(), on these GPUs."""
        self.closed, self.gpus = False, list(gpus)

    def _add(self, threads: int) -> _Judge:
        """Start a process on the GPU that the fewest see; the caller holds the lock."""
        seen = Counter(judge.gpu for judge in self.all)
        judge = _Judge(threads, min(self.gpus, key=lambda gpu: seen[gpu], default=None))
        self.all.add(judge)
        return judge

    def carry_out(self, order: Order, threads: int = 0) -> Result:
        """Grade one file in a process of its own; threads: that one grading uses, 0 for what it would use alone."""
        for _ in range(MOST_TRIES):
            with self.take(threads) as judge:
                result = judge.carry_out(order)
            if result.answer is not None or self.closed:
                return result
        return result
