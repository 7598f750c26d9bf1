"""Where `grader class grade` and `regrade` grade: on this machine, on a dask cluster, or in Slurm jobs."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from grader.classroom.course import Course
    from grader.judging.processes.judge import Order
    from grader.judging.processes.judges import Result


@dataclass(frozen=True)
class Chosen:
    """The values of the options of `class grade`, under their names."""

    jobs: int | None
    device: str | None
    timeout: float | None  # None: not given
    allow_unsandboxed: bool
    scheduler: str | None
    slurm: bool
    dry_run: bool

    def check(self, course: Course) -> None:
        """Raise UsageError for options that contradict each other or course.toml."""
        if self.scheduler and self.slurm:
            raise click.UsageError("--scheduler and --slurm exclude each other: name one cluster.")
        if self.dry_run and not self.slurm:
            raise click.UsageError("--dry-run shows the job script of --slurm. Add --slurm.")
        if self.slurm and course.slurm is None:
            raise click.UsageError("course.toml has no table [slurm]. Add one; docs/INSTRUCTORS.md lists its keys.")


@dataclass(frozen=True)
class Engine:
    """What carries out gradings. at_once, task: as for grade_all(). device: on which. sentence: for the user."""

    executor: Executor
    at_once: int | Callable[[], int]
    task: Callable[[Order], Result]
    device: str | None
    sentence: str


@contextlib.contextmanager
def open_engine(chosen: Chosen, course: Course, total: int, say: Callable[[str], None]) -> Iterator[Engine]:
    """Yield what carries out so many gradings; on leaving, end those that still run. Raises ClusterError."""
    with contextlib.ExitStack() as stack:
        if chosen.slurm or chosen.scheduler:
            yield _enter_cluster(chosen, course, total, say, stack)
        else:
            yield _enter_local(chosen, total, stack)


def _enter_local(chosen: Chosen, total: int, stack: contextlib.ExitStack) -> Engine:
    from grader.classroom.executor import carry_out, count_jobs, local_executor
    from grader.worker.sandbox import list_gpus

    gpus = list_gpus() if chosen.device != "cpu" else []
    limit, why = (len(gpus), _describe_gpus(len(gpus))) if gpus else count_jobs()
    jobs = min(chosen.jobs or limit, total)
    executor = stack.enter_context(local_executor(jobs, gpus))
    task = functools.partial(carry_out, threads=max(1, len(os.sched_getaffinity(0)) // jobs))
    sentence = f"Grading {total}, {jobs} at once; this machine can take {limit}: {why}."
    return Engine(executor, jobs, task, chosen.device, sentence)


def _describe_gpus(count: int) -> str:
    return "one GPU, on which times are measured" if count == 1 else f"{count} GPUs, one grading at a time on each"


def _enter_cluster(
    chosen: Chosen, course: Course, total: int, say: Callable[[str], None], stack: contextlib.ExitStack
) -> Engine:
    from grader.classroom.cluster import CONNECT_S, open_cluster
    from grader.classroom.slurm import start_cluster

    address, wait_s = chosen.scheduler, CONNECT_S
    if chosen.slurm:
        assert course.slurm is not None  # check() has seen to it
        address, wait_s = stack.enter_context(start_cluster(course.slurm)), 60.0 * course.slurm.wait_minutes
        say(f"{course.slurm.jobs} jobs submitted; grading begins with the first. `squeue --me` lists them.")
    assert address is not None
    cluster = stack.enter_context(open_cluster(address, chosen.device, chosen.jobs, wait_s))
    sentence = f"Grading {total} at {address}, {cluster.count()} at once now, on {cluster.device}."
    return Engine(cluster.executor, cluster.count, cluster.task, cluster.device, sentence)
