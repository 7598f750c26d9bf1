"""Is a student's progress kept, shown, and never lost?"""

import errno
import json
import multiprocessing
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import nbformat
import pytest
from click.testing import CliRunner

from grader.cli import main, statuses
from grader.problems import exercises
from grader.reports import progress
from grader.verdict import (
    CaseResult,
    Measurement,
    Outcome,
    Reason,
    Stage,
    StageName,
    Status,
    Submission,
    Verdict,
    schema,
)

ROOT = Path(__file__).resolve().parents[3]
ORDER = list(StageName)
CORE = [name for name in progress.names() if not progress.is_optional(name)]


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Return the file that progress keeps, although this is a test."""
    file = tmp_path / "kept" / "progress.json"
    monkeypatch.setenv("GRADER_PROGRESS", str(file))
    return file


def made(
    problem="conv2d",
    failed=None,
    reason=Reason.wrong_values,
    right=0,
    cases=0,
    sha="a",
    path=None,
    speedup=None,
    **other,
):
    """A verdict: passed, or failed in a stage with so many of its cases right."""
    stages = []
    for name in ORDER:
        stage = Stage(name=name, status=Status.passed)
        if failed is not None and name == failed:
            wrong = [CaseResult(name="x", status=Status.failed)] * (cases - right)
            stage = Stage(
                name=name,
                status=Status.failed,
                reason=reason,
                cases=[CaseResult(name="x", status=Status.passed)] * right + wrong,
            )
        elif failed is not None and ORDER.index(name) > ORDER.index(failed):
            stage = Stage(name=name, status=Status.skipped, reason=Reason.not_reached)
        elif name == "fast" and speedup:
            stage.measurements = [Measurement(name="speed-up over eager", value=speedup, unit="x")]
        stages.append(stage)
    return Verdict(
        problem=problem,
        submission=Submission(path=path or f"kernels_student/{problem}.py", sha256=sha),
        **{"outcome": schema.outcome_of(stages), "stages": stages} | other,
        device="cpu",
        versions={},
        seed=1,
        seconds=1.0,
        sandbox="none",
    )


def best():
    return {row.problem: row.best for row in progress.progress().rows}


# --- what is the best ------------------------------------------------------------------------------------------------

LADDER = [
    made(failed="contract", reason=Reason.syntax_error),
    made(failed="build", reason=Reason.compile_error),
    made(failed="correct", right=0, cases=6),
    made(failed="correct", right=5, cases=6),
    made(failed="safe", reason=Reason.race, right=1, cases=6),
    made(),
    made(speedup=0.5),
    made(speedup=2.5),
]


def test_the_best_is_the_one_that_came_furthest(file):
    """Is each rung better than all before it, and does none of those replace it?"""
    for rung, step in enumerate(LADDER):
        progress.note(step)
        shown = best()["conv2d"]
        for earlier in LADDER[:rung]:
            progress.note(earlier)
        assert best()["conv2d"] == shown == str(progress.mark_of(step))


def test_what_is_shown_names_stage_reason_and_cases(file):
    progress.note(made(failed="correct", right=5, cases=6))
    assert best()["conv2d"] == "failed at stage correct (wrong values), 5 of 6 cases right"
    progress.note(made(speedup=2.344))
    assert best()["conv2d"] == "passed, 2.34 times as fast as eager"


def test_what_says_nothing_of_the_student_is_not_kept(file):
    """Not attempted, interrupted, the grader's own failure: is none of them a try?"""
    for outcome, reason in (
        (Outcome.not_attempted, Reason.not_attempted),
        (Outcome.error, Reason.interrupted),
        (Outcome.error, Reason.no_compiler),
    ):
        assert progress.note(made(failed="build", reason=reason, outcome=outcome)) == ""
    assert best()["conv2d"] == progress.NOT_TRIED and not file.exists()


def test_a_pass_after_failures_is_solved(file):
    """Is the first pass told as that, and only a faster one as a better result?"""
    progress.note(made(failed="build", sha="a"))
    assert progress.note(made(sha="b")).startswith("conv2d is solved.")
    assert progress.note(made(sha="c")) == ""


def test_the_same_file_again_is_no_further_try(file):
    for sha in "aabba":
        progress.note(made(failed="build", sha=sha))
    assert progress.progress().rows[0].tries == "3"


# --- which files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "problem, path",
    [
        ("conv2d", "kernels_ref/conv2d/solution.py"),
        ("conv2d", "handed_in/ada/conv2d.py"),
        ("scaling", "kernels_student/scaling.py"),
        ("conv2d", "kernels_student/conv2d_ada.py"),
        ("groupnorm", "kernels_student/conv2d.py"),
    ],
)
def test_only_the_courses_exercises_are_kept(file, problem, path):
    """Is a solution, a class's submission, another problem's file left out?"""
    assert progress.note(made(problem, path=path)) == ""
    assert not file.exists()


@pytest.mark.parametrize(
    "path", ["handed_in/ada/kernels_student/conv2d.py", "ada/kernels_student/conv2d.py", "kernels_student/conv2d.py"]
)
def test_a_handed_in_folder_of_exercises_is_not_ones_own(file, tmp_path, monkeypatch, path):
    """Does a kernels_student of somebody else's count for nothing, wherever one is?"""
    (tmp_path / path).parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert progress.note(made(path=path)) == progress.note(made(path=str(tmp_path / path))) == ""
    assert not file.exists()


@pytest.mark.parametrize(
    "here, path",
    [(".", "kernels_student"), ("kernels_student", "."), ("lessons", "../kernels_student"), ("lessons", "/")],
)
def test_ones_own_exercise_counts_from_everywhere(file, tmp_path, monkeypatch, here, path):
    """Is it known in grader's course and in a copy that one is in, by each path that leads there?"""
    for folder in ("kernels_ref", "kernels_student", "lessons"):
        (tmp_path / folder).mkdir()
    for course in (ROOT, tmp_path):
        monkeypatch.chdir(course / here)
        named = course / "kernels_student" if path == "/" else path
        news = progress.note(made(path=f"{named}/conv2d.py", sha=str(course)))
        assert news.startswith("conv2d is solved.") if course is ROOT else news == ""
    assert progress.progress().rows[0].tries == "2"


def test_a_file_elsewhere_counts_if_its_problem_is_named(file):
    assert progress.note(made(path="<cell 3>"), problem="conv2d").startswith("conv2d is solved.")
    assert best()["conv2d"] == "passed"
    assert progress.note(made(path="<cell 3>"), problem="unheard_of") == ""


def test_nothing_is_kept_under_pytest_by_default(monkeypatch, tmp_path):
    monkeypatch.delenv("GRADER_PROGRESS", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert progress.path() is None
    following = "Next: read lesson 2, then fill in kernels_student/im2col_conv.py."
    assert progress.note(made()) == f"conv2d is solved. {following}"
    assert not list(tmp_path.iterdir()) and best()["conv2d"] == progress.NOT_TRIED


@pytest.mark.parametrize("state, root", [("", ".local/state"), ("relative", ".local/state"), ("/far", "/far")])
def test_it_lies_in_the_state_folder(monkeypatch, tmp_path, state, root):
    """Is it out of the course's folder, where it could be committed or cleaned away?"""
    monkeypatch.delenv("GRADER_PROGRESS", raising=False)
    monkeypatch.delenv("PYTEST_VERSION")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", state)
    assert progress.path() == tmp_path / root / "grader" / "progress.json"


# --- the file ---------------------------------------------------------------------------------------------------------


def _note(problem, shas):
    for sha in shas:
        progress.note(made(problem, failed="build", sha=sha))


@pytest.mark.slow
def test_two_at_once_lose_nothing(file):
    """Do gradings in several processes at the same time all end up in the file?"""
    context = multiprocessing.get_context("spawn")
    problems = list(progress.COURSE)[:2]
    processes = [context.Process(target=_note, args=(name, [str(n) for n in range(20)])) for name in problems]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [row.tries for row in progress.progress().rows[:3]] == ["20", "20", ""]


def _killed_at(call):
    def kill(*_, **__):
        os._exit(9)

    setattr(os, call, kill)
    progress.note(made("groupnorm"))


@pytest.mark.slow
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_crash_while_writing_loses_nothing(file, call):
    """If the process dies before or after the new file's bytes are on the disk, is the old one whole, and the next
    write right?
    """
    progress.note(made("conv2d"))
    before = file.read_bytes()
    process = multiprocessing.get_context("spawn").Process(target=_killed_at, args=(call,))
    process.start()
    process.join()
    assert process.exitcode == 9 and file.read_bytes() == before
    progress.note(made("groupnorm"))
    assert best()["conv2d"] == best()["groupnorm"] == "passed"
    assert sorted(f.name for f in file.parent.iterdir()) == ["progress.json", "progress.json.lock"]


def test_a_full_disk_loses_nothing_and_is_one_sentence(file, monkeypatch):
    progress.note(made("conv2d"))
    before = file.read_bytes()

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        message = progress.note(made("groupnorm"))
        shown = progress.progress()
    assert message == f"Your progress cannot be kept in {file} (No space left on device)."
    assert shown.rows[0].best == "passed" and shown.warnings == [message]
    assert file.read_bytes() == before and not file.with_name("progress.json.new").exists()


DAMAGED = [
    b"{",
    b"\xff\xfe\x00",
    b"[]",
    b'{"schema": 1}',
    b'{"schema": "kernel-course/progress/1", "problems": {"conv2d": 3}}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("data", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_reported_in_one_sentence_and_set_aside(file, data):
    file.parent.mkdir()
    for number in (1, 2):  # twice: the first one set aside stays
        file.write_bytes(data)
        message = progress.note(made()).split(": ")
        assert message[0] == f"Your progress in {file} was damaged"
        assert file.with_name(f"progress.json.damaged-{number}").read_bytes() == data
    assert best()["conv2d"] == "passed"


def test_a_newer_versions_file_is_left_as_it_is(file):
    file.parent.mkdir()
    file.write_text('{"schema": "kernel-course/progress/2", "problems": []}')
    assert "another version of grader (kernel-course/progress/2)" in progress.note(made())
    assert json.loads(file.read_text())["schema"].endswith("2") and not list(file.parent.glob("*damaged*"))


def test_a_link_stays_a_link(file, tmp_path):
    """Is what the link leads to (a synchronised folder, say) written, and not the link replaced?"""
    file.parent.mkdir()
    (tmp_path / "elsewhere.json").touch()
    file.symlink_to(tmp_path / "elsewhere.json")
    progress.note(made())
    assert file.is_symlink() and "conv2d" in (tmp_path / "elsewhere.json").read_text()


def test_a_file_that_is_not_there_is_no_try(file, tmp_path, monkeypatch):
    """Graded in a folder where there is no such file: does progress still say that the problem was not tried?"""
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(main.cli, ["grade", "kernels_student/conv2d.py"])
    assert best()["conv2d"] == progress.NOT_TRIED
    for folder in ("kernels_ref", "kernels_student"):
        (tmp_path / folder).mkdir()
    (tmp_path / "kernels_student" / "conv2d.py").write_text("def f(:")
    CliRunner().invoke(main.cli, ["grade", "kernels_student/conv2d.py"])
    assert best()["conv2d"] == "failed at stage contract (syntax error)"


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_the_order_is_the_courses():
    """Do the lessons and the README's table name the problems in this order, and is no problem missing?"""
    for lesson in sorted((ROOT / "lessons").glob("*.ipynb")):
        code = "".join(cell.source for cell in nbformat.read(lesson, 4).cells if cell.cell_type == "code")
        graded = re.findall(r'grader\.check\("(\w+)"', code)
        assert graded and {progress._where(name) for name in graded} == {f"lesson {int(lesson.name[:2])}"}
    numbers = [int(where.removeprefix("lesson ")) for where in progress.COURSE.values()]
    assert numbers == sorted(numbers)
    readme = re.findall(r"`(\w+)\.py`", (ROOT / "README.md").read_text().split("## I am an instructor")[0])
    assert [name for name in readme if name in progress.COURSE] == list(progress.COURSE)


def test_what_the_course_does_without_comes_last():
    """Are the core's exercises those of README's table without `matmul`, and all others optional, in lessons' order?"""
    readme = re.findall(r"`(\w+)\.py`", (ROOT / "README.md").read_text().split("## I am an instructor")[0])
    rows = progress.progress().rows
    core, optional = ([row for row in rows if row.optional is which] for which in (False, True))
    assert rows == core + optional and len(rows) == len(exercises.exercises())
    named = [name for name in readme if name in progress.names() and name != "matmul"]
    assert [row.problem for row in core] == list(dict.fromkeys(named))
    assert [row.problem for row in optional if not row.problem.endswith("_backward")] == [
        "matmul",
        *progress.WITHOUT_LESSON,
    ]
    unset = [row.problem for row in optional if row.where == "optional"]
    assert [name for name in unset if not name.endswith("_backward")] == progress.WITHOUT_LESSON
    optional = [row for row in optional if row.problem.removesuffix("_backward") not in progress.WITHOUT_LESSON]
    assert all(row.where.endswith(", optional") for row in optional)
    for shown, lesson in (("conv2d_backward", 7), ("conv_groupnorm_maxpool_backward", 8)):
        assert next(row.where for row in optional if row.problem == shown) == f"lesson {lesson}, optional"
    for rows in (core, optional):
        numbers = [int(row.where.removesuffix(", optional").split()[-1]) for row in rows]
        assert numbers == sorted(numbers)


def test_an_instructors_own_problem_belongs_to_the_core():
    """Does the course go on without a problem only where it is one of its own?"""
    assert not progress.is_optional("transpose") and not progress.is_optional("transpose_backward")


def test_it_says_what_is_better_since_the_last_look(file):
    progress.note(made(failed="build", reason=Reason.compile_error))
    assert progress.progress().improved == ["conv2d failed at stage build (compile error)"]
    assert progress.progress().improved == []
    progress.note(made(failed="contract", reason=Reason.syntax_error))
    assert progress.progress().improved == []
    progress.note(made())
    assert progress.progress().improved == ["conv2d passed (before: failed at stage build (compile error))"]


def test_it_says_the_next_step(file):
    """Is it the first problem that is not solved: to be begun, or to be fixed?"""
    names = progress.names()
    assert progress.progress().next == "Next: read lesson 1, then fill in kernels_student/conv2d.py."
    progress.note(made(failed="correct", right=1, cases=2))
    message = progress.progress().next
    assert "kernels_student/conv2d.py, which failed at stage correct (wrong values), 1 of 2 cases right" in message
    core = [name for name in names if not progress.is_optional(name)]
    for name in core[:-1]:
        progress.note(made(name))
    assert progress.progress().next.endswith(f"fill in kernels_student/{core[-1]}.py.")
    for name in [core[-1], *names[len(core) : -1]]:
        progress.note(made(name))
    message = f"Every exercise is solved. Next: kernels_student/{names[-1]}.py, which is optional,"
    assert progress.progress().next.startswith(message)
    progress.note(made(names[-1]))
    assert "Every problem is solved" in progress.progress().next


def test_a_notebook_shows_the_same_words_as_the_plain_text(file):
    """Does the HTML hold each word of the plain text in the same order, and no colour of its own?"""
    progress.note(made(failed="correct", right=1, cases=2))
    bundle = progress.progress()._repr_mimebundle_()
    page = re.sub(r"<[^>]+>", " ", bundle["text/html"]).replace("&quot;", '"')
    assert page.split() == bundle["text/plain"].split()
    assert not re.search(r"color|background|#[0-9a-f]{3}", bundle["text/html"])


def test_it_is_called_as_function_and_as_module(file):
    """Does grader.progress() work before and after somebody imported the module?"""
    code = (
        "import grader; print(grader.progress().rows[0].problem);"
        "from grader.reports import progress; progress.note; print(grader.progress().rows[0].problem)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "conv2d\nconv2d\n", done.stderr


# --- the command ------------------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(main.cli, ["progress", *arguments])


def test_the_command_prints_the_table(file):
    progress.note(made())
    result = run()
    assert result.exit_code == 0 and result.stderr == ""
    assert (
        re.search(r"conv2d +lesson 1 +passed", result.stdout)
        and f"1 of {len(CORE)} exercises solved, and 0 of {len(progress.names()) - len(CORE)} optional ones."
        in result.stdout
    )


def test_a_file_that_cannot_be_used_is_3_and_one_sentence(tmp_path, monkeypatch):
    for bad in (tmp_path, Path("/dev/null")):
        monkeypatch.setenv("GRADER_PROGRESS", str(bad))
        result = run()
        assert result.exit_code == statuses.CANNOT and result.stdout == ""
        assert " ".join(result.stderr.split()) == f"Your progress cannot be kept in {bad}: it is not an ordinary file."
    assert Path("/dev/null").is_char_device()


def test_a_damaged_file_is_3_and_the_table_is_shown(file):
    file.parent.mkdir()
    file.write_text("{")
    result = run()
    assert (
        result.exit_code == statuses.CANNOT and "was damaged" in result.stdout and f"0 of {len(CORE)}" in result.stdout
    )
    assert run().exit_code == 0


def test_wrong_usage_is_2():
    assert run("conv2d").exit_code == statuses.USAGE


def test_grade_keeps_what_it_says(file, tmp_path, monkeypatch):
    """Does `grader grade` record an exercise, and not one whose problem or sizes were given?"""
    monkeypatch.setattr(exercises, "KERNELS_STUDENT", tmp_path / "kernels_student")
    exercise = tmp_path / "kernels_student" / "conv2d.py"
    exercise.parent.mkdir()
    exercise.write_text("class ModelNew(:\n")
    problem = ROOT / "kernels_ref" / "conv2d" / "model.py"
    for extra in (["--problem", str(problem)], ["--set", "batch_size=1"]):
        CliRunner().invoke(main.cli, ["grade", str(exercise), *extra])
        assert not file.exists()
    CliRunner().invoke(main.cli, ["grade", str(exercise)])
    assert best()["conv2d"] == "failed at stage contract (syntax error)"


@pytest.mark.parametrize("columns", [60, 70, 80, 100])
def test_names_stay_whole_in_a_narrow_terminal(file, columns):
    """Has each problem's name a line with it as one word, and is no line longer than the terminal?"""
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(main.cli, ["progress"])
    lines = result.output.splitlines()
    assert {line.split()[0] for line in lines if line.strip()} >= set(progress.names())
    table = lines[: next(number for number, line in enumerate(lines) if not line.strip())]
    assert max(map(len, table)) <= columns and not any("optio " in line for line in table)


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 160])
def test_a_result_is_read_in_lines_at_any_width(file, columns):
    """Does each result stand in at most three lines below its problem's name, with no word cut?"""
    longest = progress.Mark(
        outcome=Outcome.failed,
        when="2026-03-04T10:00:00+00:00",
        sha256="a",
        stage=StageName.gradient,
        reason=Reason.nondeterministic_gradient,
        right=11,
        cases=14,
    )
    tried = {name: progress.Entry(best=longest, last=longest, tries=120) for name in progress.names()[:-1]}
    file.parent.mkdir()
    file.write_bytes(msgspec.json.encode(progress.State(problems=tried)))
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(main.cli, ["progress"])
    lines = result.output.splitlines()
    lines = lines[: next(number for number, line in enumerate(lines) if not line.strip())]
    starts = [number for number, line in enumerate(lines) if line.split()[0] in progress.names()]
    assert len(starts) == len(progress.names()) and max(map(len, lines)) <= columns
    for name, begin, end in zip(progress.names(), starts, [*starts[1:], len(lines)]):
        words = " ".join(" ".join(lines[begin:end]).split())
        if name in tried:
            assert f"{longest}" in words and "120" in words and "2026-03-04" in words
            assert end - begin <= {160: 1, 40: 5}.get(columns, 3)
        else:
            assert "not tried yet" in words and end - begin <= 2
