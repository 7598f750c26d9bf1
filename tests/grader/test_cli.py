"""Do the commands end with the documented status, and say in one sentence what is wrong?"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader import cli, sandbox, student, verdict
from grader.verdict import Outcome, Reason, Stage, StageName, Status
from tests.grader.scaffold import RIGHT, forward, problem  # noqa: F401


@pytest.fixture
def written(tmp_path):
    """Writes a submission and gives its path."""

    def write(source: str, name: str = "scaling.py") -> str:
        path = tmp_path / name
        path.write_text(source)
        return str(path)

    return write


def run(*arguments: object):
    return CliRunner().invoke(cli.cli, [str(argument) for argument in arguments])


def grade(*arguments: object):
    return run("grade", "--device", "cpu", *arguments)


def test_passed_is_0_and_the_json_is_a_verdict_a_line(written, problem, tmp_path):  # noqa: F811
    out = tmp_path / "out.json"
    result = grade(written(RIGHT), "--problem", problem, "--seed", 5, "--json", out)
    assert result.exit_code == 0 and "passed" in result.stdout
    made = verdict.from_json(out.read_text())
    assert (made.outcome, made.seed, made.problem) == (Outcome.passed, 5, "scaling")


def test_several_end_with_the_worst_and_a_summary(written, problem, tmp_path):  # noqa: F811
    out = tmp_path / "out.json"
    files = [written(RIGHT, "a.py"), written("", "b.py"), written("def f(:", "c.py")]
    result = grade(*files, "--problem", problem, "--json", out)
    assert result.exit_code == cli.FAILED
    assert [verdict.from_json(line).reason for line in out.read_text().splitlines()] == [
        None,
        Reason.empty_file,
        Reason.syntax_error,
    ]
    assert "outcome" in result.stdout  # the summary's head


def test_not_attempted_is_4(tmp_path):
    path = tmp_path / "groupnorm.py"
    path.write_text(student.skeleton((student.KERNELS_REF / "groupnorm" / "solution.py").read_text(), "groupnorm"))
    result = grade(path)
    assert result.exit_code == cli.NOT_ATTEMPTED and "not attempted" in result.stdout


def test_a_file_that_cannot_be_read_fails(tmp_path):
    result = grade(tmp_path / "groupnorm.py")
    assert result.exit_code == cli.FAILED and "no such file" in result.stdout


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "SUBMISSION"),
        (["FILE", "--problem", "nowhere.py"], "nowhere.py"),
        (["FILE", "--problem", "PROBLEM", "--set", "batch_size"], "NAME=VALUE"),
        (["FILE", "--problem", "PROBLEM", "--set", "batch_size=many"], "literal"),
        (["FILE", "--problem", "PROBLEM", "--set", "colour=3"], "colour"),
        (["FILE"], "scaling"),
        (["FILE", "--timeout", "0"], "--timeout"),
        (["FILE", "--json", "/nowhere/at/all.json"], "/nowhere/at/all.json"),
    ],
)
def test_wrong_usage_and_unusable_problems_are_2_with_a_sentence(written, problem, arguments, said):  # noqa: F811
    put = {"FILE": written(RIGHT), "PROBLEM": str(problem)}
    result = grade(*[put.get(argument, argument) for argument in arguments])
    assert result.exit_code == cli.USAGE and said in result.output
    assert "Traceback" not in result.output


def test_a_required_sandbox_that_is_not_there_is_3(written, problem, monkeypatch):  # noqa: F811
    monkeypatch.setattr(sandbox, "why_not", lambda: "bubblewrap is not installed.")
    result = grade(written(RIGHT), "--problem", problem, "--require-sandbox")
    assert result.exit_code == cli.CANNOT and "not installed" in result.output


@pytest.mark.parametrize(
    "outcome, reason, code",
    [
        (Outcome.passed, None, 0),
        (Outcome.failed, Reason.crash, 1),
        (Outcome.error, Reason.no_compiler, 3),
        (Outcome.not_attempted, Reason.not_attempted, 4),
        (Outcome.error, Reason.interrupted, 130),
    ],
)
def test_each_outcome_has_its_status(outcome, reason, code):
    status = Status.error if outcome is Outcome.error else Status.failed if reason else Status.passed
    made = verdict.Verdict(
        problem="p", submission=verdict.Submission(path="p.py", sha256=""), outcome=outcome, device="cpu", versions={},
        stages=[Stage(name=StageName.build, status=status, reason=reason)], seed=0, seconds=0, sandbox="",
    )
    assert cli.exit_code(made) == code


def test_the_help_documents_every_status():
    text = run("grade", "--help").output
    for code in cli.WORST_FIRST:
        assert f" {code} " in text


def test_set_changes_the_problem(written, problem, tmp_path):  # noqa: F811
    picky = forward("if x.shape[0] != 9: raise ValueError(x.shape[0])", "return x * self.scale")
    result = grade(written(picky), "--problem", problem, "--set", "batch_size=9")
    assert result.exit_code == 0, result.output


def test_ctrl_c_ends_everything_with_130(written, problem, tmp_path):  # noqa: F811
    path = written(forward("time.sleep(600)"))
    command = [sys.executable, "-m", "grader", "grade", path, "--problem", str(problem), "--device", "cpu", "--json", "-"]
    mine = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=mine, text=True)
    deadline = time.monotonic() + 30
    while not started_by(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(4)  # well into forward
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert json.loads(out)["outcome"] == "error" and "interrupted" in errors
    assert "Traceback" not in errors
    assert not started_by(process.pid)
    assert not list(tmp_path.glob("grader-*"))


def started_by(judge: int) -> list[str]:
    """Processes that this judge's workers are."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{sandbox.JUDGE}={judge}".encode() in entry.read_bytes().split(b"\0"):
                found.append(entry.parent.name)
        except OSError:
            pass
    return found


def test_the_doctor_names_every_part_and_what_its_absence_costs(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CXX", "")
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    sandbox.why_not.cache_clear()
    try:
        result = run("doctor")
    finally:
        sandbox.why_not.cache_clear()
    assert result.exit_code == cli.CANNOT
    for part in ("C++ compiler", "ninja", "torch", "warm cache", "GPU", "nvcc", "sandbox"):
        assert part in result.output
    for cure in ("apt install g++", "ninja", "apt install bubblewrap"):
        assert cure in result.output


def test_student_check_fails_on_drift_and_passes_after_writing(tmp_path, monkeypatch):
    monkeypatch.setattr(student, "KERNELS_STUDENT", tmp_path / "kernels_student")
    assert run("student", "--check").exit_code == cli.FAILED
    assert run("student").exit_code == 0
    assert run("student", "--check").exit_code == 0


def test_a_cache_that_cannot_be_made_is_one_sentence(tmp_path):
    """Does an unusable cache folder end with status 3 and what to set, not with a traceback?"""
    solution = Path(__file__).parents[2] / "kernels_ref" / "logsumexp" / "solution.py"
    done = subprocess.run(
        [sys.executable, "-m", "grader", "grade", str(solution)],
        capture_output=True, text=True, check=False, env={**os.environ, "SIMT_CACHE": "/proc/nope"},
    )
    assert done.returncode == 3 and "SIMT_CACHE" in done.stdout + done.stderr and "Traceback" not in done.stderr
