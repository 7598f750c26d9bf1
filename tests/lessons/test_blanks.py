"""Do the blanks of the lessons' cells pass with right answers, and are typical wrong ones told why?"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest

from benchmarks.paths import ROOT
from grader.notebook import fill
from grader.reports import feedback

LESSONS = ROOT / "lessons"
sys.path.append(str(LESSONS))
import blanks  # noqa: E402 - the notebooks import it from their own folder

ANSWERS = tomllib.loads(Path(__file__).with_name("blanks.toml").read_text(encoding="utf-8"))
QUICK = ("each_thread",)  # whose answers `make test` tries: a build each


def case(name: str, *values: object):
    """Return a test's parameters; most of them are for the slow tier."""
    return pytest.param(name, *values, marks=[] if name in QUICK else [pytest.mark.slow])


RIGHT = [case(name, texts) for name, answers in ANSWERS.items() for texts in answers["right"]]
WRONG = [case(name, wrong["fill"], wrong["says"]) for name, answers in ANSWERS.items() for wrong in answers["wrong"]]


def filled(name: str, texts: list[str]) -> str:
    """Return a blank's cell with these texts in its holes."""
    parts = blanks.BLANKS[name].text.strip().split(fill.HOLE)
    assert len(parts) == len(texts) + 1
    return "".join(part + text for part, text in zip(parts, [*texts, ""]))


def name_of(value: object) -> str:
    return " … ".join(value)[:40] if isinstance(value, list) else str(value)[:40]


@pytest.mark.parametrize("name, texts", RIGHT, ids=name_of)
def test_a_right_answer_passes(name, texts):
    answer = fill.check(name, blanks.BLANKS[name], filled(name, texts))
    assert answer.right and repr(answer).startswith("Right. "), repr(answer)


@pytest.mark.parametrize("name, texts, says", WRONG, ids=name_of)
def test_a_wrong_answer_is_told_why(name, texts, says):
    answer = fill.check(name, blanks.BLANKS[name], filled(name, texts))
    assert answer.right is False and says in repr(answer), repr(answer)
    assert "Traceback" not in repr(answer) and "/tmp" not in repr(answer)
    assert feedback.as_html(answer.parts()).count("border-left:4px solid") >= 1


def test_every_blank_has_answers_and_two_mistakes():
    assert ANSWERS.keys() == blanks.BLANKS.keys()
    assert all(len(answers["wrong"]) >= 2 and answers["right"] for answers in ANSWERS.values())
    assert all(3 <= len(found) <= 5 for found in blanks.LESSONS.values())


def test_no_right_answer_is_taken_for_a_mistake():
    """Does no sentence on a mistake fit a right answer, or a cell in which nothing is written?"""
    for name, answers in ANSWERS.items():
        blank = blanks.BLANKS[name]
        for cell in (blank.text, *(filled(name, texts) for texts in answers["right"])):
            assert not fill._find_slips(blank, cell), name


def test_cells_are_handed_out_as_they_are_written_down():
    """Is each blank in its lesson, once, with the same text, and is its answer folded away behind it?"""
    for number, found in blanks.LESSONS.items():
        (path,) = LESSONS.glob(f"{number:02}_*.ipynb")
        cells = nbformat.read(path, 4).cells
        shown = {
            cell.source.split("\n", 1)[0].removeprefix("%%fill "): (cell.source.split("\n", 1)[1], after.source)
            for cell, after in itertools.pairwise(cells)
            if cell.source.startswith("%%fill ")
        }
        assert list(shown) == list(found)
        for name, (text, after) in shown.items():
            assert text.strip() == found[name].text.strip()
            answer = re.match(r"<details><summary>Answer</summary>\n\n```cpp\n(.*?)\n```\n", after, re.DOTALL)
            assert answer, f"{name}: no answer"
            right = [filled(name, texts) for texts in ANSWERS[name]["right"]]
            assert any(answer[1].strip() in cell for cell in right), f"{name}: another answer than the test's"


def test_nothing_filled_in_is_no_mistake():
    """Is a cell as handed out, or with one hole left, told what to do, in a neutral tone?"""
    blank = blanks.BLANKS["row_and_column"]
    for cell, each in ((blank.text, "each"), (blank.text.replace(fill.HOLE, "i / width", 1), "the")):
        answer = fill.check("row_and_column", blank, cell)
        assert answer.right is None and repr(answer).startswith(f"Not filled in yet. Replace {each} `____`")


@pytest.mark.parametrize(
    "cell, says",
    [
        ("", "The cell is empty"),
        (
            filled("each_thread", ["threadIdx.x"]).replace("double_each", "double_all"),
            "The launch starts a kernel `double_each`, and the source defines `double_all`.",
        ),
        ("// gone\n", "double_each"),
        (filled("each_thread", ["1 << 28"]), "double_each"),
        (filled("each_thread", ["0; while (true) y[0] = 1"]), "did not end"),
        (filled("each_thread", ["0; y += 1ll << 40"]), "address"),
    ],
)
def test_whatever_is_written_gets_a_sentence(cell, says):
    """An empty cell, a kernel that is gone, an address far away, a loop without end: is each told, and survived?"""
    answer = fill.check("each_thread", blanks.BLANKS["each_thread"], cell)
    assert answer.right is False and says in repr(answer), repr(answer)


@pytest.mark.parametrize("text", ["threadIdx.x = 0", "blockIdx.x++", "--gridDim.y", "(blockDim .x *= 2)"])
def test_an_assignment_to_a_built_in_is_an_error_of_its_line(text):
    """Is it reported as other errors of the compiler are, with the line of the cell and what to do?"""
    answer = fill.check("guard", blanks.BLANKS["guard"], filled("guard", [text]))
    assert answer.right is False and repr(answer).startswith("Line 3 of the cell: "), repr(answer)
    assert "is a built-in variable, which cannot be assigned to; write `==` to compare" in repr(answer)
    assert "raised" not in repr(answer) and "cuda_sources" not in repr(answer)


@pytest.mark.parametrize("text", ["(exit(0), 0)", "(_exit(3), 0)"])
def test_a_call_that_ends_the_process_is_refused(text):
    """Does the notebook survive it, and the next cell still get its answer?"""
    answer = fill.check("guard", blanks.BLANKS["guard"], filled("guard", [text]))
    assert answer.right is False and repr(answer).startswith("Line 3 of the cell: Device code cannot call `")
    assert "end a thread" in repr(answer)
    assert fill.check("guard", blanks.BLANKS["guard"], filled("guard", ["i >= n"])).right


def test_an_error_of_the_compiler_in_a_later_build_names_the_line():
    """Is a source that only the checked build refuses told as any other that does not compile?"""
    answer = fill.check(
        "guard", blanks.BLANKS["guard"], filled("guard", ["[](unsigned& t) { return t > 99; }(threadIdx.x)"])
    )
    assert answer.right is False and repr(answer).startswith("Line 3 of the cell: "), repr(answer)


def test_in_a_notebook_the_magic_answers():
    """Does the cell magic load, answer, and name the nearest blank for a name that does not exist?"""
    code = (
        "from IPython.testing.globalipapp import start_ipython; shell = start_ipython();"
        "shell.run_line_magic('load_ext', 'blanks');"
        f"print(shell.run_cell_magic('fill', 'guard', {filled('guard', ['i >= n'])!r}));"
        "shell.run_cell('%%fill gard\\nx')"
    )
    environment = os.environ | {"PYTHONPATH": f"{LESSONS}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert "Right. The surplus threads" in done.stdout and "Did you mean guard?" in done.stdout + done.stderr
