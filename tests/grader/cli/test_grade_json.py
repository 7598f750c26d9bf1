"""Does `grader grade --json FILE` write and keep every verdict, and --resume continue it?"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grader.cli import grade as grade_command
from grader.cli import statuses
from grader.verdict import Outcome, Prediction, Reason
from grader.worker import sandbox
from tests.grader.cli.commands import grade, shell, verdicts
from tests.grader.scaffold import RIGHT


@pytest.mark.parametrize("forgotten", [True, False])
def test_json_writes_over_no_students_file(written, forgotten):
    """The file name after --json is forgotten, or names a submission: is each file unchanged, and nothing graded?"""
    files = [written(RIGHT, name) for name in ("a.py", "b.py")]
    result = grade("--json", *files) if forgotten else grade(*files, "--json", files[1])
    assert result.exit_code == statuses.USAGE and "--json" in result.output and "scaling" not in result.output
    assert all(Path(file).read_text() == RIGHT for file in files)


def test_json_writes_over_nothing_that_is_graded_by_another_name(tmp_path, problem):
    """A link to the submission, and the problem's file: are both refused?"""
    for name, options in (("submission", []), ("model", ["--problem", tmp_path / "model"])):
        (tmp_path / name).write_text(RIGHT)
        (tmp_path / f"link_to_{name}").symlink_to(name)
        result = grade(tmp_path / "submission", *options, "--json", tmp_path / f"link_to_{name}")
        assert result.exit_code == statuses.USAGE and (tmp_path / name).read_text() == RIGHT


def test_json_writes_over_nothing_but_verdicts(written, problem, tmp_path):
    """Are a stranger's notes kept, and the verdicts of an earlier run replaced?"""
    out = tmp_path / "out"
    out.write_text("my notes\n")
    result = grade(written(""), "--problem", problem, "--json", out)
    assert result.exit_code == statuses.USAGE and out.read_text() == "my notes\n"
    out.write_text("")
    for seed in (1, 2):
        grade(written(""), "--problem", problem, "--json", out, "--seed", seed)
        assert [made.seed for made in verdicts(out)] == [seed]


def test_an_earlier_runs_verdicts_stay_until_there_are_new_ones(written, problem, tmp_path, monkeypatch):
    """Wrong usage, and an interruption before the first verdict: are the lines of the run before still there?"""
    out = tmp_path / "out.json"
    grade(written(""), "--problem", problem, "--json", out)
    before = out.read_bytes()
    assert grade(written(RIGHT), "--problem", tmp_path / "nowhere.py", "--json", out).exit_code == statuses.USAGE

    def pressed(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("grader.judging.grading.grade", pressed)
    assert grade(written(RIGHT), "--problem", problem, "--json", out).exit_code == statuses.INTERRUPTED
    assert out.read_bytes() == before and [p.name for p in tmp_path.glob("*out*")] == ["out.json"]


def test_who_is_refused_has_a_line_and_a_row(written, tmp_path):
    """A file whose name says no problem, between two that do: is it among the verdicts, as one that could not be
    graded?
    """
    out = tmp_path / "out.json"
    files = [written("", "a_groupnorm.py"), written(RIGHT, "misnamed.py"), written("", "b_groupnorm.py")]
    result = grade(*files, "--json", out, "--allow-unsandboxed")
    assert result.exit_code == statuses.USAGE
    made = verdicts(out)
    assert [(one.submission.path, one.outcome) for one in made] == list(
        zip(files, [Outcome.failed, Outcome.error, Outcome.failed])
    )
    assert "No problem is called 'misnamed'" in made[1].first_problem.message and made[1].submission.sha256
    assert made[1].reason is Reason.no_problem
    assert "could not be graded" in result.stdout


def test_without_the_requested_sandbox_each_has_a_line(written, problem, tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "why_not", lambda: "bubblewrap is not installed.")
    out = tmp_path / "out.json"
    files = [written(RIGHT, "a.py"), written("", "b.py")]
    assert grade(*files, "--problem", problem, "--require-sandbox", "--json", out).exit_code == statuses.CANNOT
    assert [(one.outcome, one.problem) for one in verdicts(out)] == [
        (Outcome.error, "scaling"),
        (Outcome.failed, "scaling"),
    ]


def test_resume_goes_on_after_an_interruption(written, problem, tmp_path, monkeypatch):
    """Of three, the second is interrupted: are the second and third graded then, the first not again, and a changed one
    again?
    """
    from grader.judging import grading as judge

    out, graded, real = tmp_path / "out.json", [], judge.grade
    files = [written(text, name) for text, name in (("", "a.py"), ("", "b.py"), ("def f(:", "c.py"))]
    stop = [files[1]]

    def counted(path, **options):
        graded.append(str(path))
        if str(path) in stop:
            raise KeyboardInterrupt
        return real(path, **options)

    monkeypatch.setattr("grader.judging.grading.grade", counted)
    options = ["--problem", problem, "--json", out]
    result = grade(*files, *options)
    assert result.exit_code == statuses.INTERRUPTED and "--resume" in result.stderr
    stop.clear()
    graded.clear()
    result = grade(*files, *options, "--resume")
    assert result.exit_code == statuses.FAILED and graded == files[1:] and "1 of 3" in result.stderr
    assert [made.submission.path for made in verdicts(out)] == files
    assert all(Path(file).name in result.stdout for file in files)  # the table at the end has all

    graded.clear()
    before = out.read_bytes()
    assert grade(*files, *options, "--resume").exit_code == statuses.FAILED
    assert graded == [] and out.read_bytes() == before

    out.write_bytes(before + before[:40])  # killed while it wrote
    written("# other bytes", "a.py")
    grade(*files, *options, "--resume")
    assert graded == files[:1] and [Path(made.submission.path).name for made in verdicts(out)] == [
        "b.py",
        "c.py",
        "a.py",
    ]


def test_resume_grades_again_after_other_options(written, problem, tmp_path):
    """With another --set both lines stay; with another seed the new one takes the old one's place."""
    out = tmp_path / "out.json"
    options = [written(""), "--problem", problem, "--json", out, "--resume"]
    grade(*options, "--seed", 1)
    grade(*options, "--seed", 1, "--set", "batch_size=2")
    assert [(made.settings, made.seed) for made in verdicts(out)] == [({}, 1), ({"batch_size": "2"}, 1)]
    grade(*options, "--seed", 2)
    assert [(made.settings, made.seed) for made in verdicts(out)] == [({"batch_size": "2"}, 1), ({}, 2)]


def test_resume_grades_again_where_an_option_changes_the_verdict(written, problem, tmp_path, monkeypatch):
    """Another --gpu, a shorter --timeout, a longer one after a time limit, and a sandbox that is now required: is each
    graded again, and nothing that would only be repeated?
    """
    from grader.judging import grading as judge

    out, graded, prediction = tmp_path / "out.json", [], {}
    real = judge.grade

    def canned(path, **options):
        graded.append(options["limits"].own)
        made = real(path, **options)
        made.timeout, made.sandbox = options["limits"].own, prediction.get("sandbox", made.sandbox)
        made.stages[-1].prediction = prediction["of"](options["predict"])
        made.stages[-1].reason = prediction.get("reason", made.stages[-1].reason)
        return made

    def predict(gpu):
        return Prediction(gpu=gpu, sizes=[[1]], ms=1.0, low=1.0, high=1.0, limit="DRAM", bound_ms=1.0, launches=[])

    def count(*options):
        graded.clear()
        grade(written(""), "--problem", problem, "--json", out, "--resume", *options)
        assert len(verdicts(out)) == 1  # the old one is replaced
        return len(graded)

    monkeypatch.setattr("grader.judging.grading.grade", canned)
    prediction["of"] = predict
    assert count("--gpu", "T4") == 1 and count("--gpu", "tesla t4") == 0
    assert count() == 1 and count("--gpu", "H200") == 0
    assert count("--timeout", 60) == 0 and count("--timeout", 5) == 1 and count("--timeout", 5) == 0
    prediction["reason"] = Reason.timeout
    assert count("--timeout", 4) == 1 and count("--timeout", 4) == 0 and count("--timeout", 30) == 1
    prediction["sandbox"] = "none: nothing works here"
    assert count("--timeout", 60) == 1 and count("--timeout", 60) == 0
    prediction["sandbox"] = "bubblewrap"
    assert count("--timeout", 60, "--require-sandbox") == 1 and count("--timeout", 60, "--require-sandbox") == 0
    prediction["of"] = lambda gpu: None
    assert count("--gpu", "T4", "--timeout", 60) == 1 and count("--gpu", "A100", "--timeout", 60) == 0


def test_resume_keeps_the_verdicts_on_others(written, problem, tmp_path):
    out = tmp_path / "out.json"
    for name in ("a.py", "b.py"):
        grade(written("", name), "--problem", problem, "--json", out, "--resume")
    assert [Path(made.submission.path).name for made in verdicts(out)] == ["a.py", "b.py"]


def test_resume_leaves_a_file_alone_that_it_cannot_read(written, problem, tmp_path):
    out = tmp_path / "out.json"
    grade(written(""), "--problem", problem, "--json", out)
    out.write_text(out.read_text() + '{"schema": "kernel-course/verdict/0"}\n')
    before = out.read_bytes()
    result = grade(written(""), "--problem", problem, "--json", out, "--resume")
    assert result.exit_code == statuses.USAGE and "line 2" in result.output and out.read_bytes() == before


def test_resume_grades_again_for_another_problem(written, problem, tmp_path):
    """Another problem file of the same name, an edited one, a line of a grader that did not keep its digest: does none
    of them stand?
    """
    out, other = tmp_path / "out.json", tmp_path / "other" / problem.name
    other.parent.mkdir()
    other.write_text(problem.read_text() + "# another\n")
    options = [written(""), "--json", out, "--resume", "--problem"]
    assert "0 of 1" in grade(*options, problem).stderr and "1 of 1" in grade(*options, problem).stderr
    assert "0 of 1" in grade(*options, other).stderr and len(verdicts(out)) == 1
    other.write_text(other.read_text() + "# edited\n")
    assert "0 of 1" in grade(*options, other).stderr and "1 of 1" in grade(*options, other).stderr
    plain = json.loads(out.read_text())
    del plain["problem_sha256"]
    out.write_text(json.dumps(plain, separators=(",", ":")) + "\n")
    assert "0 of 1" in grade(*options, other).stderr and len(verdicts(out)) == 1


@pytest.mark.slow
def test_a_name_that_is_not_utf8_has_a_line_as_well(written, problem, tmp_path):
    """Bytes in a file's name that JSON cannot hold: is it graded, the next one too, and is its verdict found again?"""
    files = [tmp_path / os.fsdecode(b"scaling_\xff.py"), written("", "scaling_z.py")]
    files[0].write_text(RIGHT)
    options = ["--problem", problem, "--allow-unsandboxed", "--json", out := tmp_path / "out.json"]
    assert grade(*files, *options).exit_code == statuses.FAILED
    assert [Path(made.submission.path).name for made in verdicts(out)] == ["scaling_\\xff.py", "scaling_z.py"]
    assert [made.outcome for made in verdicts(out)] == [Outcome.passed, Outcome.failed]
    assert "2 of 2" in grade(*files, *options, "--resume").stderr


def test_a_file_of_verdicts_is_one_graders(written, problem, tmp_path):
    """While another grader uses it: is that reported before anything is graded, and is a killed grader's lock free?"""
    from grader.reports import verdict_file

    out = tmp_path / "out.json"
    first = verdict_file.VerdictWriter(str(out))
    result = grade(written(""), "--problem", problem, "--json", out)
    assert result.exit_code == statuses.USAGE and "another grader" in result.output and "scaling" not in result.output
    first.close()
    assert not list(tmp_path.glob("*out*"))
    killed = (
        "import os, sys; from grader.reports import verdict_file; "
        "writer = verdict_file.VerdictWriter(sys.argv[1]); os.kill(os.getpid(), 9)"
    )
    subprocess.run(
        [sys.executable, "-c", killed, str(out)], check=False, env=os.environ | {"PYTHONPATH": str(sandbox.PROJECT)}
    )
    assert grade(written(""), "--problem", problem, "--json", out).exit_code == statuses.FAILED
    assert [path.name for path in tmp_path.glob("*out*")] == ["out.json"]


def test_a_reader_who_leaves_loses_no_verdict(written, tmp_path):
    """Are all graded and written, and the status that of the verdicts, when head has seen enough?"""
    for name in "abc":
        written("", f"{name}_groupnorm.py")
    done = shell("grader grade *.py --json out.json | head -1; echo ${PIPESTATUS[0]}", tmp_path)
    assert done.stdout.splitlines()[-1] == str(statuses.FAILED) and done.stderr == ""
    assert len(verdicts(tmp_path / "out.json")) == 3


def test_a_disk_that_fills_keeps_whole_lines(tmp_path, monkeypatch):
    """Half of a line fits: is it taken away again, and the lines before it kept?"""
    from grader.reports import verdict_file

    lines = verdict_file.VerdictWriter(str(tmp_path / "out.json"))
    options = grade_command.Options(None, {}, None, 1, False)
    one = grade_command._make_ungraded(tmp_path / "a.py", "sentence", options, Reason.grader_error)
    assert lines.write(one) == ""

    class Full:
        def __init__(self, out):
            self.out, self.room = out, 20

        def write(self, data):
            if not self.room:
                raise OSError(28, "No space left on device")
            self.room -= (put := self.out.write(data[: self.room]))
            return put

        def fileno(self):
            return self.out.fileno()

    full: Any = Full(lines.out)
    lines.out = full
    assert lines.write(one) == "No space left on device"
    assert len(verdicts(tmp_path / "out.json")) == 1
