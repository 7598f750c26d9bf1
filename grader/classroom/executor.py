"""Grade many files at once, through any executor of concurrent.futures: threads of this process, or a cluster's.

A task runs in a process of its own (`grader.judging.processes`), which is kept for later tasks.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from pathlib import Path

from grader.judging.processes.judge import Order
from grader.judging.processes.judges import LAST_WORDS, Judges, Result

GIB = 1 << 30
MEMORY = int(1.75 * GIB)  # reserved for one grading, with its compilers
POLL_S = 2.0  # between questions whether there is room for more tasks


_judges = Judges()
atexit.register(_judges.close)
carry_out = _judges.carry_out


@contextlib.contextmanager
def local_executor(jobs: int, gpus: Sequence[str] = ()) -> Iterator[Executor]:
    """Yield an executor that runs so many tasks at once; on leaving, end those that still run.

    gpus: as for Judges.
    """
    _judges.open(gpus)
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
