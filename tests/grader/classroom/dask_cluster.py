"""Start a dask scheduler and its workers as processes of this machine."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

START_S = 60.0


@dataclass
class LocalCluster:
    """A scheduler's address, its process, and a process for each worker. No nanny starts a worker again."""

    address: str
    scheduler: subprocess.Popen
    folder: Path
    workers: list[subprocess.Popen] = field(default_factory=list)

    def add_worker(self, *options: str, cpus: set[int] | None = None) -> subprocess.Popen:
        """Start a worker with one thread, on these processors alone if some are given."""
        words = [self.address, "--no-nanny", "--no-dashboard", "--nthreads", "1", *options]
        worker = _start("dask_worker", words, self.folder, f"worker{len(self.workers)}.log")
        if cpus:
            os.sched_setaffinity(worker.pid, cpus)
        _wait_for(self.folder / f"worker{len(self.workers)}.log", r"Registered to:")
        self.workers.append(worker)
        return worker


@contextlib.contextmanager
def local_cluster(folder: Path, workers: int = 2) -> Iterator[LocalCluster]:
    """Yield a cluster whose logs lie in a folder; end its processes afterwards."""
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    scheduler = _start("dask_scheduler", options, folder, "scheduler.log")
    cluster = None
    try:
        address = _wait_for(folder / "scheduler.log", r"Scheduler at:\s+(tcp://\S+)")
        cluster = LocalCluster(address, scheduler, folder)
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        for process in [*(cluster.workers if cluster else []), scheduler]:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _start(module: str, words: list[str], folder: Path, log: str) -> subprocess.Popen:
    with open(folder / log, "wb") as out:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *words]
        return subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT)


def _wait_for(log: Path, pattern: str) -> str:
    """Return what the pattern's last group matches in a log, once it does."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if match := re.search(pattern, log.read_text()):
            return match[match.lastindex or 0]
        time.sleep(0.1)
    raise TimeoutError(log.read_text())
