"""grader.check in a notebook: does what it shows say the same as text and as HTML, safely, and is nothing stale?"""

import os
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

from grader import cells, desk, hints, problem, shown, student, warm
from grader.verdict import EXPLANATIONS, CaseResult, Evidence, Outcome, Reason, Stage, StageName, Status, Submission, Verdict

ROOT = Path(__file__).resolve().parents[2]
SPECIMENS = ROOT / "tests" / "specimens"
SOURCE = "first\nsecond\n    y[i] = x[i + 1]; // <b>&amp;\nfourth\nfifth\nsixth\n"

cpu_only = pytest.mark.skipif(torch.cuda.is_available(), reason="the verdicts are those of a machine without a GPU")


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    """No state of the user's is touched, no bar is drawn, no spare worker is left behind."""
    monkeypatch.setenv("GRADER_PICTURES", "png")
    yield
    warm.SPARE.close()
    warm.SECOND.close()


def verdict_of(reason=Reason.out_of_bounds, message="Thread (4, 0, 0) reads too far: line 3.", output="", **evidence) -> Verdict:
    """A verdict whose stage `correct` failed."""
    cases = [CaseResult(name="odd", status=Status.failed, reason=reason), CaseResult(name="even", status=Status.passed)]
    failed = Stage(name=StageName.correct, status=Status.failed, reason=reason, message=message, evidence=[Evidence(line=3, **evidence)], cases=cases)
    stages = [Stage(name=StageName.contract, status=Status.passed), Stage(name=StageName.build, status=Status.passed, seconds=1.25), failed]
    return Verdict(
        problem="groupnorm", submission=Submission(path="x.py", sha256=""), outcome=Outcome.failed, stages=stages, device="cpu", versions={}, seed=1,
        seconds=2.5, sandbox="none", output=output,
    )  # fmt: skip


class Visible(HTMLParser):
    """The words that a browser shows, and the tags that it met."""

    def __init__(self, text: str):
        super().__init__()
        self.words, self.tags = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.words += data.split()


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_same_words():
    """Does the HTML show every word of the text, in the same order, but for the backquotes that become code?"""
    parts = shown.verdict_parts(verdict_of(kernel="k", thread=[4, 0, 0], block=[62, 0, 0], expected=1.0, index=[0, 5], output="hello"), SOURCE, [])
    text = shown.as_text(parts).replace("`", "").split()
    assert Visible(shown.as_html(parts)).words == text


def test_wrong_line_is_marked():
    """Is the wrong line, and only that, marked among its neighbours?"""
    text = shown.as_text(shown.verdict_parts(verdict_of(), SOURCE, []))
    assert [line.split("│")[1].strip() for line in text.splitlines() if line.startswith("→")] == ["y[i] = x[i + 1]; // <b>&amp;"]
    assert "1 │ first" in text and "5 │ fifth" in text and "sixth" not in text


@pytest.mark.parametrize("where", ["message", "output", "source", "kernel"])
def test_nothing_of_the_students_becomes_html(where):
    """Is markup in a message, in what was printed, in a line or in a name shown as text?"""
    evil = "<img src=x onerror=alert(1)></div><script>alert(2)</script> \x1b[31m"
    verdict = verdict_of(**({where: evil} if where != "source" else {}))
    page = shown.as_html(shown.verdict_parts(verdict, SOURCE.replace("second", evil) if where == "source" else SOURCE, []))
    assert Visible(page).tags <= {"div", "table", "tr", "td", "th", "code", "br"}
    assert "onerror" in page and "\x1b" not in page


def test_themes():
    """Has every colour that is set one of JupyterLab's variables in front, or is it see-through, so that light and dark both read?"""
    page = shown.as_html(shown.verdict_parts(verdict_of(), SOURCE, []))
    for style in re.findall(r'style="([^"]*)"', page):
        for name, value in re.findall(r"(?:^|;)\s*(color|background|border[\w-]*):([^;]+)", style):
            assert "var(--jp-" in value or "transparent" in value or "rgba(" in value or value.strip() in ("none", "collapse"), (name, value)


def test_nothing_that_changes_from_run_to_run(monkeypatch):
    """Under nbval, are there words only, without times, seeds, versions or the machine's name?"""
    made = desk.Checked(verdict_of(), cells.Subject("x.py", Path("x.py"), SOURCE, "groupnorm", None), [])
    bundle = made._repr_mimebundle_()
    assert set(bundle) == {"text/plain"}
    assert not re.search(r"\d s\b|seed|cpu|torch", bundle["text/plain"])
    monkeypatch.delenv("GRADER_PICTURES")
    assert set(made._repr_mimebundle_()) == {"text/plain", "text/html"}
    assert made._repr_mimebundle_()["text/plain"] == bundle["text/plain"]


def test_lines_outside_the_marked_places_are_suspect_last():
    """Are a student's own lines shown, none of them accused, and not those of the exercise?"""
    text = student.source_of("scale_maxpool_clamp").read_text(encoding="utf-8").replace("// >>> exercise:", f"// {student.MARK}:").replace("// <<<", "")
    verdict = verdict_of(Reason.wrong_values, "The values are wrong: 3 of 4 values.")
    verdict.problem, verdict.stages[-1].evidence = "scale_maxpool_clamp", [Evidence(case="odd")]
    code = next(part for part in shown.verdict_parts(verdict, text, []) if isinstance(part, shown.Code))
    given = student.outside_places(text, "scale_maxpool_clamp")
    assert code.lines and not any(wrong for _, _, wrong in code.lines) and not given & {number for number, _, _ in code.lines}
    assert given and student.outside_places((student.KERNELS_STUDENT / "mend_layernorm.py").read_text(encoding="utf-8"), "mend_layernorm") == set()


# --- hints ------------------------------------------------------------------------------------------------------------


def test_an_empty_place_is_named():
    """Is a marked place that is still empty named by its line, and none where code stands behind the mark?"""
    untouched = (student.KERNELS_STUDENT / "groupnorm.py").read_text(encoding="utf-8")
    first, second = student.empty_places(untouched)
    lines = untouched.splitlines()
    half = "\n".join([*lines[:first], "    float sum = 0.0f;", *lines[first:]])
    shown_of = lambda text: repr(desk.Checked(verdict_of(), cells.Subject("x.py", Path("x.py"), text, "groupnorm", None), []))  # noqa: E731
    assert f"Still empty: the marked place in line {second + 1}." in shown_of(half)
    assert "Still empty" not in shown_of(half.replace(lines[second - 1], lines[second - 1] + "\n    int c = 0;"))
    assert student.empty_places(student.skeleton(student.source_of("groupnorm").read_text(encoding="utf-8"), "groupnorm")) == [first, second]


def test_hints_go_further_each_time():
    """Does each call give the next hint, and does the display then have what was given?"""
    made = desk.Checked(verdict_of(), cells.Subject("x.py", Path("x.py"), SOURCE, "groupnorm", None), [])
    given = [str(made.hint()) for _ in range(3)]
    assert len(set(given)) == 3 and all(hint in repr(made) for hint in given)
    for _ in range(50):
        last = made.hint()
    assert str(last) == "That was the last hint."


@pytest.mark.parametrize(
    "problem, reason, wrong, first",
    [
        ("scale_maxpool_clamp", Reason.wrong_values, ["some NaN"], "If only `some NaN` fails"),
        ("scale_maxpool_clamp", Reason.wrong_values, ["negative scale", "all below zero"], "If only `negative scale`"),
        ("scale_maxpool_clamp", Reason.wrong_values, ["prime sizes", "even rows"], "If only `prime sizes`"),
        ("scale_maxpool_clamp", Reason.wrong_values, ["some NaN", "one window"], "Look first at which elements"),
        ("ratio_interval", Reason.uninitialized, ["coarse clock"], "If only `coarse clock` fails: many of its ratios are equal."),
        ("ratio_interval", Reason.uninitialized, ["coarse clock", "two rounds"], "Somebody reads what nobody has written."),
    ],
)
def test_the_hint_for_just_these_cases_comes_first(problem, reason, wrong, first):
    """Is a hint that names the cases that fail the first one, and where others fail too in its usual place?"""
    verdict = verdict_of(reason)
    verdict.problem, verdict.stages[-1].cases = problem, [CaseResult(name=name, status=Status.failed) for name in wrong]
    given = hints.of(verdict)
    assert given[0].startswith(first)
    assert len(given) == len(set(given)) and set(hints.of_problem(problem)[reason.value]) <= set(given)


@pytest.mark.parametrize("name", student.exercises())
def test_cases_in_hints_are_real(name):
    """Is each case that a hint waits for one of the problem's, and does no hint mistype the words by which it waits?"""
    cases = {case.name for case in problem.read(problem.KERNELS_REF / student.problem_of(name) / "model.py").cases()}
    for text in (text for texts in hints.of_problem(name).values() for text in texts):
        said = hints.CASES.match(text)
        assert not said or set(re.findall("`([^`]+)`", said[1])) <= cases, text
        assert said or not re.match(r"If only (?:the case )?`[^`]+`.* fails?\b", text), text


@pytest.mark.parametrize(
    "message, shown, hidden",
    [
        ("reads element 1 of `a`, which thread (1, 0, 0) of the same block writes in line 3: no __syncthreads() lies between", "One block:", "Two blocks:"),
        ("reads element 1 of `a`, which thread (1, 0, 0) of block (1, 0, 0) writes in line 3: blocks run in any order.", "Two blocks:", "One block:"),
    ],
)
def test_hints_are_for_the_threads_that_met(message, shown, hidden):
    """Is what is said of two blocks kept from threads of one, and the other way round?"""
    given = hints.of(verdict_of(Reason.race, f"Thread (0, 0, 0) of block (0, 0, 0) {message}"))
    assert any(hint.startswith(shown) for hint in given) and not any(hint.startswith(hidden) for hint in given)
    assert all(any(hint.startswith(begins) for hint in hints._read(hints.GENERAL)["race"]) for begins in hints.BLOCKS)


@cpu_only
def test_a_check_names_the_line():
    """For wrong values, does the check itself mark the wrong line, and no other, with its evidence? Is the line kept with the verdict?"""
    made = desk.check(SPECIMENS / "conv2d_last_row_not_written.py", problem="conv2d")
    assert "line 16" in made.lead.words and made.lead.words in repr(made) and "return;" not in made.lead.words
    assert re.findall(r"^→.*$", repr(made), re.MULTILINE) == ["→ 16 │     if (oy >= OH - 1) return;"]
    assert str(made.hint()) == hints.of(made.verdict)[0]
    again = desk.check(SPECIMENS / "conv2d_last_row_not_written.py", problem="conv2d")
    assert again.lead is made.lead and "save it first" in repr(again) and "save it first" not in repr(made)


@cpu_only
def test_a_late_line_is_the_first_hint(monkeypatch):
    """Where the search takes longer than a check should, does the check say so, and does the first hint wait for the line?"""
    monkeypatch.setattr(desk, "PATIENCE", 0.0)
    monkeypatch.setattr(desk.shown, "plain", lambda: False)
    made = desk.check(SPECIMENS / "conv2d_last_row_not_written.py", problem="conv2d", seed=7)
    assert made.lead is not None or "still being looked for" in repr(made)
    assert "line 16" in str(made.hint()) or made.lead is not None
    assert made.lead is not None and "→ 16 │" in repr(made) and "still being looked for" not in repr(made)
    monkeypatch.setattr(desk, "_looking", desk.Looking())


@pytest.mark.parametrize("name", student.exercises())
def test_hints_of_every_problem(name):
    """Has each problem steps, the first of which gives no code of the solution away, and are its reasons real?"""
    own = hints.of_problem(name)
    assert len(own["steps"]) >= 4 and set(own) - {"steps"} <= {reason.value for reason in Reason}
    solution = student.source_of(name).read_text(encoding="utf-8")
    code = {line.split("//")[0].strip() for line in cut(solution)}
    assert code and not any(line in own["steps"][0] for line in code if len(line) > 12)
    everything = [text for texts in own.values() for text in texts]
    assert len(everything) == len(set(everything))


def cut(solution: str) -> list[str]:
    """The lines that the exercise leaves out, or has otherwise."""
    inside, found = False, []
    for line in solution.splitlines():
        opens = bool(student.OPEN.match(line) or student.DEFECT.match(line))
        inside = (inside or opens) and not student.CLOSE.match(line)
        found += [line] if inside and not opens else []
    return found


def test_hints_for_every_failure():
    """Has each reason for which a submission can fail a general hint, or an explanation that is all there is to say?"""
    without = {
        *("empty_file", "unreadable", "not_attempted", "unsupported_cuda", "no_compiler", "build_timeout", "wrong_device"),
        *("no_gpu", "inconclusive", "not_reached", "interrupted", "grader_error", "no_kernel"),
    }
    assert {reason.value for reason in EXPLANATIONS} - set(hints._read(hints.GENERAL)) == without


# --- what is checked --------------------------------------------------------------------------------------------------

CELLS = [
    (1, "import torch\nimport torch.nn as nn\nprint('not needed')\nunused = 5"),
    (2, "SIZE = 3\ncode = 'old'"),
    (3, "# a remark\ncode = '''\nkernel\n'''"),
    (4, "this is no Python"),
    (5, "def helper(x):\n    return x + SIZE\n\n\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        return helper(x), code\n"),
    (6, "grader.check(ModelNew)"),
]


def test_class_of_a_notebook():
    """Is the class gathered with all that it needs and nothing else, the newest definitions, and is each line's cell known?"""
    text, lines = cells.gather("ModelNew", CELLS)
    module = "import torch.nn as nn\nSIZE = 3\ncode = '''\nkernel\n'''\ndef helper(x):\n    return x + SIZE\n"
    assert text == module + "class ModelNew(nn.Module):\n    def forward(self, x):\n        return helper(x), code\n"
    where = cells.Subject("ModelNew", Path("ModelNew.py"), text, "conv2d", None, lines).where
    assert where(4) == "line 3 of cell [3]" and where(10) == "line 7 of cell [5]"
    assert shown.moved("Line 10 of ModelNew.py: bad, see line 4.", where) == "Line 7 of cell [5]: bad, see line 3 of cell [3]."


@pytest.mark.parametrize(
    "what, says",
    [
        *[("nothing_there", "the problems are"), (type("ModelNew", (), {}), "Which problem"), ("README.md", "No problem is called")],
        *[(3, "nothing to check in 3"), (None, "nothing to check in None"), ("", "nothing to check in ''")],
    ],
)
def test_nothing_to_check(what, says):
    """Is a mistake in the call one sentence, which IPython shows without a traceback?"""
    with pytest.raises(desk.CannotCheck, match=says) as caught:
        desk.check(what)
    assert caught.value._render_traceback_() == [str(caught.value)]
    with pytest.raises(desk.CannotCheck, match="There is no problem 3"):
        desk.check(what, problem=3)


@cpu_only
def test_unchanged_and_changed(tmp_path):
    """Is an unchanged kernel answered from memory, and never a changed one, a changed problem, seed or environment?"""
    file = tmp_path / "conv2d.py"
    file.write_text((SPECIMENS / "conv2d_syntax_error.py").read_text())
    first = desk.check(file)
    assert first.verdict.reason is Reason.syntax_error and desk.check(file).verdict is first.verdict
    assert desk.check(file, seed=5).verdict is not first.verdict
    file.write_text("# one more line\n" + file.read_text())
    second = desk.check(file)
    assert second.verdict is not first.verdict and second.verdict.first_problem.evidence[0].line == first.verdict.first_problem.evidence[0].line + 1


@pytest.mark.parametrize(
    "line, alone",
    [("import torch", True), ("from torch import nn", True), ("import math, numpy as np", True),
     ("import helper", False), ("from . import helper", False),
     ("code = open('k.cu').read()", False), ("here = __file__", False), ("load(name='k', sources=['k.cu'])", False),
     ("f(extra_include_paths=['.'])", False),
     ("code = '#include \"mine.h\"'", False), ("import re; re.compile('x')", True)],
)  # fmt: skip
def test_what_is_kept(line, alone, tmp_path):
    """Is a verdict kept only where the file is all that it depends on?"""
    assert warm.self_contained(line, tmp_path) is alone


def test_fleeting_verdicts_are_not_kept():
    """Is a verdict that depends on the moment looked for again?"""
    assert warm.keepable(verdict_of()) and not warm.keepable(verdict_of(Reason.timeout)) and not warm.keepable(verdict_of(Reason.nondeterministic))


@cpu_only
def test_spare_worker(monkeypatch):
    """Is the worker that waits the one that is used next, and never for another file or another environment?"""
    path = SPECIMENS / "conv2d_division_by_zero.py"
    desk.check(path, problem="conv2d", case="one pixel")
    waiting = warm.SPARE.process
    assert waiting is not None and waiting.alive()
    desk.check(path, problem="conv2d", case="one pixel", seed=3)
    assert not waiting.alive() and warm.SPARE.process is not waiting
    waiting = warm.SPARE.process
    monkeypatch.setenv("SIMT_DEVICE", "A100")
    desk.check(path, problem="conv2d", case="one pixel", seed=4)
    assert warm.SPARE.process is not waiting and not waiting.alive()


@cpu_only
def test_a_case_of_its_own():
    """Is one case run where one is asked for, and does the display say so?"""
    made = desk.check(SPECIMENS / "conv2d_bias_forgotten.py", problem="conv2d", case="batch 1")
    assert [case.name for case in made.verdict.stage("correct").cases] == ["batch 1"] and "only the case batch 1" in repr(made)
    with pytest.raises(desk.CannotCheck, match="has no case 'batch 7'"):
        desk.check(SPECIMENS / "conv2d_bias_forgotten.py", problem="conv2d", case="batch 7")


@cpu_only
def test_compile_error_in_words():
    """Is the first error shown at the student's line, with what usually causes it?"""
    text = repr(desk.check(SPECIMENS / "logsumexp_missing_semicolon.py", problem="logsumexp"))
    assert "expected ‘,’ or ‘;’" in text and "A semicolon is missing" in text
    assert any(line.startswith("→") and "float top" in line for line in text.splitlines())


INTERRUPT = """
import os, signal, sys, threading
import psutil
from grader import desk
threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    desk.check(sys.argv[1], problem="groupnorm")
except desk.Interrupted as error:
    print("said:", *error._render_traceback_())
    print("left:", *psutil.wait_procs(psutil.Process().children(recursive=True), timeout=10)[1])
"""


@cpu_only
@pytest.mark.parametrize("seconds", [1.5, 8.0])
def test_interrupt(seconds):
    """Does Ctrl-C, early or in an endless kernel, leave one sentence and no process, neither a child nor one that has lost its parent?"""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "DESK_TEST": f"interrupt{os.getpid()}-{seconds}"}
    command = [sys.executable, "-c", INTERRUPT, str(SPECIMENS / "groupnorm_endless_loop.py"), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
    assert done.stdout == f"said: {desk.STOPPED}\nleft:\n" and "Traceback" not in done.stderr
    mark = f"DESK_TEST={environment['DESK_TEST']}".encode()
    until = time.monotonic() + 10.0  # a killed compiler returns its memory before it is gone
    while (left := [p for p in Path("/proc").glob("[0-9]*") if carries(p, mark)]) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left


def carries(process: Path, mark: bytes) -> bool:
    try:
        return mark in (process / "environ").read_bytes().split(b"\0") and bool((process / "cmdline").read_bytes())
    except OSError:
        return False
