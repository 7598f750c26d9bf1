"""Are the students' files written and checked, and is no work of a student's lost?"""

import re

import pytest
from click.testing import CliRunner

from grader.authoring import handout as writer
from grader.cli.main import cli
from grader.problems import exercises
from tests.grader.problems.double_it import MADE, SOLUTION, make_handout, make_house  # noqa: F401


def test_writing_then_checking_finds_no_drift(house):
    """Does check_all accept what write_all wrote, and write_all find nothing more to do?"""
    assert writer.check_all() == [
        "kernels_student/double_it.py is missing.",
        "kernels_ref/skeletons.toml is not what the solutions make.",
    ]
    written, kept = writer.write_all()
    assert [path.name for path in written] == ["double_it.py", "skeletons.toml"] and kept == []
    assert writer.check_all() == [] and writer.write_all() == ([], [])


def test_drift_is_found_and_fixed(house):
    """Is a changed solution found, and the untouched student file rebuilt?"""
    writer.write_all()
    (house / "kernels_ref" / "double_it" / "solution.py").write_text(SOLUTION.replace("int n", "long n"))
    drifts = [
        "kernels_student/double_it.py is not what kernels_ref/double_it/solution.py makes.",
        "kernels_ref/skeletons.toml is not what the solutions make.",
    ]
    assert writer.check_all() == drifts
    assert [path.name for path in writer.write_all()[0]] == ["double_it.py", "skeletons.toml"]
    assert writer.check_all() == []


def test_a_students_work_is_never_overwritten(house):
    """Is a file that somebody has worked on kept as it is?"""
    writer.write_all()
    path = house / "kernels_student" / "double_it.py"
    path.write_text(MADE.replace("int n) {", "int n) { y[0] = 1;"))
    (house / "kernels_ref" / "double_it" / "solution.py").write_text(SOLUTION.replace("int n", "long n"))
    written, kept = writer.write_all()
    assert path not in written and kept == [path] and "y[0] = 1" in path.read_text()


def test_work_that_is_not_utf8_is_kept(house):
    """Is a file in another encoding drift to a check, and somebody's work to who writes?"""
    writer.write_all()
    path = house / "kernels_student" / "double_it.py"
    path.write_bytes(MADE.replace("int n) {", "int n) { y[0] = 'ü';").encode("latin-1"))
    assert writer.check_all() == ["kernels_student/double_it.py is not what kernels_ref/double_it/solution.py makes."]
    assert writer.write_all() == ([], [path]) and "'ü'" in path.read_text(encoding="latin-1")


def test_a_byte_order_mark_is_no_harm(house):
    """Does a solution that an editor began with a byte order mark make the same file, and does it not count as work?"""
    (house / "kernels_ref" / "double_it" / "solution.py").write_bytes(b"\xef\xbb\xbf" + SOLUTION.encode())
    writer.write_all()
    assert (house / "kernels_student" / "double_it.py").read_text() == MADE and exercises.is_untouched(
        MADE, "double_it"
    )


UNFIT = {
    "not UTF-8": (
        SOLUTION.replace("2 * x", "2 * ü", 1).encode("latin-1"),
        "line 3 is not UTF-8 text: save the file as UTF-8.",
    ),
    "not Python": (SOLUTION.encode() + b"def\n", "Python cannot parse line 24 (invalid syntax)."),
    "no mark": (
        re.sub(r" *(//|#) (>>>|<<<).*\n", "", SOLUTION).encode(),
        "nothing in it is marked, so that no exercise can be made.",
    ),
}


@pytest.mark.parametrize("way", UNFIT)
def test_a_solution_that_makes_no_exercise_is_refused(house, way):
    """Does its author get one sentence and status 2, and is a student's file graded all the same?"""
    text, message = UNFIT[way]
    writer.write_all()
    (house / "kernels_ref" / "double_it" / "solution.py").write_bytes(text)
    for command in (["student"], ["student", "--check"]):
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == 2 and f"Error: kernels_ref/double_it/solution.py: {message}" in done.output
    assert exercises.is_untouched(MADE, "double_it") and not exercises.is_untouched(SOLUTION, "double_it")
    assert not exercises.is_untouched("x = 1\n", "double_it")
    assert exercises.given_lines(MADE, "double_it") <= set(range(99))


def test_a_student_file_without_a_solution_is_reported(house):
    """Is a file left behind by a removed problem found?"""
    writer.write_all()
    (house / "kernels_student" / "old.py").write_text("x = 1\n")
    assert writer.check_all() == ["kernels_student/old.py has no kernels_ref/old/solution.py."]


def test_a_handout_has_every_exercise(handout):
    """Are all exercises known without their solutions, and still when `grader student` ran there or a file is gone?"""
    assert exercises.exercises() == ["double_it", "double_it_backward"]
    assert writer.write_all() == ([], []) and exercises.exercises() == ["double_it", "double_it_backward"]
    (handout / "kernels_student" / "double_it_backward.py").unlink()
    assert exercises.exercises() == ["double_it", "double_it_backward"]


@pytest.mark.parametrize("name", ["double_it", "double_it_backward"])
def test_a_handouts_stub_is_untouched_without_its_stamp(handout, name):
    """Is a stub whose last line was deleted distinguished from one with a student's work, and does it
    not prevent a check?
    """
    text = exercises.STAMP.sub("", (handout / "kernels_student" / f"{name}.py").read_text())
    assert exercises.is_untouched(text, name) and not exercises.is_untouched(text.replace("int n)", "long n)"), name)
    assert exercises.given_lines(text, name) == set()


@pytest.mark.parametrize("damaged", [b"double_it = ", b"double_it = \xff", b"\xfe\x00"])
def test_a_damaged_list_of_skeletons_is_no_trouble(handout, damaged):
    """Does a copy whose skeletons.toml cannot be read know its problems all the same?"""
    (handout / "kernels_ref" / "skeletons.toml").write_bytes(damaged)
    assert exercises.exercises() == ["double_it"] and not exercises.is_untouched("x = 1\n", "double_it")
