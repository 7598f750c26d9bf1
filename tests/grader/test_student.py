"""Is a student's file made from its solution as it should be, and told from a file somebody has worked on?"""

import ast
import re

import pytest
from click.testing import CliRunner

from grader import student
from grader.cli import cli

SOLUTION = '''"""double_it: one thread an element.

y[i] = 2 * x[i]
"""

import torch
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void double_it(const float* x, float* y, int n) {
    // >>> exercise: find this thread's element; double it (about 2 lines)
    const int i = blockIdx.x * blockDim.x + threadIdx.x;  // one thread an element
    if (i < n) y[i] = 2 * x[i];
    // <<<
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        # >>> exercise: launch the kernel (about 1 line)
        return kernels.double_it(x)
        # <<<
'''
MADE = student.skeleton(SOLUTION, "double_it")


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A kernels_ref with one solution and an empty kernels_student, in place of the real ones."""
    monkeypatch.setattr(student, "KERNELS_REF", tmp_path / "kernels_ref")
    monkeypatch.setattr(student, "KERNELS_STUDENT", tmp_path / "kernels_student")
    (tmp_path / "kernels_ref" / "double_it").mkdir(parents=True)
    (tmp_path / "kernels_ref" / "double_it" / "solution.py").write_text(SOLUTION)
    return tmp_path


def test_sections_become_their_hints():
    """Is each section's body gone and its hint there, in the comment style of its language?"""
    assert "    // YOUR CODE HERE: find this thread's element; double it (about 2 lines)\n}" in MADE
    assert "        # YOUR CODE HERE: launch the kernel (about 1 line)\n" in MADE
    for gone in ("blockIdx", "kernels.double_it(x)", ">>>", "<<<"):
        assert gone not in MADE


def test_the_skeleton_is_python_that_names_what_is_missing():
    """Does the file still parse, and does running an emptied Python section say what to do?"""
    module = ast.parse(MADE)
    assert "raise NotImplementedError('launch the kernel (about 1 line)')" in ast.unparse(module)


def test_the_head_says_what_to_do_and_how_to_grade_it():
    """Does the docstring keep the specification and add the task and the command?"""
    head = ast.get_docstring(ast.parse(MADE))
    assert head.startswith("double_it: one thread an element.\n\ny[i] = 2 * x[i]")
    assert "fill in the 2 places marked YOUR CODE HERE" in head
    assert "  1. find this thread's element; double it (about 2 lines)\n  2. launch the kernel" in head
    assert "grader grade kernels_student/double_it.py" in head


def test_a_skeletons_skeleton_is_itself():
    """Is making a skeleton of a skeleton no change?"""
    assert student.skeleton(MADE, "double_it") == MADE


def test_everything_outside_the_sections_is_kept():
    """Are all other lines of the solution in the skeleton, in order?"""
    inside = re.compile(r"^ *(//|#) >>>.*?<<<\n", re.DOTALL | re.MULTILINE)
    rest = inside.sub("", SOLUTION).split('"""\n', 1)[1].splitlines()
    made = iter(MADE.splitlines())
    assert all(any(line == other for other in made) for line in rest)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (SOLUTION.replace("    // <<<\n", ""), "line 20 opens an exercise inside the one opened at line 11"),
        (SOLUTION.replace("        # <<<\n", ""), "opened at line 21 is never closed"),
        (SOLUTION.replace("    // >>> exercise: find this thread's element; double it (about 2 lines)\n", ""), "line 13 closes"),
        (SOLUTION.replace(": launch the kernel (about 1 line)", ":"), "line 21 has no hint"),
        (SOLUTION.replace("// >>> exercise: find", "/* >>> exercise: find"), "line 11 marks no exercise. In the CUDA source `// >>> exercise: HINT` does"),
        (SOLUTION.replace("    // >>> exercise: find", "    int i;  // >>> exercise: find"), "line 11 marks no exercise"),
        (SOLUTION.replace("// >>> exercise: find", "# >>> exercise: find"), "line 11 marks no exercise. In the CUDA source `//"),
        (SOLUTION.replace("# >>> exercise: launch", "# >>> Exercise, launch"), "line 21 marks no exercise. In Python `# >>> exercise: HINT` does"),
        (SOLUTION.replace("# >>> exercise: launch", "# >>> defect: launch"), "line 21 marks no defect. `// >>> defect: WHAT IS WRONG` does, as a line of the CUDA"),
        (SOLUTION.replace("import torch\n", "import torch as\n"), "Python cannot parse line 6"),
        (SOLUTION.replace("import torch\n", "import torch; x = '\0'\n"), "Python cannot parse it (source code string cannot contain null bytes)"),
        (SOLUTION.replace("return kernels.double_it(x)\n        # <<<\n", "if True:\n            pass\n        # <<<\n            x = 1\n"), "without its exercises the file does not parse"),
    ],
)
def test_wrong_markers_are_refused(broken, says):
    """Is a section that is not closed, nested, not opened or without a hint named with its line?"""
    with pytest.raises(student.ExerciseError) as caught:
        student.skeleton(broken, "double_it")
    assert says in str(caught.value)


def test_a_mark_in_the_head_is_a_text():
    """Is a mark that the head docstring shows no place, whatever stands before it, and is it kept?"""
    told = SOLUTION.replace("y[i] = 2 * x[i]\n", "y[i] = 2 * x[i]\n// >>> exercise: as this shows\n// <<<\n", 1)
    made = student.skeleton("# ours\n" + told, "double_it")
    head = ast.get_docstring(ast.parse(made))
    assert "\n// >>> exercise: as this shows\n// <<<\n" in head and "fill in the 2 places" in head
    assert made.count(student.MARK + ":") == 2 and "# ours\n" in made
    alone = '"""Of double_it.\n\n// >>> exercise: nothing\n// <<<\n"""\n\nimport torch\n'
    assert student.skeleton(alone, "double_it") == alone


# A solution whose exercise is handed out broken.
DEFECTIVE = SOLUTION.replace(
    "    // >>> exercise: find this thread's element; double it (about 2 lines)\n", "    // >>> defect: the last block has threads to spare\n"
).replace("    if (i < n) y[i] = 2 * x[i];\n", "    if (i < n) y[i] = 2 * x[i];\n    // ---\n    // y[blockIdx.x * blockDim.x + threadIdx.x] = 2 * x[0];  // no\n")


def test_a_defect_takes_the_place_of_the_right_lines():
    """Are the spoilt lines there as code and the right ones gone, with no mark of either, and does the head say how many?"""
    made = student.skeleton(DEFECTIVE, "double_it")
    assert "int n) {\n    y[blockIdx.x * blockDim.x + threadIdx.x] = 2 * x[0];  // no\n}" in made
    for gone in ("if (i < n)", "const int i", "defect:", "// ---", "<<<\n", "threads to spare"):
        assert gone not in made
    head = ast.get_docstring(ast.parse(made))
    assert "1 defect is in this file, unmarked. Find and mend it; fill in the one place marked YOUR CODE HERE" in head
    assert max(map(len, head.splitlines())) <= 112 and "so that ModelNew computes what Model in" in " ".join(head.split())
    assert student.skeleton(made, "double_it") == made


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (DEFECTIVE.replace("    // ---\n", ""), "has no `// ---`"),
        (DEFECTIVE.replace(": launch the kernel (about 1 line)", ":"), "the exercise at line 23 has no hint"),
        (DEFECTIVE.replace("        # <<<\n", ""), "the exercise opened at line 23 is never closed; a line `# <<<` does that"),
        (DEFECTIVE.replace("    // <<<\n}", "}"), "opens an exercise inside the defect opened at line 11"),
        (DEFECTIVE.replace("    // <<<\n}", "}").split("class ModelNew")[0], "the defect opened at line 11 is never closed"),
        (DEFECTIVE.replace(": the last block has threads to spare", ":"), "line 11 opens a defect and does not say what is wrong"),
        (DEFECTIVE.replace("    // ---\n", "    // >>> defect: another\n    // ---\n"), "line 14 opens a defect inside the one opened at line 11"),
    ],
)
def test_wrong_defects_are_refused(broken, says):
    """Is a defect without its spoilt lines, without an end, without words, or inside another named with its line?"""
    with pytest.raises(student.ExerciseError) as caught:
        student.skeleton(broken, "double_it")
    assert says in str(caught.value)


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
    assert student.is_untouched(UNTOUCHED[change](MADE), "double_it")


@pytest.mark.parametrize("change", TOUCHED)
def test_a_file_with_work_in_it_is_not(house, change):
    """Does any change of the code count as an attempt?"""
    assert not student.is_untouched(TOUCHED[change](MADE), "double_it")


def test_a_skeleton_of_an_older_solution_is_untouched(house):
    """Is last year's skeleton known by its stamp, and no longer once it was worked on?"""
    older = student.skeleton(SOLUTION.replace("2 * x", "x + x").replace("int n)", "long n)"), "double_it")
    assert student.is_untouched(older, "double_it")
    assert not student.is_untouched(older.replace("long n) {", "long n) { y[0] = 1;"), "double_it")


def test_stamps_are_the_same_on_every_version_of_python():
    """Stamps are written on one version and read on another."""
    source = '''"""A head."""\n\nimport torch\n\ncuda = r"""int f();"""\n\n\nclass A:\n    def f(self, a, *, b=2):\n        """Doc."""\n        return [x for x in f"{a}"] or None\n'''
    assert student.fingerprint(source) == "9cf84225784d"


DEEP = {
    "a sum": "x = " + "+".join(["1"] * 900) + "\n",
    "a long elif": "if x == 0: pass\n" + "".join(f"elif x == {n}: pass\n" for n in range(400)),
    "too deep to parse": "x = " + "-" * 100_000 + "1\n",
}


@pytest.mark.parametrize("way", DEEP)
def test_deep_code_is_work(house, way):
    """Is a file that is deeper than Python's own calls may go told from the skeleton, without a crash?"""
    assert not student.is_untouched(MADE + DEEP[way], "double_it")


def test_an_unknown_problem_is_never_untouched(house):
    """Is a file for a problem without a solution judged, not passed over?"""
    assert not student.is_untouched("x = 1\n", "nothing")


def test_writing_then_checking_finds_no_drift(house):
    """Does check_all accept what write_all wrote, and write_all find nothing more to do?"""
    assert student.check_all() == ["kernels_student/double_it.py is missing.", "kernels_ref/skeletons.toml is not what the solutions make."]
    written, kept = student.write_all()
    assert [path.name for path in written] == ["double_it.py", "skeletons.toml"] and kept == []
    assert student.check_all() == [] and student.write_all() == ([], [])


def test_drift_is_found_and_mended(house):
    """Is a changed solution seen, and the untouched student file made anew?"""
    student.write_all()
    (house / "kernels_ref" / "double_it" / "solution.py").write_text(SOLUTION.replace("int n", "long n"))
    told = ["kernels_student/double_it.py is not what kernels_ref/double_it/solution.py makes.", "kernels_ref/skeletons.toml is not what the solutions make."]
    assert student.check_all() == told
    assert [path.name for path in student.write_all()[0]] == ["double_it.py", "skeletons.toml"]
    assert student.check_all() == []


def test_a_students_work_is_never_overwritten(house):
    """Is a file that somebody has worked on kept as it is?"""
    student.write_all()
    path = house / "kernels_student" / "double_it.py"
    path.write_text(MADE.replace("int n) {", "int n) { y[0] = 1;"))
    (house / "kernels_ref" / "double_it" / "solution.py").write_text(SOLUTION.replace("int n", "long n"))
    written, kept = student.write_all()
    assert path not in written and kept == [path] and "y[0] = 1" in path.read_text()


def test_work_that_is_not_utf8_is_kept(house):
    """Is a file in another encoding drift to a check, and somebody's work to who writes?"""
    student.write_all()
    path = house / "kernels_student" / "double_it.py"
    path.write_bytes(MADE.replace("int n) {", "int n) { y[0] = 'ü';").encode("latin-1"))
    assert student.check_all() == ["kernels_student/double_it.py is not what kernels_ref/double_it/solution.py makes."]
    assert student.write_all() == ([], [path]) and "'ü'" in path.read_text(encoding="latin-1")


def test_a_byte_order_mark_is_no_harm(house):
    """Does a solution that an editor began with a byte order mark make the same file, and is that told from work?"""
    (house / "kernels_ref" / "double_it" / "solution.py").write_bytes(b"\xef\xbb\xbf" + SOLUTION.encode())
    student.write_all()
    assert (house / "kernels_student" / "double_it.py").read_text() == MADE and student.is_untouched(MADE, "double_it")


UNFIT = {
    "not UTF-8": (SOLUTION.replace("2 * x", "2 * ü", 1).encode("latin-1"), "line 3 is not UTF-8 text: save the file as UTF-8."),
    "not Python": (SOLUTION.encode() + b"def\n", "Python cannot parse line 24 (invalid syntax)."),
    "no mark": (re.sub(r" *(//|#) (>>>|<<<).*\n", "", SOLUTION).encode(), "nothing in it is marked, so that no exercise can be made."),
}


@pytest.mark.parametrize("way", UNFIT)
def test_a_solution_that_makes_no_exercise_is_refused(house, way):
    """Is its author told in one sentence with status 2, and is a student's file graded all the same?"""
    text, said = UNFIT[way]
    student.write_all()
    (house / "kernels_ref" / "double_it" / "solution.py").write_bytes(text)
    for command in (["student"], ["student", "--check"]):
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == 2 and f"Error: kernels_ref/double_it/solution.py: {said}" in done.output
    assert student.is_untouched(MADE, "double_it") and not student.is_untouched(SOLUTION, "double_it")
    assert not student.is_untouched("x = 1\n", "double_it")
    assert student.given_lines(MADE, "double_it") <= set(range(99))


def test_a_student_file_without_a_solution_is_told(house):
    """Is a file left behind by a removed problem found?"""
    student.write_all()
    (house / "kernels_student" / "old.py").write_text("x = 1\n")
    assert student.check_all() == ["kernels_student/old.py has no kernels_ref/old/solution.py."]


@pytest.fixture
def handout(house):
    """The same as it is handed out: with an exercise for gradients, and without the solutions."""
    folder = house / "kernels_ref" / "double_it"
    (folder / "model.py").write_text("")
    (folder / "backward.py").write_text(SOLUTION.replace("2 * x[i]", "x[i] / 2"))
    student.write_all()
    for name in ("solution.py", "backward.py"):
        (folder / name).unlink()
    return house


def test_a_handout_has_every_exercise(handout):
    """Are all exercises known without their solutions, and still when `grader student` ran there or a file is gone?"""
    assert student.exercises() == ["double_it", "double_it_backward"]
    assert student.write_all() == ([], []) and student.exercises() == ["double_it", "double_it_backward"]
    (handout / "kernels_student" / "double_it_backward.py").unlink()
    assert student.exercises() == ["double_it", "double_it_backward"]


@pytest.mark.parametrize("name", ["double_it", "double_it_backward"])
def test_a_handouts_stub_is_untouched_without_its_stamp(handout, name):
    """Is a stub whose last line was deleted told from one that somebody has worked on, and are its lines no obstacle to a check?"""
    text = student.STAMP.sub("", (handout / "kernels_student" / f"{name}.py").read_text())
    assert student.is_untouched(text, name) and not student.is_untouched(text.replace("int n)", "long n)"), name)
    assert student.given_lines(text, name) == set()


@pytest.mark.parametrize("damaged", [b"double_it = ", b"double_it = \xff", b"\xfe\x00"])
def test_a_damaged_list_of_skeletons_is_no_trouble(handout, damaged):
    """Does a copy whose skeletons.toml cannot be read know its problems all the same?"""
    (handout / "kernels_ref" / "skeletons.toml").write_bytes(damaged)
    assert student.exercises() == ["double_it"] and not student.is_untouched("x = 1\n", "double_it")


@pytest.mark.parametrize("name", [name for name in student.exercises() if student.source_of(name).is_file()])
def test_every_solution_makes_an_exercise(name):
    """Does each exercise of the course have a skeleton that parses, is untouched, and lacks part of its solution?"""
    solution = student.source_of(name).read_text()
    made = student.skeleton(solution, name)
    assert (student.MARK in made or "defects are in this file" in made) and "<<<\n" not in made and "// >>>" not in made
    assert student.is_untouched(made, name) and not student.is_untouched(solution, name)
    assert student.skeleton(made, name) == made


def test_given_lines():
    """Are the stub's lines told from those that a student wrote, and none of a file that was not made from the stub?"""
    stub = student.skeleton(student.source_of("logsumexp").read_text(encoding="utf-8"), "logsumexp")
    lines = stub.splitlines()
    at = next(n for n, line in enumerate(lines) if student.MARK in line)
    text = "\n".join([*lines[: at + 1], "    float mine = 0.0f;  // written here", *lines[at + 1 :]])
    given = student.given_lines(text, "logsumexp")
    assert at + 2 not in given and {n for n, line in enumerate(lines[:at], 1) if line.strip()} <= given
    assert student.given_lines("import torch\n\nclass ModelNew: pass\n", "logsumexp") == set()
    assert student.given_lines(text, "nothing_of_ours") == set()
