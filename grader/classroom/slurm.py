"""Start a dask cluster whose workers are Slurm jobs, as the table [slurm] of course.toml describes them."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

from grader.classroom.cluster import INSTALL, ClusterError
from grader.classroom.course import Slurm
from grader.judging.processes.judges import MOST_TRIES

MISSING = f"--slurm needs dask and dask-jobqueue. {INSTALL}"
PLACEHOLDER = "tcp://SCHEDULER:PORT"  # stands in the job script until there is a scheduler


def make_job_script(rules: Slurm) -> str:
    """Return the script of one job; submit nothing. Raises ClusterError if dask-jobqueue is missing."""
    try:
        from dask_jobqueue.slurm import SLURMJob
    except ImportError:
        raise ClusterError(MISSING) from None
    return SLURMJob(PLACEHOLDER, name="NAME", **_make_options(rules)).job_script()


@contextlib.contextmanager
def start_cluster(rules: Slurm) -> Iterator[str]:
    """Start a scheduler in this process and submit the jobs; yield its address. On leaving, cancel the jobs.

    Raises ClusterError.
    """
    try:
        import dask.config as dask_config
        from dask_jobqueue.slurm import SLURMCluster
    except ImportError:
        raise ClusterError(MISSING) from None
    if shutil.which("sbatch") is None:
        raise ClusterError("sbatch was not found. Run `grader class grade --slurm` on a login node of the cluster.")
    with dask_config.set({"distributed.scheduler.allowed-failures": MOST_TRIES - 1}):
        try:
            cluster = SLURMCluster(n_workers=rules.jobs, scheduler_options={"dashboard": False}, **_make_options(rules))
        except (RuntimeError, ValueError, OSError) as error:
            lines = [line for line in str(error).strip().splitlines() if line.strip()]
            raise ClusterError(f"Slurm refused a job: {lines[-1][:300] if lines else type(error).__name__}") from None
    try:
        yield cluster.scheduler_address
    finally:
        cluster.close(timeout=20)


def _make_options(rules: Slurm) -> dict[str, Any]:
    """Return the options of a job under dask-jobqueue's names."""
    directives = [f"--gres={rules.gres}"] if rules.gres else []
    on_gpu = rules.gres is not None and rules.gres.startswith("gpu")
    return {
        "cores": rules.cores,
        "processes": 1,
        "memory": rules.memory,
        "walltime": rules.walltime,
        "queue": rules.partition,
        "account": rules.account,
        "interface": rules.interface,
        "python": rules.python,
        "local_directory": rules.scratch,
        "log_directory": rules.logs,
        "job_name": "grader",
        "job_script_prologue": list(rules.prologue),
        "job_extra_directives": [*directives, *rules.directives],
        "worker_extra_args": ["--resources", "GPU=1"] if on_gpu else [],
    }
