"""Wrong, broken and dishonest submissions: does each get a message on what is wrong with it, and does none do any harm?

The specimens are files in tests/specimens, what is expected of them is in expected.toml next to them.
"""

import io
import os
import re
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path

import pytest
import torch
from rich.console import Console

from grader.cli import grade as grade_command
from grader.judging.grading import Limits, grade
from grader.paths import KERNELS_REF
from grader.problems import problem
from grader.reports import terminal
from grader.verdict import Outcome, Status, Verdict, from_json, to_json
from tests.slowness import slowness

HERE = Path(__file__).parent / "specimens"
EXPECTED = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
BROKEN = tomllib.loads((HERE / "broken_references.toml").read_text(encoding="utf-8"))
FOREIGN = sorted((HERE / "foreign").glob("*.py"))
SEED = 20  # of inputs and weights: what is seen in the values is the same every time
SECONDS = 30.0  # on a usual machine, for what is not endless
MARK = "SPECIMEN"  # an environment variable by which every process of a grading is found

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="the specimens' verdicts are those of a machine without a GPU"
)


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Builds what is built once on a machine, so that no grading waits for it."""
    import simt

    simt.warm_up()


def problem_of(name: str) -> Path:
    """The problem whose name a specimen's name begins with."""
    known = max((known for known in problem.names() if name.startswith(known)), key=len)
    return KERNELS_REF / known / "model.py"


def graded(path: Path, problem_file: Path, monkeypatch, seconds: float = SECONDS, **options) -> Verdict:
    """The verdict on a file, after checks that hold for every verdict."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    verdict = grade(path, problem=problem_file, seed=SEED, limits=Limits(own=seconds * slowness()), **options)
    assert not alive(mark), "the grader left processes behind"
    assert from_json(to_json(verdict)).outcome is verdict.outcome
    assert grade_command.exit_code(verdict) in documented_exits()
    for text in (shown(verdict), to_json(verdict).decode()):
        assert "Traceback" not in text and "site-packages" not in text
    return verdict


def alive(mark: str) -> list[str]:
    """Command lines of processes that carry the mark in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return [line for line in found if line]  # an ended process that was not waited for has no command line


def shown(verdict: Verdict) -> str:
    """What a student sees of a verdict."""
    out = io.StringIO()
    terminal.show(Console(file=out, width=120), verdict)
    return out.getvalue()


def documented_exits() -> set[int]:
    """The exit statuses that `grader grade --help` explains."""
    return {int(number) for number in re.findall(r"^ +(\d+)  \w", grade_command.EXITS, re.MULTILINE)}


def check(verdict: Verdict, expected: dict) -> None:
    """Compare a verdict with what a table expects; the message of a failed assertion is what the student sees."""
    seen = "\n" + shown(verdict)
    assert verdict.outcome.value == expected.get("outcome", "failed"), seen
    if verdict.outcome is Outcome.passed:
        assert verdict.doubt == expected.get("doubt"), seen
        return
    stage = verdict.first_problem
    assert (stage.name.value, stage.reason.value) == (expected.get("stage", "correct"), expected["reason"]), seen
    own = Path(verdict.submission.path).name
    assert stage.message[0].isupper() or stage.message.startswith(("forward", "backward", "`", "functions=", own)), seen
    assert expected.get("says", "") in stage.message, seen
    first = stage.evidence[0] if stage.evidence else None
    if "at" in expected:
        assert first.line and expected["at"] in (first.text or ""), seen
        source = Path(verdict.submission.path).read_text(encoding="utf-8").splitlines()
        assert expected["at"] in source[first.line - 1], seen
    if "pattern" in expected:
        assert expected["pattern"] in (first.pattern or ""), seen
    later = [other.reason.value for other in verdict.stages if other.status is Status.failed and other is not stage]
    assert later == ([expected["explains"]] if "explains" in expected else []), seen


def test_table_and_files_agree():
    """Does every specimen have its line in the table, and are there as many as there should be?"""
    assert sorted(path.stem for path in HERE.glob("*.py")) == sorted(EXPECTED)
    assert len(EXPECTED) >= 33


@pytest.mark.parametrize("name", [path.stem for path in HERE.glob("*.py") if path.stat().st_size])
def test_specimen_says_what_is_wrong(name):
    """Does each file begin with one line that says what is wrong with it?"""
    first = (HERE / f"{name}.py").read_text(encoding="utf-8").splitlines()[0]
    assert re.fullmatch(r'""".{20,}\."""|# .{20,}\.', first)


# What `make test` runs: one specimen per problem, and one for each stage that ends before the values are compared.
QUICK = """
    bias_scale_sigmoid_missing_bounds_check conv2d_compile_error conv2d_syntax_error groupnorm_backward_mean_forgotten
    groupnorm_empty_file groupnorm_missing_barrier groupnorm_swapped_init_arguments logsumexp_infinity
""".split()


def marked(name: str):
    """Return a specimen as a parameter; one that the grader does not find yet is expected to fail."""
    gap = EXPECTED[name].get("gap")
    marks = [pytest.mark.xfail(reason=gap, strict=True)] if gap else []
    return pytest.param(name, marks=marks + ([] if name in QUICK else [pytest.mark.slow]))


@pytest.mark.parametrize("name", [marked(name) for name in sorted(EXPECTED)])
def test_specimen(name, monkeypatch):
    """Does the verdict name the mistake, at the student's line, in time, with nothing left running?"""
    expected = EXPECTED[name]
    verdict = graded(HERE / f"{name}.py", problem_of(name), monkeypatch, expected.get("seconds", SECONDS))
    check(verdict, expected)
    if "seconds" in expected:
        assert verdict.first_problem.seconds < expected["seconds"] + 20


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(problem.names()))
def test_reference_with_one_broken_line(name, monkeypatch, tmp_path):
    """Does each reference solution fail when one of its lines is broken?"""
    expected = BROKEN[name]
    source = (KERNELS_REF / name / "solution.py").read_text(encoding="utf-8").splitlines(keepends=True)
    (at,) = [number for number, line in enumerate(source) if line.strip() == expected["line"]]
    source[at] = source[at].replace(expected["line"], expected["becomes"])
    path = tmp_path / f"{name}.py"
    path.write_text("".join(source), encoding="utf-8")
    check(graded(path, problem_of(name), monkeypatch), expected)


@pytest.mark.slow
@pytest.mark.parametrize("path", FOREIGN, ids=lambda path: path.stem)
def test_foreign_problem(path, monkeypatch, tmp_path):
    """Is a KernelBench file that is none of ours a problem unchanged, and does its own Model pass as ModelNew?"""
    submission = tmp_path / "submission.py"
    submission.write_text(as_submission(path), encoding="utf-8")
    verdict = graded(submission, path, monkeypatch)
    assert verdict.outcome is Outcome.passed, "\n" + shown(verdict)
    assert verdict.problem == path.stem and len(verdict.stage("correct").cases) >= 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, old, new",
    [("matmul_softmax", "dim=1", "dim=0"), ("cross_entropy", "(predictions, targets)", "(-predictions, targets)")],
)
def test_foreign_problem_with_a_mistake(name, old, new, monkeypatch, tmp_path):
    """Does a wrong answer to such a problem fail?"""
    path = HERE / "foreign" / f"{name}.py"
    source = as_submission(path)
    assert source.count(old) == 1
    submission = tmp_path / "submission.py"
    submission.write_text(source.replace(old, new), encoding="utf-8")
    verdict = graded(submission, path, monkeypatch)
    assert (verdict.outcome, verdict.reason) == (Outcome.failed, "wrong_values"), "\n" + shown(verdict)


def as_submission(path: Path) -> str:
    """A problem file with its Model under the name ModelNew."""
    return re.sub(r"\bModel\b", "ModelNew", path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_command_line(monkeypatch, tmp_path):
    """Does the command itself end with the documented status, print no traceback, and leave JSON that can be read?"""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    names = ["groupnorm_empty_file", "groupnorm_missing_weights", "groupnorm_swapped_init_arguments"]
    files = [str(HERE / f"{name}.py") for name in names]
    options = ["--problem", str(problem_of(names[0])), "--json", "out", "--allow-unsandboxed"]
    command = [sys.executable, "-m", "grader", "grade", *files, *options]
    environment = os.environ | {"PYTHONPATH": str(KERNELS_REF.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    verdicts = [from_json(line) for line in (tmp_path / "out").read_text(encoding="utf-8").splitlines()]
    assert [verdict.reason.value for verdict in verdicts] == [EXPECTED[name]["reason"] for name in names]
    assert not alive(mark)
