"""Does a dask cluster give the grades that one machine gives, whatever part of it fails?"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.classroom import cluster_worker
from grader.classroom.cluster import ClusterError, open_cluster
from grader.classroom.course import CourseError, parse_course
from grader.classroom.gradings import Verdicts
from grader.classroom.journal import Journal
from grader.cli.main import cli
from grader.paths import KERNELS_REF, ROOT
from tests.grader.classroom.class_folder import make_class
from tests.grader.classroom.dask_cluster import LocalCluster, local_cluster
from tests.grader.classroom.test_grade_class import attempt

RULES = 'title = "x"\n[problems.logsumexp]\nfile = "hidden/logsumexp.py"\n[problems.groupnorm]\n'
SLURM = '[slurm]\njobs = 2\ngres = "gpu:1"\npartition = "teaching"\nprologue = ["module load cuda"]\n'
# Runs a job as Slurm does, on this machine: of a copy of the script, which is gone as soon as sbatch has ended.
SBATCH = """#!/bin/sh
cp "$1" "$FAKE/job-$$.sh"
setsid bash "$FAKE/job-$$.sh" >>"$FAKE/job.log" 2>&1 &
echo $! >>"$FAKE/jobs"
echo "Submitted batch job $!"
"""
SCANCEL = '#!/bin/sh\necho "$1" >>"$FAKE/cancelled"\nkill -- -"$1"\n'


def run(folder: Path, *options: str) -> tuple[int, str]:
    """Run `grader class grade` in this process; return its exit status and what it printed."""
    result = CliRunner().invoke(cli, ["class", "grade", "--course", str(folder), *options])
    return result.exit_code, result.output


def start(folder: Path, *options: str, **environment: str) -> subprocess.Popen:
    words = [sys.executable, "-P", "-m", "grader", "class", "grade", "--course", str(folder), "--device", "cpu"]
    return subprocess.Popen(
        [*words, "--allow-unsandboxed", *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=os.environ | environment,
    )  # fmt: skip


def finish(process: subprocess.Popen) -> str:
    printed, _ = process.communicate(timeout=250)
    assert "Traceback" not in printed
    return printed


def read_outcomes(folder: Path) -> dict[str, str]:
    """Return each grading's outcome by its key; each has one verdict."""
    with Journal(folder) as journal:
        assert journal.read("PRAGMA integrity_check") == [("ok",)]
        rows = journal.read("SELECT key, outcome FROM verdicts")
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def start_and_wait(folder: Path, cluster: LocalCluster) -> subprocess.Popen:
    """Start the command on a cluster; return once the first verdict is kept, while other files are being graded."""
    process = start(folder, "--scheduler", cluster.address)
    until = time.monotonic() + 200
    while not read_outcomes(folder):
        assert process.poll() is None and time.monotonic() < until, process.communicate()[0]
        time.sleep(0.05)
    return process


def read_stages(folder: Path) -> dict[str, list]:
    with Journal(folder) as journal:
        last = Verdicts(journal).read_last()
    return {
        key: [(stage.name, stage.status, stage.reason, stage.message, stage.evidence) for stage in one.verdict.stages]
        for key, one in last.items()
    }


@pytest.fixture
def handed_in(tmp_path):
    """A course's folder with a problem file of its own and six files: two are right, the others fail their import."""
    folder = tmp_path / "course"
    (folder / "hidden").mkdir(parents=True)
    (folder / "hidden" / "logsumexp.py").write_text((KERNELS_REF / "logsumexp" / "model.py").read_text())
    right = {name: (KERNELS_REF / name / "solution.py").read_text() for name in ("groupnorm", "logsumexp")}
    files = [attempt("ada", text, name) for name, text in right.items()]
    files += [attempt("bob", f"raise ValueError\n{text}", name) for name, text in right.items()]
    files += [attempt("cyd", f"import no_such_module\n{text}", name) for name, text in right.items()]
    with make_class(folder, files, RULES) as (journal, _, _):
        Verdicts(journal).read_secret()
    return folder


@pytest.fixture
def cluster(tmp_path):
    (tmp_path / "dask").mkdir()
    with local_cluster(tmp_path / "dask") as found:
        yield found


# --- without gradings ---


def test_a_folder_of_locks_that_another_could_have_made(tmp_path, monkeypatch):
    """Is this user's own folder taken twice, and a link in its place refused?"""
    monkeypatch.setattr(cluster_worker.tempfile, "gettempdir", lambda: str(tmp_path))
    made = cluster_worker._make_slots_folder()
    assert made == cluster_worker._make_slots_folder() and made.stat().st_mode & 0o777 == 0o700
    made.rmdir()
    made.symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="remove it"):
        cluster_worker._make_slots_folder()


@pytest.mark.parametrize(
    "options, words",
    [
        (["--dry-run"], "Add --slurm"),
        (["--slurm", "--scheduler", "tcp://127.0.0.1:1"], "exclude each other"),
        (["--slurm"], "course.toml has no table [slurm]"),
    ],
)
def test_options_that_contradict_each_other(handed_in, options, words):
    """Does an option that cannot be meant give one sentence and the exit status 2?"""
    status, printed = run(handed_in, *options)
    assert status == 2 and words in printed


def test_no_address(handed_in):
    """Is what is no address refused with a sentence?"""
    status, printed = run(handed_in, "--scheduler", "nonsense://x")
    assert status == 3 and "nonsense://x is no address of a dask scheduler" in printed


@pytest.mark.slow
def test_no_scheduler(handed_in):
    """Does an address at which no scheduler listens end the command with a sentence?"""
    status, printed = run(handed_in, "--scheduler", "tcp://127.0.0.1:1")
    assert status == 3 and "No dask scheduler answered at tcp://127.0.0.1:1" in printed


def test_the_extra_is_missing(handed_in, monkeypatch):
    """Does the command say how to install dask where it is missing?"""
    for name in ("distributed", "dask_jobqueue", "dask_jobqueue.slurm"):
        monkeypatch.setitem(sys.modules, name, None)
    for options in (["--scheduler", "tcp://127.0.0.1:1"], ["--slurm", "--dry-run"]):
        (handed_in / "course.toml").write_text(RULES + SLURM)
        status, printed = run(handed_in, *options)
        assert status == 3 and "pip install 'gpu-kernel-course[cluster]'" in printed


def test_a_dry_run_prints_the_job_script(handed_in, monkeypatch):
    """Does --dry-run show the job script with the table's values, and submit nothing?"""
    monkeypatch.setenv("PATH", "")  # there is no sbatch
    (handed_in / "course.toml").write_text(RULES + SLURM)
    status, printed = run(handed_in, "--slurm", "--dry-run")
    assert status == 0 and not read_outcomes(handed_in)
    lines = printed.splitlines()
    assert {"#SBATCH -p teaching", "#SBATCH --gres=gpu:1", "#SBATCH --cpus-per-task=8", "module load cuda"} <= {*lines}
    assert any("dask_worker tcp://SCHEDULER:PORT" in line and line.endswith("--resources GPU=1") for line in lines)
    status, printed = run(handed_in, "--slurm")
    assert status == 3 and "sbatch was not found" in printed


@pytest.mark.parametrize(
    "line, words",
    [
        ('memory = "much"', "line 3: `slurm.memory`: Write a size"),
        ('walltime = "2 h"', "line 3: `slurm.walltime`: Write a time"),
        ("jobs = 0", "line 3: `slurm.jobs`"),
        ('queue = "x"', "line 3: `slurm.queue`: There is no such key here."),
    ],
)
def test_mistakes_in_the_table_name_their_line(tmp_path, line, words):
    """Is a mistake in [slurm] reported with its line?"""
    with pytest.raises(CourseError) as caught:
        parse_course(f'title = "x"\n[slurm]\n{line}\n[problems.groupnorm]\n', tmp_path)
    assert words in str(caught.value)


# --- with a cluster ---


@pytest.mark.slow
def test_refused_clusters(cluster: LocalCluster, monkeypatch):
    """Are a cluster without the resource GPU, and one with another torch or other files, refused with a sentence?"""
    with pytest.raises(ClusterError, match="offers the resource GPU"), open_cluster(cluster.address, "cuda", None):
        pass
    ours = sys.modules["grader.classroom.cluster_worker"].read_versions()
    for other, words in (
        (type(ours)("", ours.torch), "files of the course kit differ"),
        (type(ours)(ours.kit, "0.1"), "torch"),
    ):
        monkeypatch.setattr("grader.classroom.cluster.cluster_worker.read_versions", lambda other=other: other)
        monkeypatch.setattr("grader.classroom.cluster.Cluster._check_scheduler", lambda _self: None)
        with pytest.raises(ClusterError, match=words), open_cluster(cluster.address, "cpu", None):
            pass


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_same_verdicts_as_on_one_machine(handed_in, cluster: LocalCluster, tmp_path):
    """Does a cluster of two workers give the verdicts of a local run, also on a problem file that only we have?"""
    alone = tmp_path / "alone"
    (alone / "hidden").mkdir(parents=True)
    for file in ("course.toml", "roster.csv", "class.db", "hidden/logsumexp.py"):
        (alone / file).write_bytes((handed_in / file).read_bytes())
    assert "6 of 6 graded" in finish(start(alone))
    assert "6 of 6 graded" in finish(start(handed_in, "--scheduler", cluster.address))
    assert len(read_outcomes(handed_in)) == 6 and sorted(read_outcomes(handed_in).values()).count("passed") == 2
    assert read_stages(handed_in) == read_stages(alone)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_worker_and_a_killed_client(handed_in, cluster: LocalCluster):
    """Is nothing lost or graded twice when a worker, then the client are killed with -9?"""
    process = start_and_wait(handed_in, cluster)
    cluster.workers[0].kill()
    process.kill()
    process.communicate()
    before = read_outcomes(handed_in)
    assert len(before) < 6
    printed = finish(start(handed_in, "--scheduler", cluster.address))
    assert f"{len(before)} of 6 have a verdict already." in printed and len(read_outcomes(handed_in)) == 6


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_worker_costs_no_verdict(handed_in, cluster: LocalCluster):
    """Does the other worker take over what a killed one was grading?"""
    process = start_and_wait(handed_in, cluster)
    cluster.workers[0].kill()
    assert "6 of 6 graded" in finish(process) and process.returncode == 0
    assert len(read_outcomes(handed_in)) == 6


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_killed_scheduler(handed_in, cluster: LocalCluster):
    """Does the end of the scheduler end the run with a sentence, and does a local run grade the rest?"""
    process = start_and_wait(handed_in, cluster)
    cluster.scheduler.kill()
    assert "was lost. Verdicts until then are kept" in finish(process) and process.returncode == 3
    assert len(read_outcomes(handed_in)) < 6
    finish(start(handed_in))
    assert len(read_outcomes(handed_in)) == 6


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ctrl_c(handed_in, cluster: LocalCluster):
    """Does Ctrl-C end the command with one sentence, and the gradings on the workers with it?"""
    process = start_and_wait(handed_in, cluster)
    children = [Path(f"/proc/{one.pid}/task/{one.pid}/children") for one in cluster.workers]
    process.send_signal(signal.SIGINT)
    assert "Interrupted. The same command grades what is left." in finish(process) and process.returncode == 130
    time.sleep(1)
    judges = [pid for file in children for pid in file.read_text().split()]
    assert not [pid for pid in judges if b"processes.judge" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_slurm_jobs(handed_in, tmp_path):
    """Are two jobs submitted, do they grade the class, and are they cancelled afterwards?"""
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (handed_in / "course.toml").write_text(RULES + '[slurm]\njobs = 2\ncores = 1\nmemory = "4 GB"\ninterface = "lo"\n')
    search = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    process = start(handed_in, "--slurm", PATH=search, FAKE=str(tmp_path))
    assert "6 of 6 graded" in finish(process), (tmp_path / "job.log").read_text()
    assert len(read_outcomes(handed_in)) == 6
    assert {*(tmp_path / "jobs").read_text().split()} == {*(tmp_path / "cancelled").read_text().split()}
