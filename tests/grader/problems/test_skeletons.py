"""Is a student's file made from its solution as it should be?"""

import ast
import re

import pytest

from grader.problems import skeletons
from tests.grader.problems.double_it import MADE, SOLUTION


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
    assert head is not None
    assert head.startswith("double_it: one thread an element.\n\ny[i] = 2 * x[i]")
    assert "fill in the 2 places marked YOUR CODE HERE" in head
    assert "  1. find this thread's element; double it (about 2 lines)\n  2. launch the kernel" in head
    assert "grader grade kernels_student/double_it.py" in head


def test_a_skeletons_skeleton_is_itself():
    """Is making a skeleton of a skeleton no change?"""
    assert skeletons.skeleton(MADE, "double_it") == MADE


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
        (
            SOLUTION.replace("    // >>> exercise: find this thread's element; double it (about 2 lines)\n", ""),
            "line 13 closes",
        ),
        (SOLUTION.replace(": launch the kernel (about 1 line)", ":"), "line 21 has no hint"),
        (
            SOLUTION.replace("// >>> exercise: find", "/* >>> exercise: find"),
            "line 11 marks no exercise. In the CUDA source `// >>> exercise: HINT` does",
        ),
        (
            SOLUTION.replace("    // >>> exercise: find", "    int i;  // >>> exercise: find"),
            "line 11 marks no exercise",
        ),
        (
            SOLUTION.replace("// >>> exercise: find", "# >>> exercise: find"),
            "line 11 marks no exercise. In the CUDA source `//",
        ),
        (
            SOLUTION.replace("# >>> exercise: launch", "# >>> Exercise, launch"),
            "line 21 marks no exercise. In Python `# >>> exercise: HINT` does",
        ),
        (
            SOLUTION.replace("# >>> exercise: launch", "# >>> defect: launch"),
            "line 21 marks no defect. `// >>> defect: WHAT IS WRONG` does, as a line of the CUDA",
        ),
        (SOLUTION.replace("import torch\n", "import torch as\n"), "Python cannot parse line 6"),
        (
            SOLUTION.replace("import torch\n", "import torch; x = '\0'\n"),
            "Python cannot parse it (source code string cannot contain null bytes)",
        ),
        (
            SOLUTION.replace(
                "return kernels.double_it(x)\n        # <<<\n",
                "if True:\n            pass\n        # <<<\n            x = 1\n",
            ),
            "without its exercises the file does not parse",
        ),
    ],
)
def test_wrong_markers_are_refused(broken, says):
    """Is a section that is not closed, nested, not opened or without a hint named with its line?"""
    with pytest.raises(skeletons.ExerciseError) as caught:
        skeletons.skeleton(broken, "double_it")
    assert says in str(caught.value)


def test_a_mark_in_the_head_is_a_text():
    """Is a mark that the head docstring shows no place, whatever precedes it, and is it kept?"""
    example = SOLUTION.replace("y[i] = 2 * x[i]\n", "y[i] = 2 * x[i]\n// >>> exercise: as this shows\n// <<<\n", 1)
    made = skeletons.skeleton("# ours\n" + example, "double_it")
    head = ast.get_docstring(ast.parse(made))
    assert head is not None
    assert "\n// >>> exercise: as this shows\n// <<<\n" in head and "fill in the 2 places" in head
    assert made.count(skeletons.MARK + ":") == 2 and "# ours\n" in made
    alone = '"""Of double_it.\n\n// >>> exercise: nothing\n// <<<\n"""\n\nimport torch\n'
    assert skeletons.skeleton(alone, "double_it") == alone


# A solution whose exercise is handed out broken.
DEFECTIVE = SOLUTION.replace(
    "    // >>> exercise: find this thread's element; double it (about 2 lines)\n",
    "    // >>> defect: the last block has threads to spare\n",
).replace(
    "    if (i < n) y[i] = 2 * x[i];\n",
    "    if (i < n) y[i] = 2 * x[i];\n    // ---\n    // y[blockIdx.x * blockDim.x + threadIdx.x] = 2 * x[0];  // no\n",
)


def test_a_defect_takes_the_place_of_the_right_lines():
    """Are the spoilt lines there as code and the right ones gone, with no mark of either, and does the head say how
    many?
    """
    made = skeletons.skeleton(DEFECTIVE, "double_it")
    assert "int n) {\n    y[blockIdx.x * blockDim.x + threadIdx.x] = 2 * x[0];  // no\n}" in made
    for gone in ("if (i < n)", "const int i", "defect:", "// ---", "<<<\n", "threads to spare"):
        assert gone not in made
    head = ast.get_docstring(ast.parse(made))
    assert head is not None
    assert "1 defect is in this file, unmarked. Find and fix it; fill in the one place marked YOUR CODE HERE" in head
    assert max(map(len, head.splitlines())) <= 112 and "so that ModelNew computes what Model in" in " ".join(
        head.split()
    )
    assert skeletons.skeleton(made, "double_it") == made


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (DEFECTIVE.replace("    // ---\n", ""), "has no `// ---`"),
        (DEFECTIVE.replace(": launch the kernel (about 1 line)", ":"), "the exercise at line 23 has no hint"),
        (
            DEFECTIVE.replace("        # <<<\n", ""),
            "the exercise opened at line 23 is never closed; a line `# <<<` does that",
        ),
        (DEFECTIVE.replace("    // <<<\n}", "}"), "opens an exercise inside the defect opened at line 11"),
        (
            DEFECTIVE.replace("    // <<<\n}", "}").split("class ModelNew")[0],
            "the defect opened at line 11 is never closed",
        ),
        (
            DEFECTIVE.replace(": the last block has threads to spare", ":"),
            "line 11 opens a defect and does not say what is wrong",
        ),
        (
            DEFECTIVE.replace("    // ---\n", "    // >>> defect: another\n    // ---\n"),
            "line 14 opens a defect inside the one opened at line 11",
        ),
    ],
)
def test_wrong_defects_are_refused(broken, says):
    """Is a defect without its spoilt lines, without an end, without words, or inside another named with its line?"""
    with pytest.raises(skeletons.ExerciseError) as caught:
        skeletons.skeleton(broken, "double_it")
    assert says in str(caught.value)


def test_stamps_are_the_same_on_every_version_of_python():
    """Stamps are written on one version and read on another."""
    source = '''"""A head."""\n\nimport torch\n\ncuda = r"""int f();"""\n\n\nclass A:\n'''
    source += '''    def f(self, a, *, b=2):\n        """Doc."""\n        return [x for x in f"{a}"] or None\n'''
    assert skeletons.fingerprint(source) == "9cf84225784d"
