"""Does `grader lint-problem` end with the documented status, and say in one sentence what is wrong?"""

import json
import os
import subprocess
import sys
import time

import pytest

from grader.cli import first_use, statuses
from grader.paths import KERNELS_REF
from tests.grader.cli.commands import grade, run
from tests.grader.lint import planted
from tests.grader.scaffold import HEAD

START = "import torch\nimport torch.nn as nn\n"


@pytest.fixture
def file(tmp_path):
    """A function that writes a problem file."""

    def write(text, name="planted.py"):
        path = tmp_path / name
        path.write_text(START + text)
        return path

    return write


def words(text):
    """A text as printed, in one line: the terminal wraps it at its width."""
    return " ".join(text.split())


def test_nothing_survives_is_0(problem):
    result = run("lint-problem", problem)
    assert result.exit_code == statuses.PASSED
    assert "nothing survives" in words(result.stdout) and "3 of 3 mutants killed" in words(result.stdout)


def test_a_survivor_is_1_and_named_with_a_case(file, tmp_path):
    out = tmp_path / "out.json"
    result = run("lint-problem", file(planted.ONE_ROW), "--json", out)
    assert result.exit_code == statuses.FAILED
    assert "mutant: line 6: x.sum(0) → x.mean(0)" in result.stdout and "'set': {'rows': 2}" in result.stdout
    (line,) = out.read_text().splitlines()
    data = json.loads(line)
    (mutant,) = [one for one in data["outcomes"] if one["name"] == "x.sum(0) → x.mean(0)"]
    assert (mutant["status"], mutant["line"], mutant["suggestion"]["entry"]["set"]) == ("survived", 6, {"rows": 2})
    assert data["mutants"]["killed"] < data["mutants"]["counted"]
    assert len(data["outcomes"]) == sum(
        data[kind][key] for kind in ("decoys", "mutants") for key in ("counted", "equivalent")
    )


def test_json_on_standard_output_is_json_alone(problem):
    result = run("lint-problem", "--quick", "--json", "-", problem)
    assert json.loads(result.stdout)["problem"] == "scaling" and "nothing survives" in words(result.stderr)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "has no Model and no get_inputs"),
        ("def f(:\n", "syntax error"),
        ("raise ValueError('no')\n", "the file raised ValueError: no"),
        (planted.ONE_ROW.replace("x.sum(0)", "x.sum(7)"), "Model.forward raised IndexError"),
        (planted.ONE_ROW.replace("torch.randn(rows, 13)", "1 / 0"), "get_inputs() raised ZeroDivisionError"),
        (planted.ONE_ROW.replace("x.sum(0)", "torch.rand(3)"), "Model itself is random"),
        (planted.ONE_ROW.replace("x.sum(0)", "x[:0]"), "leaves nothing to compare"),
    ],
)
def test_an_unusable_problem_is_2_with_a_sentence(file, text, message):
    path = file(text)
    result = run("lint-problem", path)
    assert result.exit_code == statuses.USAGE and message in words(result.stderr)
    assert "Traceback" not in result.output and result.stderr.startswith(str(path)[:20])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "--all"),
        (["nowhere.py"], "no such file"),
        (["groupnorm", "--all"], "--all"),
        (["groupnorm", "--set", "features"], "NAME=VALUE"),
        (["groupnorm", "--set", "colour=3"], "colour"),
        (["groupnorm", "--seed", "-1"], "--seed"),
    ],
)
def test_wrong_usage_is_2(arguments, message):
    result = run("lint-problem", *arguments)
    assert result.exit_code == statuses.USAGE and message in result.output and "Traceback" not in result.output


def test_what_a_problem_prints_is_dropped(file):
    """Is standard output JSON alone where Model prints and warns whenever it runs?"""
    noisy = planted.ONE_ROW.replace(
        "        return", "        print('here'); __import__('warnings').warn('there')\n        return"
    )
    result = run("lint-problem", "--quick", "--json", "-", file(noisy))
    assert json.loads(result.stdout)["cases"] and "here" not in result.stderr and "there" not in result.stderr


def test_one_bad_file_does_not_stop_the_others(file, problem):
    """Is the good file linted after an unusable one, with the worse status?"""
    result = run("lint-problem", "--quick", file(""), problem)
    assert result.exit_code == statuses.USAGE and "nothing survives" in words(result.stdout)


def test_quick_says_that_a_case_is_too_large(file):
    text = planted.ONE_ROW.replace("13", "900_000")
    result = run("lint-problem", "--quick", file(text))
    assert result.exit_code == statuses.CANNOT and "without --quick" in words(result.stderr)


# --- first use -------------------------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty folder for what first_use remembers."""
    monkeypatch.setattr(first_use, "folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def started(monkeypatch):
    """The commands that first_use starts; each is replaced by a Python program, by default one that prints nothing."""
    commands, program = [], ["pass"]
    popen = subprocess.Popen

    def start(command, **options):
        commands.append(command)
        return popen([sys.executable, "-c", program[0]], **options)

    monkeypatch.setattr(first_use.subprocess, "Popen", start)
    commands_and_program = commands, program
    return commands_and_program


def test_a_file_is_linted_once(file, cache, started):
    """Is a file linted when its content or settings are new, and not again?"""
    commands, _ = started
    path = file(planted.CONSTANT)
    for settings in ({}, {}, {"size": "9"}, {"size": "9"}):
        with first_use.lint_on_first_use(path, settings):
            pass
    assert len(commands) == 2 and commands[1][-4:] == ["--set", "size=9", "--", str(path)]
    path.write_text(path.read_text() + "\n")
    with first_use.lint_on_first_use(path, {}):
        pass
    assert len(commands) == 3


def test_the_course_s_own_are_not_linted(cache, started):
    for path in (KERNELS_REF / "groupnorm" / "model.py", None):
        with first_use.lint_on_first_use(path, {}):
            pass
    assert not started[0] and not cache.exists()


def test_an_unwritable_cache_lints_nothing(file, cache, started):
    """Where nothing can be remembered, each grading would be delayed."""
    cache.write_text("a file, not a folder")
    with first_use.lint_on_first_use(file(planted.CONSTANT), {}) as remarks:
        pass
    assert not started[0] and not remarks


@pytest.mark.parametrize("program", ["import time; time.sleep(60)", "print('no JSON')", "print('{}')", "1 / 0"])
def test_what_goes_wrong_is_not_reported_and_is_not_left_running(file, cache, started, monkeypatch, program):
    monkeypatch.setattr(first_use, "MOST_WAIT_S", 0.2)
    started[1][0] = f"import os; open({str(cache) + '.pid'!r}, 'w').write(str(os.getpid())); {program}"
    began = time.monotonic()
    with first_use.lint_on_first_use(file(planted.CONSTANT), {}) as remarks:
        while not os.path.exists(f"{cache}.pid") and time.monotonic() - began < 20:
            time.sleep(0.01)
    assert not remarks and time.monotonic() - began < 20
    with open(f"{cache}.pid") as pid:
        assert not os.path.exists(f"/proc/{pid.read()}")


def test_survivors_give_one_sentence(file, cache, started):
    outcomes = [
        {"group": "constant", "name": "zeros", "status": "killed"},
        {"group": "permuted", "name": "reversed", "status": "survived"},
        {"group": "constant", "name": "a constant", "status": "survived"},
    ]
    started[1][0] = f"print({json.dumps({'outcomes': outcomes, 'cases': [1, 2]})!r})"
    path = file(planted.CONSTANT)
    with first_use.lint_on_first_use(path, {}) as remarks:
        time.sleep(0.01)
    (remark,) = remarks
    assert "passes all 2 cases (a constant, and 1 more)" in remark and f"`grader lint-problem {path}`" in remark


@pytest.mark.slow
def test_grade_reports_a_weak_problem_once(file, written, cache, monkeypatch):
    """Does the first grading with a weak problem print the line on standard error, and the second not?"""
    monkeypatch.setattr(first_use, "MOST_WAIT_S", 60)
    monkeypatch.setattr(first_use, "MOST_SECONDS", 60)
    problem = file(planted.CONSTANT)
    submission = written(HEAD.replace("(self, features)", "(self)").replace("features", "1") + "        return 0 * x\n")
    printed = [grade(submission, "--problem", problem) for _ in range(2)]
    assert [result.exit_code for result in printed] == [statuses.FAILED] * 2
    assert "lint-problem" in printed[0].stderr and "lint-problem" not in printed[1].stderr
    assert "lint-problem" not in printed[0].stdout
