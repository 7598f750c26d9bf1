"""Grade on the machines of a dask cluster. It only transports tasks: what is done is what the journal holds."""

from __future__ import annotations

import contextlib
import functools
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from grader.classroom import cluster_worker
from grader.classroom.cluster_worker import Machine, Versions, carry_out_on_worker, end_run
from grader.classroom.grade_class import MachineError
from grader.judging.processes.judge import Order
from grader.judging.processes.judges import Result

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 10.0
NO_WORKER_S = 60.0  # without any worker, after which a run stops
CLOSE_S = 5.0
GPU = {"GPU": 1}  # the resource that a worker with a GPU offers
INSTALL = "Install them with `pip install 'gpu-kernel-course[cluster]'`."


class ClusterError(MachineError):
    """The cluster cannot be used; the text says why, in a sentence."""


class Cluster:
    """A dask cluster on which this process grades.

    device: on which submissions run there. executor: an executor of concurrent.futures. run: names this process's
    gradings. Use open_cluster().
    """

    def __init__(self, client: Client, address: str, device: str | None, jobs: int | None):
        """Look at the workers. jobs: the most gradings at once. Raises ClusterError."""
        self.client, self.address, self.jobs, self.run = client, address, jobs, secrets.token_hex(8)
        self.versions = cluster_worker.read_versions()
        self.machines: dict[str, Machine] = {}
        self.alone_since: float | None = None
        self._check_scheduler()
        workers = self._read_workers()
        for name, machine in self._describe(workers).items():
            _check_versions(name, machine.versions, self.versions)
        with_gpu = [machine.name for machine in self.machines.values() if machine.gpu]
        self.device = device or ("cuda" if with_gpu else "cpu")
        self.on_gpu = self.device == "cuda"
        if self.on_gpu and not any("GPU" in worker["resources"] for worker in workers.values()):
            raise ClusterError(
                f"No worker of {address} offers the resource GPU, by which times are measured one at a time. Start the "
                "workers with `--resources GPU=1`, or pass `--device cpu`."
            )
        # pure=False: dask must not take two equal orders for one. retries=0: the journal decides what is tried again.
        self.executor: Executor = client.get_executor(
            pure=False, retries=0, **({"resources": GPU} if self.on_gpu else {})
        )

    @property
    def task(self) -> Callable[[Order], Result]:
        """Return what a worker runs for each order."""
        return functools.partial(carry_out_on_worker, run=self.run, versions=self.versions)

    def count(self) -> int:
        """Return how many gradings the cluster takes at once, at least 1. Raises ClusterError if it is lost."""
        workers = self._read_workers()
        if not workers:
            self.alone_since = self.alone_since or time.monotonic()
            if time.monotonic() - self.alone_since > NO_WORKER_S:
                raise ClusterError(f"{self.address} has had no worker for {NO_WORKER_S:g} s. The same command resumes.")
            return 1
        self.alone_since = None
        self._describe({name: one for name, one in workers.items() if name not in self.machines})
        threads: dict[str, int] = {}
        limits: dict[str, int] = {}
        for name, worker in workers.items():
            if machine := self.machines.get(name):
                here = int(worker["resources"].get("GPU", 0)) if self.on_gpu else worker["nthreads"]
                threads[machine.name] = threads.get(machine.name, 0) + here
                limits[machine.name] = machine.slots
        total = max(1, sum(min(number, limits[name]) for name, number in threads.items()))
        return min(total, self.jobs or total)

    def close(self) -> None:
        """Cancel what is under way, and end its processes on the workers."""
        if self.client.status != "running":
            return

        def end() -> None:
            with contextlib.suppress(Exception):  # the cluster may be gone
                self.executor.shutdown(wait=False)
                self.client.run(end_run, self.run, on_error="ignore")

        thread = threading.Thread(target=end, daemon=True)
        thread.start()
        thread.join(CLOSE_S)

    def _check_scheduler(self) -> None:
        """Raise ClusterError unless the scheduler can read this process's tasks: it looks into them."""
        with self._in_words():
            try:
                self.client.run_on_scheduler(cluster_worker.read_versions)
            except OSError:
                raise
            except Exception as error:
                message = f"The scheduler at {self.address} cannot load the grader ({_shorten(error)}). {SAME}"
                raise ClusterError(message) from None

    def _read_workers(self) -> dict[str, dict]:
        """Return dask's description of each worker by its address."""
        if self.client.status != "running":
            raise ClusterError(_lost(self.address))
        with self._in_words():
            return dict(self.client.scheduler_info(n_workers=-1)["workers"])

    def _describe(self, workers: dict[str, dict]) -> dict[str, Machine]:
        """Ask workers for their machines and keep the answers. Raises ClusterError for one without the grader."""
        if not workers:
            return {}
        with self._in_words():
            answers: Any = self.client.run(cluster_worker.describe_machine, workers=[*workers], on_error="return")
        found: dict[str, Machine | Exception] = answers
        for name, machine in found.items():
            if isinstance(machine, OSError):
                continue  # it has just ended
            if not isinstance(machine, Machine):
                raise ClusterError(f"The worker {name} cannot load the grader ({_shorten(machine)}). {SAME}")
            self.machines[name] = machine
        return {name: machine for name, machine in found.items() if isinstance(machine, Machine)}

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            raise ClusterError(_lost(self.address)) from None


SAME = "Install the same checkout of the course kit on the scheduler's machine and on each worker's."


def _lost(address: str) -> str:
    return (
        f"The connection to the dask scheduler at {address} was lost. Verdicts until then are kept; the same command "
        "resumes."
    )


def _shorten(error: object) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__


def _check_versions(name: str, theirs: Versions, ours: Versions) -> None:
    if theirs.torch != ours.torch:
        raise ClusterError(f"The worker {name} has torch {theirs.torch}, this machine {ours.torch}. {SAME}")
    if theirs.kit != ours.kit:
        raise ClusterError(f"The files of the course kit differ between the worker {name} and this machine. {SAME}")


def _silence_logs() -> None:
    """Keep dask's log messages off the terminal: what the user must know is reported in a sentence."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    for name in ("distributed", "tornado", "tornado.application", "asyncio", *names):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


@contextlib.contextmanager
def open_cluster(address: str, device: str | None, jobs: int | None, wait_s: float = CONNECT_S) -> Iterator[Cluster]:
    """Yield the cluster of a scheduler; on leaving, end this process's gradings there.

    wait_s: for the first worker. Raises ClusterError.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError(f"--scheduler and --slurm need dask and dask-jobqueue. {INSTALL}") from None
    _silence_logs()
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except ValueError as error:
        raise ClusterError(f"{address} is no address of a dask scheduler ({error}).") from None
    except Exception:
        message = f"No dask scheduler answered at {address} within {CONNECT_S:g} s. `dask scheduler` starts one."
        raise ClusterError(message) from None
    try:
        try:
            client.wait_for_workers(1, timeout=wait_s)
        except TimeoutError:
            message = f"{address} has had no worker for {wait_s:g} s. `dask worker {address}` starts one."
            raise ClusterError(message) from None
        cluster = Cluster(client, address, device, jobs)
        try:
            yield cluster
        finally:
            cluster.close()
    finally:
        client.close(timeout=CLOSE_S)
