"""Does the autograder for Gradescope hold no answer, and does it answer every submission in Gradescope's format?"""

import json
import os
import subprocess
import sys
import zipfile

import pytest
from click.testing import CliRunner

from grader.classroom.course import read_course
from grader.cli.main import cli
from grader.paths import KERNELS_REF, ROOT

PROBLEM = "groupnorm"
SOLUTION = KERNELS_REF / PROBLEM / "solution.py"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    folder = tmp_path_factory.mktemp("autograder") / "course"
    made = CliRunner().invoke(cli, ["class", "init", str(folder), "--timezone", "UTC", "--problem", PROBLEM])
    assert made.exit_code == 0, made.output
    return folder


@pytest.fixture(scope="module")
def archive(course):
    file = course.parent / "autograder.zip"
    command = ["class", "autograder", PROBLEM, "--to", str(file), "--course", str(course), "--allow-unsandboxed"]
    made = CliRunner().invoke(cli, command)
    assert made.exit_code == 0 and str(file) in made.output, made.output
    return file


def answer(archive, root, files):
    """Return results.json, its points and its words, for these files in a tree as Gradescope's."""
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(root / "source")
    (root / "submission").mkdir()
    for name, text in files.items():
        (root / "submission" / name).write_text(text)
    checkout = root / "source" / "course"
    command = [sys.executable, "-m", "grader.classroom.autograde", str(root), str(checkout / "rules")]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    results = json.loads((root / "results" / "results.json").read_text())
    assert results["score"] == pytest.approx(sum(test["score"] for test in results["tests"]))
    assert all(0 <= test["score"] <= test["max_score"] for test in results["tests"])
    return results


def test_it_holds_no_answer(archive):
    """Are the scripts where Gradescope looks for them, and no solution, step, hint or test in the zip?"""
    with zipfile.ZipFile(archive) as opened:
        names = set(opened.namelist())
        modes = {name: opened.getinfo(name).external_attr >> 16 & 0o777 for name in ("setup.sh", "run_autograder")}
        inside = b"".join(opened.read(name) for name in names)
    assert set(modes.values()) == {0o755}
    problem = {name for name in names if name.startswith("course/kernels_ref/groupnorm/")}
    assert problem == {"course/kernels_ref/groupnorm/model.py"}
    assert not any(name.startswith(("course/tests", "course/lessons", "course/kernels_student")) for name in names)
    kernel = next(line for line in SOLUTION.read_text().splitlines() if "__global__" in line)
    assert kernel.encode() not in inside


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "Nothing was handed in. Hand in groupnorm.py."),
        ({"my_kernel.py": "x = 1\n"}, "Rename the file"),
        ({"groupnorm.py": "x = 1\n", "groupnorm (1).py": "x = 2\n"}, "2 files are named as groupnorm"),
    ],
    ids=["nothing", "another name", "two files"],
)
@pytest.mark.slow
def test_what_cannot_be_graded_is_told_in_a_sentence(archive, tmp_path, files, words):
    """Does a submission that is no attempt earn 0 points, with the reason in a sentence?"""
    results = answer(archive, tmp_path, files)
    assert results["score"] == 0 and words in results["output"] and not results["extra_data"]["machine_failed"]


@pytest.mark.slow
def test_a_right_submission_earns_all_points_and_a_wrong_one_fewer(archive, course, tmp_path):
    """Does a right file earn every point that can be had without a GPU, and a wrong one fewer?"""
    results = answer(archive, tmp_path, {"groupnorm.py": SOLUTION.read_text()})
    points = read_course(course).points_of(PROBLEM).by_stage()
    assert {test["name"] for test in results["tests"]} <= {name.value for name, value in points.items() if value}
    assert results["score"] == sum(test["max_score"] for test in results["tests"]) > 0
    wrong = (ROOT / "tests" / "specimens" / "groupnorm_stats_per_position.py").read_text()
    (tmp_path / "second").mkdir()
    assert answer(archive, tmp_path / "second", {"groupnorm.py": wrong})["score"] < results["score"]


def test_the_rules_files_and_problems_that_cannot_be_used(course, archive):
    """Does each name what is wrong, with exit status 2, and leave the existing file as it is?"""
    before = archive.read_bytes()
    for arguments, words in (
        ([PROBLEM, "--to", str(archive)], "exists"),
        (["nope", "--to", "x.zip"], "no problem nope"),
    ):
        made = CliRunner().invoke(cli, ["class", "autograder", *arguments, "--course", str(course)])
        assert made.exit_code == 2 and words in made.output
    assert archive.read_bytes() == before
