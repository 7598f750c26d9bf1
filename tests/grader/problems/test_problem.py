"""Is any KernelBench file a problem unchanged, at any size, and is the problem of a submission found?"""

import subprocess
import sys

import pytest

from grader.paths import KERNELS_REF
from grader.problems import exercises, problem
from grader.problems.cases import Case, ProblemError
from tests.grader.problems.linear import LINEAR

# --- reading ---------------------------------------------------------------------------------------------------------


def test_overrides_reach_what_is_derived_from_them(write):
    """Does a replaced literal change the sizes computed from it, through chained and derived assignments?"""
    read = problem.read(write(LINEAR), {"batch_size": "2", "inner": "3"})
    instance = read.instantiate(Case("any"), seed=0)
    assert instance.inputs[0].shape == (2, 3)
    assert instance.init_args == [3, 8]


def test_a_case_sets_sizes_and_the_command_line_wins(write):
    """Do a case's sizes apply on top of the file, and --set on top of both?"""
    read = problem.read(write(LINEAR), {"batch_size": "2"})
    instance = read.instantiate(Case("any", {"batch_size": 7, "inner": 5}), seed=0)
    assert instance.inputs[0].shape == (2, 5)


def test_a_file_is_read_once_until_it_changes(write):
    """Does a second reading give the same problem, and another text or other settings another one?"""
    path = write(LINEAR)
    first, small = problem.read(path), problem.read(path, {"batch_size": "2"})
    assert problem.read(path) is first and problem.read(path, {"batch_size": "2"}) is small
    assert first.overrides == {} and small.overrides == {"batch_size": 2}
    path.write_text(path.read_text().replace("batch_size = 4", "batch_size = 5"))
    changed = problem.read(path)
    assert changed.literals["batch_size"] == 5 and first.literals["batch_size"] == 4
    assert changed.instantiate(Case("any"), seed=0).inputs[0].shape == (5, 8)


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("M = 1024 * 2", 2048),
        ("M, N = 6, 7", 6),
        ("N = M = 9", 9),
        ("M: int = 4", 4),
        ("M = (8, 1, 1)", (8, 1, 1)),
        ("M = -3", -3),
    ],
)
def test_every_form_of_a_literal_can_be_set(write, assignment, value):
    """Are arithmetic, tuples, chains and annotations read as literals and replaced?"""
    path = write(LINEAR + f"\n    {assignment}\n")
    assert problem.read(path).literals["M"] == value
    assert problem.read(path, {"M": "11"}).module({}).M == 11


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"missing": "3"}, "assigns no literal to 'missing' (it does to: batch_size, inner, outer)"),
        ({"shape": "(1, 2)"}, "assigns no literal to 'shape'"),
        ({"inner": "rm -rf"}, "must be a Python literal"),
    ],
)
def test_an_override_of_nothing_is_refused(write, overrides, says):
    """Is a name that is no literal, or a value that is none, refused with what would do?"""
    with pytest.raises(ProblemError) as caught:
        problem.read(write(LINEAR), overrides)
    assert says in str(caught.value)


BROKEN = {
    "no Model": ("def get_inputs(): return []\ndef get_init_inputs(): return []\n", "has no Model;", None),
    "no get_inputs": ("class Model: pass\ndef get_init_inputs(): return []\n", "has no get_inputs;", None),
    "syntax": ("import torch\nclass Model(:\n", "syntax error", 2),
    "raises": ("import torch\nx = 1\nx.y = 3\n", "the file raised AttributeError", 3),
    "import": ("import nothing_of_this_name\n", "ModuleNotFoundError: No module named 'nothing_of_this_name'", 1),
    "exits": ("import sys\n\nsys.exit(3)\n", "SystemExit", 3),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_one_sentence_with_its_line(write, kind):
    """Is a file that cannot be used refused in one line that names file, line and reason?"""
    source, says, line = BROKEN[kind]
    path = write(source)
    with pytest.raises(ProblemError) as caught:
        problem.read(path)
    assert says in str(caught.value) and str(path) in str(caught.value)
    assert caught.value.line == line
    assert "\n" not in str(caught.value)


def test_annotations_are_what_they_say(write):
    """Is the file compiled as Python compiles it, without what grader's own modules import from __future__?"""
    problem.read(write(LINEAR + "\n    def f(x: int): pass\n    assert f.__annotations__ == {'x': int}\n"))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("return [torch.rand(*shape)]", "return [torch.rand(*shapes)]", "get_inputs() raised NameError"),
        ("return [inner, outer]", "return [inner]", "Model(...) raised TypeError"),
        ("return torch.relu", "raise ValueError('odd'); return torch.relu", "Model.forward raised ValueError: odd"),
    ],
)
def test_a_function_that_raises_is_named(write, old, new, says):
    """Is an exception in the file's own functions reported with the line that raised?"""
    read = problem.read(write(LINEAR.replace(old, new)))
    with pytest.raises(ProblemError) as caught:
        read.instantiate(Case("any"), seed=0).eager()
    assert says in str(caught.value)


def test_a_file_that_parses_and_does_not_compile_is_reported(tmp_path):
    path = tmp_path / "early.py"
    path.write_text("import torch\n\nreturn 3\n")
    with pytest.raises(ProblemError, match="outside"):
        problem.read(path)


def test_a_missing_file_is_reported(tmp_path):
    """Is a path that leads nowhere one sentence?"""
    with pytest.raises(ProblemError, match="cannot be read"):
        problem.read(tmp_path / "none.py")


# --- finding ---------------------------------------------------------------------------------------------------------


def test_a_submission_finds_its_problem(tmp_path):
    """Do a student's copy, a reference solution and a step lead to the same problem?"""
    for path in (tmp_path / "groupnorm.py", KERNELS_REF / "groupnorm" / "solution.py"):
        assert problem.find(path).name == "groupnorm"
    assert problem.find(KERNELS_REF / "groupnorm" / "steps" / "01_naive.py").name == "groupnorm"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("groupnorm_ada.py", "groupnorm"),
        ("ada.lovelace-conv2d.py", "conv2d"),
        ("conv_groupnorm_maxpool_2.py", "conv_groupnorm_maxpool"),
    ],
)
def test_a_handed_in_name_finds_its_problem(tmp_path, file, name):
    """Does a file name with the student's name in it lead to the longest problem name that it holds?"""
    assert problem.find(tmp_path / file).name == name


@pytest.mark.parametrize(
    "file",
    ["handed_in/logsumexp_ada.py", "handed_in/logsumexp.py", "handed_in/eve/logsumexp.py", "conv2d/logsumexp_ada.py"],
)
def test_a_files_own_name_tells_before_what_it_lies_in(write, file):
    """Is a handed-in model.py next to or above the file no problem, and a folder's name less than the file's?"""
    write("raise SystemExit('run unasked')", "handed_in/model.py")
    assert problem.find(write("", file)).path == KERNELS_REF / "logsumexp" / "model.py"


def test_a_folders_name_tells_where_the_files_does_not(tmp_path):
    assert (
        problem.find(tmp_path / "conv2d" / "ada.py").name
        == problem.find(tmp_path / "conv2d" / "ada" / "work.py").name
        == "conv2d"
    )


@pytest.mark.parametrize("file", ["mine/solution.py", "mine/ada/solution.py"])
def test_a_model_next_to_a_nameless_file_must_be_named(write, file):
    """Does the message name --problem if a model.py lies next to the submissions?"""
    model = write("raise SystemExit('run unasked')", "mine/model.py")
    with pytest.raises(ProblemError, match=rf"--problem FILE\. {model} may have been handed in"):
        problem.find(write("", file))


def test_an_unknown_name_lists_the_known(tmp_path):
    """Does a misspelt file name give the nearest problem, and a strange one all of them?"""
    with pytest.raises(ProblemError, match=r"did you mean groupnorm.py"):
        problem.find(tmp_path / "gruopnorm.py")
    with pytest.raises(ProblemError, match=r"conv2d, .*logsumexp.*--problem FILE"):
        problem.find(tmp_path / "zzz.py")


@pytest.mark.slow
def test_reading_a_problem_is_quick():
    """Does answering a case of a problem with CASES stay clear of torch's compiler, which takes seconds to import?"""
    code = (
        "import sys; from grader.paths import KERNELS_REF; from grader.problems import problem;"
        "p = problem.read(KERNELS_REF / 'groupnorm' / 'model.py'); i = p.instantiate(p.cases()[0], 1);"
        "i.expected(), i.eager(), i.noise(i.expected()); sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=KERNELS_REF.parent).returncode == 0


@pytest.mark.parametrize(
    "stem, names",
    [
        ("logsumexp_groupnorm", ["logsumexp", "groupnorm"]),
        ("groupnorm_vs_logsumexp-2", ["groupnorm", "logsumexp"]),
        ("conv_groupnorm_maxpool_ada", ["conv_groupnorm_maxpool"]),
        ("ada_logsumexp_backward", ["logsumexp"]),
        ("groupnorm_groupnorm", ["groupnorm"]),
        ("mygroupnorm", []),
    ],
)
def test_the_problems_that_a_name_holds(stem, names, tmp_path):
    """Is a name that holds two problems refused with both, whatever its folder is called?"""
    assert exercises.list_named(stem) == names
    if len(names) > 1:
        with pytest.raises(ProblemError, match=f"{names[0]} and {names[1]}.*--problem"):
            problem.find(tmp_path / "groupnorm" / f"{stem}.py")
