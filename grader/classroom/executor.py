"""Grade many files at once, through any executor of concurrent.futures: threads of this process, or a cluster's.

A task runs in a process of its own (judge.py), so that the end of that process is the end of one grading and of nothing
else. These processes are kept for later tasks.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import msgspec

from grader.classroom.judge import NAME, Answer, Order
from grader.judging.trial import Limits
from grader.paths import ROOT
from simt.toolchain.removal import remove_tree

GIB = 1 << 30
MEMORY = int(1.75 * GIB)  # reserved for one grading, with its compilers
MARGIN_S = 600.0  # of one grading, besides the limits of its submission: the judge's own work, and building simt
MOST_TRIES = 3  # of a grading whose process ended
POLL_S = 2.0  # between questions whether there is room for more tasks
LAST_WORDS = 300  # characters of what a process printed that are shown


@dataclass(frozen=True)
class Result:
    """What became of an order: an answer, or how its process ended."""

    answer: Answer | None
    died: str = ""


class _Judge:
    """A process that grades."""

    def __init__(self, threads: int):
        self.log = tempfile.TemporaryFile()  # noqa: SIM115
        self.folder = Path(tempfile.mkdtemp(prefix="grader-class-"))
        self.folder.chmod(0o711)  # its workers may be other users
        answers, descriptor = os.pipe()
        environment = {
            name: str(threads) for name in ("OMP_NUM_THREADS", "SIMT_THREADS") if name not in os.environ and threads
        }
        search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        try:
            self.popen = subprocess.Popen(
                [sys.executable, "-P", "-m", "grader.classroom.judge", str(descriptor)],
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

    def carry_out(self, order: Order) -> Result:
        """Grade one file. If the process ends instead of answering, it is of no further use."""
        limits = Limits(own=order.seconds)
        seconds = limits.total + limits.build + MARGIN_S
        timer = threading.Timer(seconds, self.kill, [f"did not end within {seconds:g} s"])
        timer.start()
        line = b""
        try:
            assert self.popen.stdin is not None
            self.popen.stdin.write(msgspec.json.encode(order) + b"\n")
            self.popen.stdin.flush()
            line = self.answers.readline()
        except OSError:
            pass  # it has ended
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            return Result(None, self._describe_end())
        return Result(msgspec.json.decode(line, type=Answer))

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
    """The processes that grade for this one. They are kept for later tasks."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.idle: list[_Judge] = []
        self.all: set[_Judge] = set()
        self.closed = False

    @contextlib.contextmanager
    def take(self, threads: int) -> Iterator[_Judge]:
        """Lend an idle process, or a new one; it is kept for later if it still runs afterwards."""
        with self.lock:
            judge = self.idle.pop() if self.idle else None
        if judge is None:
            judge = _Judge(threads)
            with self.lock:
                self.all.add(judge)
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

    def open(self) -> None:
        """Allow new processes after close()."""
        self.closed = False

    def carry_out(self, order: Order, threads: int = 0) -> Result:
        """Grade one file in a process of its own; threads: that one grading uses, 0 for what it would use alone."""
        for _ in range(MOST_TRIES):
            with self.take(threads) as judge:
                result = judge.carry_out(order)
            if result.answer is not None or self.closed:
                return result
        return result


_judges = Judges()
atexit.register(_judges.close)
carry_out = _judges.carry_out


@contextlib.contextmanager
def local_executor(jobs: int) -> Iterator[Executor]:
    """Yield an executor that runs so many tasks at once; on leaving, end those that still run."""
    _judges.open()
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="grading")
    try:
        yield pool
    finally:
        _judges.close()
        pool.shutdown(cancel_futures=True)


def run_all(
    executor: Executor,
    orders: Iterable[tuple[str, Order]],
    at_once: int | Callable[[], int],
    task: Callable[[Order], Result] = carry_out,
) -> Iterator[tuple[str, Result]]:
    """Yield the result of each order, with its key, as they come.

    at_once: how many are under way; a function is asked again every few seconds, and what it raises ends the run.
    task: what the executor runs for each order.
    """
    under_way: dict[Future[Result], str] = {}
    left = iter(orders)

    def fill() -> None:
        room = (at_once if isinstance(at_once, int) else at_once()) - len(under_way)
        for key, order in itertools.islice(left, max(0, room)):
            under_way[executor.submit(task, order)] = key

    fill()
    while under_way:
        done, _ = wait(under_way, timeout=POLL_S, return_when=FIRST_COMPLETED)
        for future in done:
            key = under_way.pop(future)
            yield key, _read_result(future)
        fill()


def _read_result(future: Future[Result]) -> Result:
    """Return a task's result. A task that raised, or that the executor lost, has no answer."""
    try:
        return future.result()
    except CancelledError:
        return Result(None, "was cancelled by the scheduler")
    except Exception as error:
        sentence = str(error).strip().split(". ")[0][:LAST_WORDS].rstrip(".")
        return Result(None, f"was lost ({type(error).__name__}: {sentence})")


# --- what a machine can take ---


def count_jobs(read: Callable[[Path], str] = Path.read_text) -> tuple[int, str]:
    """Return how many gradings at once this machine can take, and in words what limits it: processors or memory."""
    processors, memory = len(os.sched_getaffinity(0)), _find_free_memory(read)
    if memory // MEMORY >= processors:
        return processors, f"{processors} processors"
    return max(1, memory // MEMORY), f"{memory / GIB:.1f} GiB of free memory, of which 1.75 are reserved for each"


def _find_free_memory(read: Callable[[Path], str]) -> int:
    """Return the bytes that are free on the machine and in this process's control group."""
    free = sys.maxsize
    with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
        line = next(line for line in read(Path("/proc/meminfo")).splitlines() if line.startswith("MemAvailable"))
        free = int(line.split()[1]) << 10
    with contextlib.suppress(OSError, ValueError, IndexError):
        group = Path("/sys/fs/cgroup") / read(Path("/proc/self/cgroup")).split("::", 1)[1].strip().lstrip("/")
        free = min(free, int(read(group / "memory.max")) - int(read(group / "memory.current")))
    return free
