"""Is each file that a class handed in graded once, and each verdict kept, whatever fails?"""

import contextlib
import importlib.metadata
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.classroom import executor, gradings
from grader.classroom.collect import Attempt
from grader.classroom.grade_class import MOST_IN_A_ROW, MachineError, Options, grade_all
from grader.classroom.gradings import Verdicts, make_gradings
from grader.classroom.journal import Journal
from grader.cli.class_engine import Chosen, Engine, open_engine
from grader.cli.main import cli
from grader.judging.processes.judge import NAME, Order
from grader.paths import KERNELS_REF, ROOT
from grader.verdict import Outcome, Reason, Status, Verdict
from tests.grader.classroom import class_folder
from tests.grader.classroom.class_folder import CannedExecutor, make_class, make_verdict

OPTIONS = Options(device="cpu")


def attempt(student: str, data: str, problem: str = "groupnorm") -> Attempt:
    return Attempt(student, problem, f"{student}.py", data.encode(), None)


def gradings_of(journal, course, folder):
    return make_gradings(journal.attempts(), course, folder, Verdicts(journal).read_secret())


def test_the_same_file_is_graded_once(tmp_path):
    """Is a file of two students one grading, and the same file for another problem another one?"""
    handed_in = [attempt("ada", "x"), attempt("bob", "x"), attempt("bob", "x", "logsumexp"), attempt("cyd", "y")]
    with make_class(tmp_path, handed_in) as (journal, course, _):
        needed, executed = gradings_of(journal, course, tmp_path), CannedExecutor()
        steps = list(grade_all(journal, list(needed.values()), executed, OPTIONS, 2))
        assert len(steps) == len(executed.orders) == 3
        assert {(one.name, one.data) for one in executed.orders} == {
            ("groupnorm.py", b"x"), ("logsumexp.py", b"x"), ("groupnorm.py", b"y")
        }  # fmt: skip
        assert Verdicts(journal).read_keys() == {*needed}


def test_a_checkout_that_is_not_installed(tmp_path, monkeypatch):
    """Has a grading the same key where the package is installed and where Python only finds its folder?"""

    def not_installed(name):
        raise importlib.metadata.PackageNotFoundError(name)

    with make_class(tmp_path, [attempt("ada", "x")]) as (journal, course, _):
        installed = gradings_of(journal, course, tmp_path)
        gradings._read_version.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(importlib.metadata, "version", not_installed)
            assert gradings_of(journal, course, tmp_path).keys() == installed.keys()
        gradings._read_version.cache_clear()


def test_a_seed_is_the_same_in_each_run_and_another_in_another_course(tmp_path):
    """Do the inputs follow from the file and a secret that each course draws for itself?"""
    seeds = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with make_class(tmp_path / name, [attempt("ada", "x"), attempt("bob", "y")]) as (journal, course, _):
            first, again = gradings_of(journal, course, tmp_path), gradings_of(journal, course, tmp_path)
            assert first == again
            seeds += [one.seed for one in first.values()]
    assert len({*seeds}) == 4 and all(0 <= seed < 2**48 for seed in seeds)


def test_changed_rules_need_other_gradings(tmp_path):
    """Is a file graded again when a problem's file, operators or cases change, and not when points do?"""
    rules = 'title = "x"\n[problems.groupnorm]\nfile = "hidden.py"\n'
    (tmp_path / "hidden.py").write_text("# first")
    with make_class(tmp_path, [attempt("ada", "x")], rules) as (journal, course, _):
        first = gradings_of(journal, course, tmp_path)
        (one,) = first.values()
        assert one.model == str((tmp_path / "hidden.py").resolve()) and not one.settings
        course.points.correct = 99
        assert gradings_of(journal, course, tmp_path) == first
        course.problems["groupnorm"].allow = ["mm"]
        (one,) = gradings_of(journal, course, tmp_path).values()
        assert one.key not in first and one.settings == {"ALLOWED_OPERATORS": "['mm']"}
        course.problems["groupnorm"].allow = None
        course.problems["groupnorm"].cases = "own sizes"
        (one,) = gradings_of(journal, course, tmp_path).values()
        assert one.key not in first and one.settings == {"CASES": "'own sizes'"}
        course.problems["groupnorm"].cases = None
        (tmp_path / "hidden.py").write_text("# second")
        assert not {*gradings_of(journal, course, tmp_path)} & {*first}


def test_what_the_machine_could_not_grade_is_graded_later(tmp_path):
    """Is an error of the grader no verdict on a submission, and does an earlier verdict outlast it?"""
    with make_class(tmp_path, [attempt("ada", "x"), attempt("bob", "y"), attempt("cyd", "z")]) as (journal, course, _):
        gradings = gradings_of(journal, course, tmp_path)
        executed = CannedExecutor(x=Outcome.error, y="was ended by signal 9")
        steps = {step.grading.sha256: step for step in grade_all(journal, [*gradings.values()], executed, OPTIONS, 1)}
        assert sorted(step.trouble for step in steps.values()) == [
            "", "The machine failed.", "The process that graded it was ended by signal 9."
        ]  # fmt: skip
        assert len(Verdicts(journal).read_keys()) == 1
        left = [one for key, one in gradings.items() if key not in Verdicts(journal).read_keys()]
        list(grade_all(journal, left, CannedExecutor(), OPTIONS, 1))
        assert Verdicts(journal).read_keys() == {*gradings}
        list(grade_all(journal, [*gradings.values()], CannedExecutor(x=Outcome.error), Options(because="a doubt"), 1))
        last = Verdicts(journal).read_last()
        assert all(one.verdict.outcome is Outcome.passed for one in last.values())
        assert sorted(one.because for one in last.values()) == ["", "a doubt", "a doubt"]


def test_a_verdict_counts_until_another_device_or_time_limit_is_given(tmp_path, monkeypatch):
    """Is a file graded again with another --device, a shorter --timeout, or a longer one after a time limit, with the
    reason; and are all verdicts kept without these options?
    """
    executed = CannedExecutor()

    def make(order: Order, what: Outcome) -> Verdict:
        verdict = make_verdict(order, what)
        verdict.device = "NVIDIA H200" if order.device == "cuda" else "cpu (x86_64, 2 cores)"
        verdict.timeout = order.seconds
        if order.data == b"slow" and order.seconds < 30:
            verdict.outcome, verdict.stages[2].status = Outcome.failed, Status.failed
            verdict.stages[2].reason = Reason.timeout
        return verdict

    def count(*options: str) -> int:
        executed.orders.clear()
        result = CliRunner().invoke(cli, ["class", "grade", "--course", str(tmp_path), *options])
        assert result.exit_code == 0, result.output
        return len(executed.orders)

    monkeypatch.setattr(class_folder, "make_verdict", make)
    engine = lambda chosen, *_: contextlib.nullcontext(Engine(executed, 1, executor.carry_out, chosen.device, ""))  # noqa: E731
    monkeypatch.setattr("grader.cli.class_grade.open_engine", engine)
    with make_class(tmp_path, [attempt("ada", "quick"), attempt("bob", "slow")]):
        pass
    assert count("--device", "cpu") == 2 and count("--device", "cpu") == 0 and count() == 0
    assert count("--timeout", "20") == 0 and count("--timeout", "60") == 1 and count() == 0
    assert count("--timeout", "5") == 2 and count() == 0
    assert count("--device", "cuda") == 2 and count("--device", "cuda", "--timeout", "60") == 1
    with Journal(tmp_path) as journal:
        rows = journal.read("SELECT because FROM verdicts")
    assert [because for (because,) in rows] == ["", "", *["another --device or --timeout"] * 6]


def test_a_failing_machine_stops_the_run(tmp_path):
    """Are not all of a class's files tried on a machine on which one after another fails?"""
    handed_in = [attempt("ada", f"{n}") for n in range(3 * MOST_IN_A_ROW)]
    with make_class(tmp_path, handed_in) as (journal, course, _):
        gradings = [*gradings_of(journal, course, tmp_path).values()]
        executed = CannedExecutor(**{f"{n}": "ended with exit status 1: no space left" for n in range(99)})
        with pytest.raises(MachineError, match="no space left"):
            list(grade_all(journal, gradings, executed, OPTIONS, 1))
        assert len(executed.orders) <= MOST_IN_A_ROW + 1


@pytest.mark.parametrize(
    "available, group, processors, jobs", [(20, None, 4, 4), (4, None, 4, 2), (1, None, 4, 1), (20, 6, 4, 3)]
)
def test_jobs_that_a_machine_can_take(monkeypatch, available, group, processors, jobs):
    """Are there no more gradings at once than processors, and than memory is free for?"""
    texts = {
        "/proc/meminfo": f"MemTotal: 99 kB\nMemAvailable: {available << 20} kB\n",
        "/proc/self/cgroup": "0::/it\n",
        "/sys/fs/cgroup/it/memory.max": "max" if group is None else str((group << 30) + 5),
        "/sys/fs/cgroup/it/memory.current": "5",
    }
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {*range(processors)})
    found, why = executor.count_jobs(lambda path: texts[str(path)])
    assert found == jobs and ("memory" in why) == (jobs < processors)


@pytest.mark.parametrize(
    ("gpus", "device", "given", "jobs", "threads", "words"),
    [
        (["0", "1", "2"], None, None, 3, 4, "3 GPUs, one grading at a time on each"),
        (["0"], "cuda", None, 1, 12, "one GPU, on which times are measured"),
        (["0"], None, 2, 2, 6, "one GPU"),  # they take turns on it
        (["0", "1"], "cpu", None, 12, 1, "12 processors"),
    ],
)
def test_gradings_at_once_on_this_machine(gpus, device, given, jobs, threads, words, tmp_path, monkeypatch):
    """Is there one grading at a time on each GPU, and does each use its part of the processors?"""
    opened = []
    local = lambda jobs, gpus: contextlib.nullcontext(opened.append((jobs, gpus)))  # noqa: E731
    monkeypatch.setattr(executor, "local_executor", local)
    monkeypatch.setattr(executor, "count_jobs", lambda: (12, "12 processors"))
    monkeypatch.setattr("grader.worker.sandbox.list_gpus", lambda: gpus)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {*range(12)})
    chosen = Chosen(given, device, None, True, None, False, False)
    with make_class(tmp_path, []) as (_, course, _), open_engine(chosen, course, 100, print) as engine:
        assert opened == [(jobs, gpus if device != "cpu" else [])] and engine.at_once == jobs
        assert engine.task.keywords == {"threads": threads} and words in engine.sentence


# --- with real gradings ---

MARK = "CLASS_TEST"  # a variable with the course's folder, by which a test finds its own processes


@pytest.fixture
def handed_in(tmp_path):
    """A course's folder with six files that were handed in: one is right, others fail their import or name nothing."""
    right = {name: (KERNELS_REF / name / "solution.py").read_text() for name in ("groupnorm", "logsumexp")}
    files = [attempt("ada", right["logsumexp"], "logsumexp"), attempt("ada", "x = 1", "groupnorm")]
    files += [attempt("bob", f"raise ValueError\n{text}", name) for name, text in right.items()]
    files += [attempt("cyd", f"import no_such_module\n{text}", name) for name, text in right.items()]
    with make_class(tmp_path, files):
        return tmp_path


def start(folder: Path, jobs: int = 2) -> subprocess.Popen:
    """Start `grader class grade` with a folder of its own for temporary files."""
    words = [sys.executable, "-P", "-m", "grader", "class", "grade", "--course", str(folder), "--device", "cpu"]
    (folder / "tmp").mkdir(exist_ok=True)
    environment = os.environ | {"TMPDIR": str(folder / "tmp"), MARK: str(folder)}
    return subprocess.Popen(
        [*words, "--jobs", str(jobs), "--allow-unsandboxed"], cwd=ROOT, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip


def grade(folder: Path, seconds: float = 0) -> str:
    """Run `grader class grade`, kill it after so many seconds if not 0, and return what it wrote to standard error."""
    process = start(folder)
    if seconds:
        time.sleep(seconds)
        process.kill()
    _, said = process.communicate(timeout=300)
    return said


def judges(folder: Path) -> set[int]:
    """Return the processes that grade for a course's folder."""
    found, wanted = set(), {f"{NAME}=1".encode(), f"{MARK}={folder}".encode()}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted <= {*(process / "environ").read_bytes().split(b"\0")}:
                found.add(int(process.name))
        except OSError:
            pass
    return found


def wait_for(condition, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.1)
    return condition()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_and_resumed_the_grades_are_the_same(handed_in, tmp_path_factory):
    """Killed at several moments, does the same command end with the grades of an undisturbed run, grading none twice,
    and is nothing left of the killed ones?
    """
    undisturbed = tmp_path_factory.mktemp("undisturbed")
    with Journal(handed_in) as journal:
        Verdicts(journal).read_secret()
    for file in ("course.toml", "roster.csv", "class.db"):
        (undisturbed / file).write_bytes((handed_in / file).read_bytes())
    assert "6 of 6 graded" in grade(undisturbed)
    for seconds in (1.0, 4.0, 7.0):
        grade(handed_in, seconds)
        assert wait_for(lambda: not judges(handed_in), 60)
    assert "6 of 6 have a verdict" in grade(handed_in) + grade(handed_in)

    def verdicts(folder: Path):
        with Journal(folder) as journal:
            assert journal.read("PRAGMA integrity_check") == [("ok",)]
            rows = journal.read("SELECT key, outcome FROM verdicts ORDER BY key")
            last = Verdicts(journal).read_last()
        assert len(rows) == len(last) == 6
        return {
            key: [(stage.name, stage.reason, stage.message, stage.evidence) for stage in one.verdict.stages]
            for key, one in last.items()
        }

    assert verdicts(handed_in) == verdicts(undisturbed)
    assert not [*(handed_in / "tmp").iterdir()]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_killed_judge_costs_one_grading(handed_in):
    """Is a grading whose process is killed carried out by another one?"""
    process = start(handed_in, jobs=1)
    assert wait_for(lambda: bool(judges(handed_in)), 60)
    time.sleep(3)
    for one in judges(handed_in):
        os.kill(one, signal.SIGKILL)
    _, said = process.communicate(timeout=250)
    assert process.returncode == 0 and "6 of 6 graded" in said


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_ctrl_c_and_a_second_grader(handed_in):
    """Does Ctrl-C end it with one sentence and no process left, and is a second grader refused meanwhile?"""
    process = start(handed_in)
    assert wait_for(lambda: bool(judges(handed_in)), 60)
    assert "Another grader is grading" in grade(handed_in)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "Interrupted. The same command grades what is left." in said
    assert "Traceback" not in said and wait_for(lambda: not judges(handed_in), 10)
