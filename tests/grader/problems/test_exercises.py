"""Is a file with a student's work distinguished from the file that was handed out?"""

import re

import pytest

from grader.problems import exercises
from tests.grader.problems.double_it import MADE, SOLUTION, make_house  # noqa: F401

UNTOUCHED = {
    "as made": lambda s: s,
    "without its comments": lambda s: re.sub(r"^ *(//|# YOUR|# Made).*\n", "", s, flags=re.MULTILINE),
    "with a comment in CUDA": lambda s: s.replace("int n) {", "int n) {  /* my\n notes */"),
    "with other spaces in CUDA": lambda s: s.replace("const float* x, float* y", "const float  *x,\n    float *y"),
    "with other spaces in Python": lambda s: s.replace("def forward(self, x):", "def forward( self,x ):\n"),
    "with another docstring": lambda s: s.replace("one thread an element.", "mine."),
}


TOUCHED = {
    "a line of CUDA": lambda s: s.replace("int n) {", "int n) { int i = 0;"),
    "a literal in a CUDA string": lambda s: s.replace("int n) {", 'int n) { printf("// not a comment"); '),
    "a line of Python": lambda s: s.replace("raise NotImplementedError", "return x or NotImplementedError"),
    "a renamed function": lambda s: s.replace("double_it(const", "doubled(const"),
    "a file that does not parse": lambda s: s + "\ndef (:\n",
    "the solution": lambda s: SOLUTION,
    "an empty file": lambda s: "",
}


@pytest.mark.parametrize("change", UNTOUCHED)
def test_a_file_without_work_in_it_is_untouched(house, change):
    """Is the skeleton recognised whatever happened to its comments, docstrings and spaces?"""
    assert exercises.is_untouched(UNTOUCHED[change](MADE), "double_it")


@pytest.mark.parametrize("change", TOUCHED)
def test_a_file_with_work_in_it_is_not(house, change):
    """Does any change of the code count as an attempt?"""
    assert not exercises.is_untouched(TOUCHED[change](MADE), "double_it")


def test_a_skeleton_of_an_older_solution_is_untouched(house):
    """Is last year's skeleton known by its stamp, and no longer once it was worked on?"""
    older = exercises.skeleton(SOLUTION.replace("2 * x", "x + x").replace("int n)", "long n)"), "double_it")
    assert exercises.is_untouched(older, "double_it")
    assert not exercises.is_untouched(older.replace("long n) {", "long n) { y[0] = 1;"), "double_it")


DEEP = {
    "a sum": "x = " + "+".join(["1"] * 900) + "\n",
    "a long elif": "if x == 0: pass\n" + "".join(f"elif x == {n}: pass\n" for n in range(400)),
    "too deep to parse": "x = " + "-" * 100_000 + "1\n",
}


@pytest.mark.parametrize("way", DEEP)
def test_deep_code_is_work(house, way):
    """Is a file that is deeper than Python's own calls may go distinguished from the skeleton, without a crash?"""
    assert not exercises.is_untouched(MADE + DEEP[way], "double_it")


def test_an_unknown_problem_is_never_untouched(house):
    """Is a file for a problem without a solution judged, not passed over?"""
    assert not exercises.is_untouched("x = 1\n", "nothing")


@pytest.mark.parametrize("name", [name for name in exercises.exercises() if exercises.source_of(name).is_file()])
def test_every_solution_makes_an_exercise(name):
    """Does each exercise of the course have a skeleton that parses, is untouched, and lacks part of its solution?"""
    solution = exercises.source_of(name).read_text()
    made = exercises.skeleton(solution, name)
    assert (
        (exercises.MARK in made or "defects are in this file" in made) and "<<<\n" not in made and "// >>>" not in made
    )
    assert exercises.is_untouched(made, name) and not exercises.is_untouched(solution, name)
    assert exercises.skeleton(made, name) == made


def test_given_lines():
    """Are the stub's lines found, but not those that a student wrote, and none in a file not made from the stub?"""
    stub = exercises.skeleton(exercises.source_of("logsumexp").read_text(encoding="utf-8"), "logsumexp")
    lines = stub.splitlines()
    at = next(n for n, line in enumerate(lines) if exercises.MARK in line)
    text = "\n".join([*lines[: at + 1], "    float mine = 0.0f;  // written here", *lines[at + 1 :]])
    given = exercises.given_lines(text, "logsumexp")
    assert at + 2 not in given and {n for n, line in enumerate(lines[:at], 1) if line.strip()} <= given
    assert exercises.given_lines("import torch\n\nclass ModelNew: pass\n", "logsumexp") == set()
    assert exercises.given_lines(text, "nothing_of_ours") == set()


def hand_in(problem: str, *changes: tuple[str, str]) -> str:
    """Return the solution of a problem with parts of its text replaced."""
    text = exercises.source_of(problem).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def test_a_line_that_was_moved_is_not_given():
    """Is a return of the exercise the student's own where it stands above the barriers, not below them?"""
    late, early = "    if (!exists) return;\n", "    const int end = causal"
    moved = hand_in("attention", (late, ""), (early, late + early))
    at = moved.split("\n").index(late.rstrip()) + 1
    assert at not in exercises.given_lines(moved, "attention")
    assert at - 1 in exercises.given_lines(moved, "attention") and at + 1 in exercises.given_lines(moved, "attention")


def test_barriers_of_the_exercise_that_were_deleted_are_found():
    """Is a deleted barrier found, with the line after which it belongs, and none where all are there?"""
    first, second = (
        "        __syncthreads();  // all are done with the tile before\n",
        "        __syncthreads();\n        // >>>",
    )
    for deleted, kept, above in ((first, "", "const int count ="), (second, "        // >>>", "        }")):
        text = hand_in("attention", (deleted, kept))
        (line, barrier), *others = exercises.find_missing_barriers(text, "attention")
        assert text.split("\n")[line - 1].startswith("        ") and above in text.split("\n")[line - 1]
        assert barrier == "__syncthreads();" and not others
    moved = hand_in(
        "attention", (second, "        // >>>"), ("const int seen", "__syncthreads();\n        const int seen")
    )
    assert exercises.find_missing_barriers(moved, "attention") == []
    assert exercises.find_missing_barriers(hand_in("attention"), "attention") == []


def test_the_bindings_of_a_problems_exercises_are_those_that_are_handed_out(tmp_path):
    """Both of them, forward and backward, and none for a problem that is not of the course?"""
    found = exercises.read_given_bindings(exercises.KERNELS_REF / "groupnorm" / "model.py")
    assert [one.functions[0] for one in found] == ["groupnorm_forward"] * 2
    assert found[0].functions == ("groupnorm_forward",) and "gradient_of_x" in found[1].functions
    (tmp_path / "model.py").write_text("x = 1\n")
    assert exercises.read_given_bindings(tmp_path / "model.py") == exercises.read_given_bindings(None) == []
