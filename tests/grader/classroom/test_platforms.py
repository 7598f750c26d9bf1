"""Can other platforms read what they are given, and does it say what the verdict says?"""

import datetime
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import jsonschema
import pytest

from grader.classroom.autograde import AT_FAULT, judge_machine, read_files
from grader.classroom.course import parse_course
from grader.classroom.exports import ExportError
from grader.classroom.platforms import Result, make_classroom50, make_gradescope
from grader.cli import statuses
from grader.judging.processes.judge import Order
from grader.paths import KERNELS_REF, ROOT
from grader.verdict import CaseResult, Outcome, Reason, Status, to_json
from grader.worker.landlock import find_version
from grader.worker.levels import Level, probe
from tests.grader.classroom.class_folder import make_verdict
from tests.grader.classroom.gradescope_tree import add_python, read_results, run_script, unpack_zip
from tests.grader.cli.commands import run

RULES = """
title = "Kernels"
[points]
build = 10
correct = 50
safe = 20
fast = 20
[problems.groupnorm]
"""
# What Gradescope documents, written down anew as a schema.
TEST_OF_GRADESCOPE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["score", "max_score", "name"],
    "properties": {
        "score": {"type": "number"},
        "max_score": {"type": "number"},
        "name": {"type": "string"},
        "status": {"enum": ["passed", "failed"]},
        "output": {"type": "string"},
        "output_format": {"enum": ["text", "html", "simple_format", "md", "ansi"]},
        "visibility": {"enum": ["hidden", "after_due_date", "after_published", "visible"]},
    },
}
GRADESCOPE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["score", "tests"],
    "properties": {
        "score": {"type": "number"},
        "output": {"type": "string"},
        "output_format": {"enum": ["text", "html", "simple_format", "md", "ansi"]},
        "visibility": {"enum": ["hidden", "after_due_date", "after_published", "visible"]},
        "stdout_visibility": {"enum": ["hidden", "after_due_date", "after_published", "visible"]},
        "extra_data": {"type": "object"},
        "tests": {"type": "array", "items": TEST_OF_GRADESCOPE},
    },
}
# The rules of Classroom 50's result-v1.schema.json that concern us.
TIME = r"^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$"
POINTS = {"type": "integer", "minimum": 0}
WORDS = {"type": "string", "minLength": 1}
NAMES = ("classroom", "assignment", "owner", "commit", "release", "review")
CLASSROOM50 = {
    "type": "object",
    "additionalProperties": False,
    "required": ["schema", *NAMES, "assignment_type", "submission", "datetime", "score", "max-score", "tests"],
    "properties": {
        **dict.fromkeys(NAMES, WORDS),
        "schema": {"const": "classroom50/result/v1"},
        "assignment_type": {"enum": ["individual", "group"]},
        "submission": {"type": "string", "pattern": "^submit/"},
        "datetime": {"type": "string", "pattern": TIME},
        "score": POINTS,
        "max-score": POINTS,
        "tests": {
            "type": "array",
            "items": {
                "required": ["test-name", "passed", "score", "max-score"],
                "properties": {
                    "test-name": WORDS,
                    "passed": {"type": "boolean"},
                    "score": POINTS,
                    "max-score": POINTS,
                },
            },
        },
    },
}
RUNNER = {
    "CLASSROOM": "gpu",
    "ASSIGNMENT": "groupnorm",
    "ASSIGNMENT_TYPE": "individual",
    "USERNAME": "ada",
    "SUBMISSION_TAG": "submit/2026-12-01T10-00-00Z-abc1234",
    "COMMIT_URL": "https://example.org/c",
    "RELEASE_URL": "https://example.org/r",
}
SUBMITTED = datetime.datetime(2026, 12, 1, 11, 0, 7, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))


@pytest.fixture(name="course")
def read_rules(tmp_path):
    return parse_course(RULES, tmp_path)


def verdict(outcome: Outcome = Outcome.passed):
    """A verdict from a machine without a GPU; a failed one is right in 7 of 10 cases."""
    order = Order("groupnorm.py", b"", None, {}, 1, None, False, 1.0)
    made = make_verdict(order, outcome)
    if outcome is Outcome.failed:
        states = [Status.passed] * 7 + [Status.failed] * 3
        made.stages[2].cases = [CaseResult(name=str(number), status=state) for number, state in enumerate(states)]
    made.stages[4].status = Status.skipped
    made.stages[5].status, made.stages[5].reason = Status.skipped, Reason.no_gpu
    return made


def test_gradescope_gets_a_test_per_stage(course):
    """Are points those of course.toml, without speed, which nobody can measure there?"""
    data = json.loads(json.dumps(make_gradescope([Result("groupnorm", verdict(Outcome.failed))], course, "hidden")))
    jsonschema.validate(data, GRADESCOPE)
    assert [(one["name"], one["score"], one["max_score"], one["status"]) for one in data["tests"]] == [
        ("build", 10, 10, "passed"), ("correct", 35, 50, "failed"), ("safe", 20, 20, "passed"),
    ]  # fmt: skip
    assert data["score"] == 65 and {one["visibility"] for one in data["tests"]} == {"hidden"}
    assert "7 of 10 cases" in data["tests"][1]["output"] and "groupnorm.py" in data["output"]


def test_a_failing_machine_is_told_apart(course):
    """Is the student told that the machine failed, where it did, and only there?"""
    small = verdict(Outcome.failed)
    small.stages[2].status, small.stages[2].reason = Status.passed, None
    small.stages[1].status, small.stages[1].reason = Status.failed, Reason.import_error
    small.stages[1].message = "NoCompiler: The compiler ran out of memory. It needs about 1 GB: close other programs."
    for one in (small, verdict(Outcome.error)):
        data = make_gradescope([judge_machine("groupnorm", one)], course)
        jsonschema.validate(data, GRADESCOPE)
        assert data["score"] == 0 and AT_FAULT in data["output"] and data["extra_data"]["machine_failed"]
    data = make_gradescope([judge_machine("groupnorm", verdict(Outcome.failed))], course)
    assert not data["extra_data"]["machine_failed"] and AT_FAULT not in data["output"]


def test_classroom50_takes_its_result(course):
    """Does the result fit their schema, with the runner's names and the commit's time in UTC?"""
    data = make_classroom50(Result("groupnorm", verdict(Outcome.failed)), course, RUNNER, SUBMITTED)
    jsonschema.validate(json.loads(json.dumps(data)), CLASSROOM50)
    assert (data["score"], data["max-score"], data["owner"]) == (65, 80, "ada")
    assert data["datetime"] == "2026-12-01T10:00:07Z"
    assert [one["passed"] for one in data["tests"]] == [True, False, True]


def test_classroom50_refuses_what_it_cannot_say(course, tmp_path):
    """Is each thing that their format cannot hold refused in a sentence?"""
    passed = Result("groupnorm", verdict())
    with pytest.raises(ExportError, match="COMMIT_URL, REVIEW_URL, which are not set"):
        make_classroom50(passed, course, {**RUNNER, "COMMIT_URL": ""}, SUBMITTED)
    with pytest.raises(ExportError, match="begins with submit/"):
        make_classroom50(passed, course, {**RUNNER, "SUBMISSION_TAG": "v1"}, SUBMITTED)
    with pytest.raises(ExportError, match="whole points"):
        odd = parse_course(RULES.replace("safe = 20", "safe = 2.5"), tmp_path)
        make_classroom50(passed, odd, RUNNER, SUBMITTED)
    with pytest.raises(ExportError, match="no verdict"):
        make_classroom50(judge_machine("groupnorm", verdict(Outcome.error)), course, RUNNER, SUBMITTED)


def test_result_command(tmp_path, monkeypatch):
    """Does `class result` write both formats, and refuse a file without verdicts?"""
    (tmp_path / "course.toml").write_text(RULES, encoding="utf-8")
    line, empty = tmp_path / "verdict.jsonl", tmp_path / "empty.jsonl"
    line.write_bytes(to_json(verdict()) + b"\n")
    empty.write_text("")
    for name, value in RUNNER.items():
        monkeypatch.setenv(name, value)
    files = ["--gradescope", tmp_path / "g.json", "--classroom50", tmp_path / "c.json", "--course", tmp_path]
    done = run("class", "result", line, "--submitted", "2026-12-01T11:00:07+01:00", *files)
    assert done.exit_code == statuses.PASSED, done.output
    jsonschema.validate(json.loads((tmp_path / "g.json").read_text()), GRADESCOPE)
    result = json.loads((tmp_path / "c.json").read_text())
    jsonschema.validate(result, CLASSROOM50)
    assert result["datetime"] == "2026-12-01T10:00:07Z" and result["score"] == 80
    for wrong, word in ((empty, "no verdict"), (tmp_path / "g.json", "no verdict")):
        done = run("class", "result", wrong, *files)
        assert done.exit_code == statuses.USAGE and word in done.output and "Traceback" not in done.output
    assert run("class", "result", tmp_path / "none", *files).exit_code == statuses.CANNOT


# --- the autograder ---------------------------------------------------------------------------------------------------


@pytest.fixture(name="tree")
def unpack_autograder(tmp_path):
    """A tree as Gradescope's /autograder, whose Python has this one's packages and whose cache is this one's."""
    (tmp_path / "course.toml").write_text(RULES, encoding="utf-8")
    options = ["--allow-unsandboxed"] if probe().level == Level.none else []
    done = run("class", "autograder", "groupnorm", *options, "--to", tmp_path / "a.zip", "--course", tmp_path)
    assert done.exit_code == statuses.PASSED and "Autograder Points to 80" in done.output, done.output
    root = tmp_path / "autograder"
    unpack_zip(tmp_path / "a.zip", root)
    cache = os.environ.get("SIMT_CACHE") or Path.home() / ".cache" / "simt"
    with open(root / "source" / "environment.sh", "a", encoding="utf-8") as script:
        script.write(f"export SIMT_CACHE={cache}\n")
    return root


def autograde(root, seconds: int = 200) -> dict:
    """Run run_autograder as Gradescope does, and return results.json."""
    add_python(root)
    done = run_script(root, "run_autograder", seconds)
    assert done.returncode == 0 and "Traceback" not in done.stdout + done.stderr, done.stderr
    data = read_results(root)
    jsonschema.validate(data, GRADESCOPE)
    return data


def test_the_zip_has_no_answers(tree):
    """Are scripts at its root that can be run, and is no solution, hint or step in it?"""
    source = tree / "source"
    assert all((source / name).stat().st_mode & stat.S_IXUSR for name in ("setup.sh", "run_autograder"))
    for name in ("setup.sh", "run_autograder", "environment.sh"):
        assert subprocess.run(["bash", "-n", source / name], check=False).returncode == 0
    assert [path.name for path in (source / "course" / "kernels_ref" / "groupnorm").iterdir()] == ["model.py"]
    assert "torch==" in (source / "setup.sh").read_text() and "numpy==" in (source / "requirements.txt").read_text()
    again = run("class", "autograder", "groupnorm", "--to", tree.parent / "a.zip", "--course", tree.parent)
    assert again.exit_code == statuses.USAGE and "exists" in again.output
    unknown = run("class", "autograder", "conv9", "--to", tree.parent / "b.zip", "--course", tree.parent)
    assert unknown.exit_code == statuses.USAGE and "no problem conv9" in unknown.output


@pytest.mark.parametrize(
    "names, words",
    [
        ([], "Nothing was handed in. Hand in groupnorm.py."),
        (["kernel.py"], "No file has the name groupnorm.py; there is kernel.py."),
        (["groupnorm_a.py", "groupnorm_b.py"], "2 files are named as groupnorm"),
        (["groupnorm.docx"], "no .py file"),
    ],
)
@pytest.mark.slow
def test_what_cannot_be_graded_gets_a_sentence(tree, names, words):
    """Does it get 0 points and one sentence?"""
    for name in names:
        (tree / "submission" / name).write_text("x = 1\n")
    data = autograde(tree)
    assert data["score"] == 0 and words in data["output"] and not data["extra_data"]["machine_failed"]


@pytest.mark.slow
def test_a_broken_autograder_says_so(tree):
    """Is there a result that blames the machine, if its own files are damaged, and if Python is missing?"""
    (tree / "source" / "course" / "rules" / "autograder.json").write_text("{")
    data = autograde(tree)
    assert data["score"] == 0 and "own files cannot be used" in data["output"] and data["extra_data"]["machine_failed"]
    shutil.rmtree(tree / "source" / "course" / "grader")
    data = autograde(tree)
    assert data["score"] == 0 and "The grader was stopped" in data["output"] and data["extra_data"]["machine_failed"]


def test_links_in_a_submission_are_not_followed(tree):
    """Does a link to a file of the machine stay unread?"""
    (tree / "submission" / "groupnorm.py").symlink_to(KERNELS_REF / "groupnorm" / "solution.py")
    assert read_files(tree / "submission") == []


@pytest.mark.slow
def test_without_a_sandbox_nothing_is_graded(tree, monkeypatch):
    """Is the machine blamed, and no submission run, where the sandbox that the instructor wants is missing?"""
    monkeypatch.setenv("GRADER_SANDBOX", "none")
    rules = tree / "source" / "course" / "rules" / "autograder.json"
    rules.write_text(json.dumps(json.loads(rules.read_text()) | {"require_sandbox": True}))
    shutil.copy(KERNELS_REF / "groupnorm" / "solution.py", tree / "submission" / "groupnorm.py")
    data = autograde(tree)
    assert data["score"] == 0 and data["extra_data"]["machine_failed"] and AT_FAULT in data["output"]


@pytest.mark.slow
@pytest.mark.parametrize("file, score", [("solution.py", 80), ("specimen", 45)])
def test_the_zip_grades(tree, file, score):
    """Does the unpacked zip grade a right and a wrong kernel in its own tree, with the cache that is here?"""
    path = ROOT / "tests/specimens/groupnorm_stats_per_position.py"
    path = path if file == "specimen" else KERNELS_REF / "groupnorm" / file
    shutil.copy(path, tree / "submission" / "groupnorm.py")
    assert autograde(tree)["score"] == score


SPY = """
import torch
got = []
for path in PATHS:
    try:
        open(path).read()
        got.append("read " + path)
    except PermissionError:
        got.append("refused")
raise RuntimeError(" ".join(got))
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
    def __init__(self, num_features, num_groups):
        super().__init__()
"""


@pytest.mark.slow
@pytest.mark.skipif(not find_version(), reason="this kernel has no Landlock")
def test_a_submission_cannot_read_the_judge(tree, monkeypatch):
    """Under Landlock, are the rules with their seed's secret, the problem, the judge and the results refused?"""
    monkeypatch.setenv("GRADER_SANDBOX", "landlock")
    course = tree / "source" / "course"
    kept = ["rules/autograder.json", "kernels_ref/groupnorm/model.py", "grader/judging/grading.py"]
    paths = [str(course / name) for name in kept] + [str(tree / "results" / "results.json")]
    text = SPY.replace("PATHS", repr(paths)).replace("num_features, num_groups", read_arguments())
    (tree / "submission" / "groupnorm.py").write_text(text)
    data = autograde(tree)
    assert "refused refused refused refused" in " ".join(data["output"].split()), data["output"]


def read_arguments() -> str:
    """The arguments of the problem's Model after self, as its file has them."""
    text = (KERNELS_REF / "groupnorm" / "model.py").read_text()
    return text.partition("def __init__(self, ")[2].partition(")")[0]
