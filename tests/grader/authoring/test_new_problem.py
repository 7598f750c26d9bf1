"""grader new: is the skeleton of a problem a problem?"""

import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from grader.authoring import new_problem
from grader.cli.main import cli
from grader.judging.grading import grade
from grader.problems import exercises, problem
from grader.problems.cases import DISTRIBUTIONS


@pytest.mark.slow
def test_a_new_problem_passes_unchanged(tmp_path, monkeypatch):
    """Does the solution that is made pass, and does the student's file made from it count as not attempted?"""
    monkeypatch.setattr(exercises, "KERNELS_REF", tmp_path)
    model, solution, hints = new_problem.problem("double_it", folder=tmp_path)
    assert [p.name for p in (model, solution, hints)] == ["model.py", "solution.py", "hints.toml"]
    verdict = grade(solution)
    assert (verdict.problem, verdict.outcome.value) == ("double_it", "passed")
    text = exercises.skeleton(solution.read_text(), "double_it")
    assert "YOUR CODE HERE" in text and "x[i] * factor" not in text.split('cuda_source = r"""')[1]


def test_takes_a_kernelbench_file(tmp_path):
    """Does the model stay as it was given, and is it read as a problem?"""
    given = tmp_path / "19_ReLU.py"
    given.write_text(
        "import torch\n"
        "import torch.nn as nn\n\n"
        "class Model(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.relu(x)\n\n"
        "batch_size = 16\n\n"
        "def get_inputs():\n"
        "    return [torch.randn(batch_size, 64)]\n\n"
        "def get_init_inputs():\n"
        "    return []\n"
    )
    made = new_problem.problem("relu", given, tmp_path)
    assert made[0].read_text() == given.read_text()
    assert problem.read(made[0]).name == "relu"


@pytest.mark.parametrize("name", ["2d", "Conv", "a-b", "", "class", "x_backward", "a/b"])
def test_refuses_names_that_are_none(name, tmp_path):
    """Is a name refused that no kernel can have, and is nothing made?"""
    with pytest.raises(new_problem.CannotMake):
        new_problem.problem(name, folder=tmp_path)
    assert not list(tmp_path.iterdir())


MESSAGES = {  # why each of these is no name
    "n" * 301: "nnnnnnnnnnnnnnnnnnnn… has 301 letters, and a name has 60 at most.",
    "é" * 70: "has 70 letters",
    "class": "class is a keyword of Python's.",
    "model": "model is what a part of each problem is called.",
    "solution": "is what a part of each problem is called.",
    **{
        name: f"{name} is the name of a Python module, which kernels_student/{name}.py"
        for name in ("torch", "grader", "simt", "test", "tests", "json", "numpy", "pytest")
    },
}


@pytest.mark.parametrize("name", MESSAGES, ids=lambda name: name[:8])
def test_says_why_a_name_is_none(name):
    """Does the command end with status 2 and a sentence that says why, and make nothing?"""
    done = CliRunner().invoke(cli, ["new", name])
    assert (done.exit_code, type(done.exception)) == (2, SystemExit) and MESSAGES[name] in " ".join(done.output.split())
    assert len(name) > 60 or not (exercises.KERNELS_REF / name).exists()


def test_takes_the_longest_name_and_one_of_a_folder(tmp_path, monkeypatch):
    """Is a name as long as they may be taken, and one that a folder next to the command has, which is no module?"""
    (tmp_path / "here" / "my_problem").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path / "here")
    for name in ("n" * 60, "my_problem"):
        assert len(new_problem.problem(name, folder=tmp_path / "ref")) == 3


def test_the_model_names_every_kind_of_inputs(tmp_path):
    """Does the comment above CASES list what "inputs" may be?"""
    text = new_problem.problem("my_problem", folder=tmp_path)[0].read_text()
    message = re.search(r'"inputs" is (.*?);', text.replace("\n# ", " "))[1]
    assert re.findall(r"[a-z_]+", message.replace("(get_inputs as it is)", "").replace(" or ", " ")) == list(
        DISTRIBUTIONS
    )


def test_overwrites_nothing(tmp_path):
    """Is a problem that exists left as it is?"""
    (tmp_path / "my_problem").mkdir()
    with pytest.raises(new_problem.CannotMake, match="there already"):
        new_problem.problem("my_problem", folder=tmp_path)
    assert not list((tmp_path / "my_problem").iterdir())


def test_leaves_nothing_where_it_cannot_write(tmp_path):
    """Is half a problem removed, and reported in one sentence?"""
    (tmp_path / "file").write_text("")
    with pytest.raises(new_problem.CannotMake, match="nothing was left behind"):
        new_problem.problem("my_problem", folder=tmp_path / "file")


def test_says_what_is_wrong_with_a_file_that_is_no_problem(tmp_path):
    """Does the command end with status 2 and one sentence?"""
    (tmp_path / "no.py").write_text("x = 1\n")
    done = CliRunner().invoke(cli, ["new", "never_made", "--model", str(tmp_path / "no.py")])
    assert done.exit_code == 2 and "Traceback" not in done.output and "no.py" in done.output
    assert not (exercises.KERNELS_REF / "never_made").exists()


def test_names_a_file_that_is_not_there_once(tmp_path):
    """Is the path in the sentence, and only once?"""
    with pytest.raises(new_problem.CannotMake) as error:
        new_problem.problem("my_problem", tmp_path / "nowhere.py", tmp_path)
    assert str(error.value).count("nowhere.py") == 1


def test_help_names_it():
    """Is the command listed?"""
    assert (
        "new"
        in subprocess.run([sys.executable, "-m", "grader", "--help"], capture_output=True, text=True, check=True).stdout
    )
