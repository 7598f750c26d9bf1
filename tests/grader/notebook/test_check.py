"""grader.check in a notebook: does what it shows say the same as text and as HTML, safely, and is nothing stale?"""

import os
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grader.notebook import cells, check, spare_worker
from grader.problems import exercises
from grader.reports import feedback as shown
from grader.verdict import (
    Evidence,
    Outcome,
    Reason,
)
from grader.worker import client, protocol
from grader.worker.process import KEPT_BYTES
from tests.grader.notebook.verdicts import ROOT, SOURCE, SPECIMENS, cpu_only, plain, verdict_of  # noqa: F401 - a fixture


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
    parts = shown.verdict_parts(
        verdict_of(kernel="k", thread=[4, 0, 0], block=[62, 0, 0], expected=1.0, index=[0, 5], output="hello"),
        SOURCE,
        [],
    )
    text = shown.as_text(parts).replace("`", "").split()
    assert Visible(shown.as_html(parts)).words == text


def test_a_pass_of_the_exercise_says_why_it_works():
    """Is it said of a file that was made from the exercise, and not of one that may work in another way?"""
    right = msgspec.structs.replace(verdict_of(), problem="conv2d", outcome=Outcome.passed, stages=[])
    exercise = (exercises.KERNELS_STUDENT / "conv2d.py").read_text(encoding="utf-8")
    assert "Why the reference solution works: Each result has a thread of its own" in shown.as_text(
        shown.verdict_parts(right, exercise, [])
    )
    assert "Why the reference solution works" not in shown.as_text(shown.verdict_parts(right, SOURCE, []))


def test_wrong_line_is_marked():
    """Is the wrong line, and only that, marked among its neighbours?"""
    text = shown.as_text(shown.verdict_parts(verdict_of(), SOURCE, []))
    assert [line.split("│")[1].strip() for line in text.splitlines() if line.startswith("→")] == [
        "y[i] = x[i + 1]; // <b>&amp;"
    ]
    assert "1 │ first" in text and "5 │ fifth" in text and "sixth" not in text


@pytest.mark.parametrize("where", ["message", "output", "source", "kernel"])
def test_nothing_of_the_students_becomes_html(where):
    """Is markup in a message, in what was printed, in a line or in a name shown as text?"""
    evil = "<img src=x onerror=alert(1)></div><script>alert(2)</script> \x1b[31m"
    changed: dict[str, Any] = {where: evil} if where != "source" else {}
    verdict = verdict_of(**changed)
    page = shown.as_html(
        shown.verdict_parts(verdict, SOURCE.replace("second", evil) if where == "source" else SOURCE, [])
    )
    assert Visible(page).tags <= {"div", "table", "tr", "td", "th", "code", "br"}
    assert "onerror" in page and "\x1b" not in page


def test_themes():
    """Has every colour that is set one of JupyterLab's variables in front, or is it see-through, so that light and dark
    both read?
    """
    page = shown.as_html(shown.verdict_parts(verdict_of(), SOURCE, []))
    for style in re.findall(r'style="([^"]*)"', page):
        for name, value in re.findall(r"(?:^|;)\s*(color|background|border[\w-]*):([^;]+)", style):
            assert (
                "var(--jp-" in value
                or "transparent" in value
                or "rgba(" in value
                or value.strip() in ("none", "collapse")
            ), (name, value)


def test_nothing_that_changes_from_run_to_run(monkeypatch):
    """Under nbval, are there words only, without times, seeds, versions or the machine's name?"""
    made = check.Checked(verdict_of(), cells.Subject("x.py", Path("x.py"), SOURCE, "groupnorm", None), [])
    bundle = made._repr_mimebundle_()
    assert set(bundle) == {"text/plain"}
    assert not re.search(r"\d s\b|seed|cpu|torch", bundle["text/plain"])
    monkeypatch.delenv("GRADER_PICTURES")
    assert set(made._repr_mimebundle_()) == {"text/plain", "text/html"}
    assert made._repr_mimebundle_()["text/plain"] == bundle["text/plain"]


def test_lines_outside_the_marked_places_are_suspect_last():
    """Are a student's own lines shown, none of them accused, and not those of the exercise?"""
    text = (
        exercises.source_of("scale_maxpool_clamp")
        .read_text(encoding="utf-8")
        .replace("// >>> exercise:", f"// {exercises.MARK}:")
        .replace("// <<<", "")
    )
    verdict = verdict_of(Reason.wrong_values, "The values are wrong: 3 of 4 values.")
    verdict.problem, verdict.stages[-1].evidence = "scale_maxpool_clamp", [Evidence(case="odd")]
    code = next(part for part in shown.verdict_parts(verdict, text, []) if isinstance(part, shown.Code))
    given = exercises.outside_places(text, "scale_maxpool_clamp")
    assert (
        code.lines
        and not any(wrong for _, _, wrong in code.lines)
        and not given & {number for number, _, _ in code.lines}
    )
    assert (
        given
        and exercises.outside_places(
            (exercises.KERNELS_STUDENT / "mend_layernorm.py").read_text(encoding="utf-8"), "mend_layernorm"
        )
        == set()
    )


# --- what is checked --------------------------------------------------------------------------------------------------

CELLS = [
    (1, "import torch\nimport torch.nn as nn\nprint('not needed')\nunused = 5"),
    (2, "SIZE = 3\ncode = 'old'"),
    (3, "# a remark\ncode = '''\nkernel\n'''"),
    (4, "this is no Python"),
    (
        5,
        (
            "def helper(x):\n"
            "    return x + SIZE\n\n\n"
            "class ModelNew(nn.Module):\n"
            "    def forward(self, x):\n"
            "        return helper(x), code\n"
        ),
    ),
    (6, "grader.check(ModelNew)"),
]


def test_class_of_a_notebook():
    """Is the class gathered with all that it needs and nothing else, the newest definitions, and is each line's cell
    known?
    """
    text, lines = cells.gather("ModelNew", CELLS)
    module = "import torch.nn as nn\nSIZE = 3\ncode = '''\nkernel\n'''\ndef helper(x):\n    return x + SIZE\n"
    assert text == module + "class ModelNew(nn.Module):\n    def forward(self, x):\n        return helper(x), code\n"
    where = cells.Subject("ModelNew", Path("ModelNew.py"), text, "conv2d", None, lines).where
    assert where(4) == "line 3 of cell [3]" and where(10) == "line 7 of cell [5]"
    assert (
        shown.moved("Line 10 of ModelNew.py: bad, see line 4.", where)
        == "Line 7 of cell [5]: bad, see line 3 of cell [3]."
    )


@pytest.mark.parametrize(
    "what, says",
    [
        *[
            ("nothing_there", "The problems are"),
            (type("ModelNew", (), {}), "The problem that ModelNew answers is unknown"),
            ("README.md", "No problem is called"),
        ],
        *[(3, "3 cannot be checked"), (None, "None cannot be checked"), ("", "'' cannot be checked")],
    ],
)
def test_nothing_to_check(what, says):
    """Is a mistake in the call one sentence, which IPython shows without a traceback?"""
    with pytest.raises(check.CannotCheck, match=says) as caught:
        check.check(what)
    assert caught.value._render_traceback_() == [str(caught.value)]
    unnamed: Any = 3
    with pytest.raises(check.CannotCheck, match="There is no problem 3"):
        check.check(what, problem=unnamed)


@cpu_only
def test_unchanged_and_changed(tmp_path):
    """Is an unchanged kernel answered from memory, and never a changed one, a changed problem, seed or environment?"""
    file = tmp_path / "conv2d.py"
    file.write_text((SPECIMENS / "conv2d_syntax_error.py").read_text())
    first = check.check(file)
    assert first.verdict.reason is Reason.syntax_error and check.check(file).verdict is first.verdict
    assert check.check(file, seed=5).verdict is not first.verdict
    file.write_text("# one more line\n" + file.read_text())
    second = check.check(file)
    assert (
        second.verdict is not first.verdict
        and second.verdict.first_problem.evidence[0].line == first.verdict.first_problem.evidence[0].line + 1
    )


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
    assert spare_worker.self_contained(line, tmp_path) is alone


def test_fleeting_verdicts_are_not_kept():
    """Is a verdict that depends on the moment looked for again?"""
    assert (
        spare_worker.keepable(verdict_of())
        and not spare_worker.keepable(verdict_of(Reason.timeout))
        and not spare_worker.keepable(verdict_of(Reason.nondeterministic))
    )


@pytest.mark.slow
@cpu_only
def test_spare_worker(monkeypatch):
    """Is the worker that waits the one that is used next, and never for another file or another environment?"""
    path = SPECIMENS / "conv2d_division_by_zero.py"
    check.check(path, problem="conv2d", case="one pixel")
    waiting = spare_worker.SPARE.process
    assert waiting is not None and waiting.alive()
    check.check(path, problem="conv2d", case="one pixel", seed=3)
    assert not waiting.alive() and spare_worker.SPARE.process is not waiting
    waiting = spare_worker.SPARE.process
    monkeypatch.setenv("SIMT_DEVICE", "A100")
    check.check(path, problem="conv2d", case="one pixel", seed=4)
    assert spare_worker.SPARE.process is not waiting and not waiting.alive()


@pytest.mark.slow
@cpu_only
def test_spare_worker_after_an_edit(tmp_path):
    """Does a spare worker see the file as it is checked, also if an editor has saved it under a new inode?"""
    path = tmp_path.resolve() / "mine.py"
    path.write_text("# as it was")
    spare = spare_worker.Spare()
    options = {"gpu": False, "builds": tmp_path / "builds", "required": False}
    spare.arguments = (path, b"# as it was", options)
    spare.prepare()
    waiting = spare.process
    assert waiting is not None
    (tmp_path / "new").write_text("# edited")
    (tmp_path / "new").rename(path)
    process = spare.start(path, b"# edited", **options)
    try:
        process_client = client.Client(process, path, lambda words: None, 60.0)
        process_client.wait_until_ready()
        reply = process_client.ask(protocol.Build("raise ValueError(open(__file__).read())", str(path), 20.0), 20.0)
        assert isinstance(reply, protocol.Failure) and reply.message == "# edited"
        assert process is waiting or process.copy is None  # Landlock allows a file, not a name
    finally:
        process.kill()


def test_edits_of_a_file_share_what_was_compiled(tmp_path, monkeypatch):
    """Does each spare worker get the folder of the file's first text, and another file its own?"""
    started = []
    monkeypatch.setattr(
        spare_worker.sandbox, "start", lambda path, content, **options: started.append(options["builds"])
    )
    monkeypatch.setattr(spare_worker.Spare, "_stop_clock", lambda self: None)
    spare = spare_worker.Spare()
    for name, folder in (("mine", "a"), ("mine", "b"), ("mine", "c"), ("other", "d"), ("other", "e")):
        spare.arguments = tmp_path / name, b"", {"gpu": False, "builds": tmp_path / folder, "required": False}
        spare.prepare()
        spare.process = None
    assert [folder.name for folder in started] == ["a", "a", "a", "d", "d"]
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "kernel.so").write_bytes(b"\1" * (KEPT_BYTES // 2 + 1))
    spare.arguments = tmp_path / "other", b"", {"gpu": False, "builds": tmp_path / "f", "required": False}
    spare.prepare()
    assert started[-1].name == "f"  # the first folder would soon be emptied, with a worker in it


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True])
def test_an_unusable_seed_is_refused_as_in_the_terminal(seed):
    """Is it one sentence, before anything is run?"""
    with pytest.raises(check.CannotCheck, match=r"^seed is .*\. Give an int that is not negative\.$"):
        check.check("conv2d", seed=seed)


@pytest.mark.slow
@cpu_only
def test_a_case_of_its_own():
    """Is one case run if one is requested, and does the display say so?"""
    made = check.check(SPECIMENS / "conv2d_bias_forgotten.py", problem="conv2d", case="batch 1")
    assert [case.name for case in made.verdict.stage("correct").cases] == [
        "batch 1"
    ] and "Only the case batch 1 was run." in repr(made)
    with pytest.raises(check.CannotCheck, match="has no case 'batch 7'"):
        check.check(SPECIMENS / "conv2d_bias_forgotten.py", problem="conv2d", case="batch 7")


@pytest.mark.slow
@cpu_only
def test_compile_error_in_words():
    """Is the first error shown at the student's line, with what usually causes it?"""
    text = repr(check.check(SPECIMENS / "logsumexp_missing_semicolon.py", problem="logsumexp"))
    assert "expected ‘,’ or ‘;’" in text and "A semicolon is missing" in text
    assert any(line.startswith("→") and "int n = i" in line for line in text.splitlines())


INTERRUPT = """
import os, signal, sys, threading
import psutil
from grader.notebook import check as desk
threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    desk.check(sys.argv[1], problem="groupnorm")
except desk.Interrupted as error:
    print("shown:", *error._render_traceback_())
    print("left:", *psutil.wait_procs(psutil.Process().children(recursive=True), timeout=10)[1])
"""


@pytest.mark.slow
@cpu_only
@pytest.mark.parametrize("seconds", [1.5, 8.0])
def test_interrupt(seconds):
    """Does Ctrl-C, early or in an endless kernel, leave one sentence and no process, neither a child nor one that has
    lost its parent?
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT), "DESK_TEST": f"interrupt{os.getpid()}-{seconds}"}
    command = [sys.executable, "-c", INTERRUPT, str(SPECIMENS / "groupnorm_endless_loop.py"), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
    assert done.stdout == f"shown: {check.STOPPED}\nleft:\n" and "Traceback" not in done.stderr
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
