"""Is each defect of a debugging exercise reported by name while it alone is left, and does the fixed file pass?"""

import re

import pytest
import torch

from grader.judging.grading import grade
from grader.paths import KERNELS_REF
from grader.problems import exercises
from grader.verdict import Outcome
from tests.sample import sample

# For each exercise its defects in the order of the file: the reason of the first stage that does not pass, and, where
# "safe" explains it, that stage's reason.
DEFECTS = {
    "mend_layernorm": [
        ("not_written", "race"),
        ("barrier_divergence", None),
        ("misaligned", None),
        ("wrong_values", None),
        ("out_of_bounds", None),
        ("not_written", None),
    ],
}
SECTION = re.compile(
    r"^ *// >>> defect: .*\n(?P<right>(?:.*\n)*?) *// ---\n(?P<wrong>(?:.*\n)*?) *// <<<\n", re.MULTILINE
)
ALONE = [(name, number) for name, reported in DEFECTS.items() for number in range(len(reported))]

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="the checks that find the defects run on the CPU")


def source_of(name):
    return (KERNELS_REF / name / "solution.py").read_text(encoding="utf-8")


def with_defects(name, wanted):
    """The solution with the defects whose numbers are wanted, and the right lines in the places of the others."""
    parts, end, source = [], 0, source_of(name)
    for number, section in enumerate(SECTION.finditer(source)):
        wrong = re.sub(r"^(\s*)// ?", r"\1", section["wrong"], flags=re.MULTILINE)
        parts += [source[end : section.start()], wrong if number in wanted else section["right"]]
        end = section.end()
    return "".join([*parts, source[end:]])


def graded(tmp_path, name, text):
    path = tmp_path / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return grade(path, problem=KERNELS_REF / name / "model.py", seed=20)


def test_every_exercise_of_this_kind_is_here():
    """Does each solution with defects have its line in the table above, with as many reasons as defects?"""
    found = {path.parent.name: len(SECTION.findall(path.read_text())) for path in KERNELS_REF.glob("*/solution.py")}
    assert {name: count for name, count in found.items() if count} == {
        name: len(reported) for name, reported in DEFECTS.items()
    }


@pytest.mark.parametrize("name", DEFECTS)
def test_the_student_file_has_them_all(name):
    """Is the student's file the solution with every defect in it, but for the text at its head and at its end?"""
    made = exercises.skeleton(source_of(name), name)
    broken = with_defects(name, range(len(DEFECTS[name])))
    assert exercises.fingerprint(made) == exercises.fingerprint(broken)
    assert f"{len(DEFECTS[name])} defects are in this file" in made


@pytest.mark.slow
@pytest.mark.parametrize("name, number", sample(ALONE, lambda each: each == ALONE[0]))
def test_a_single_defect_is_reported(name, number, tmp_path):
    """With all the others fixed, does the verdict give this defect's reason?"""
    verdict = graded(tmp_path, name, with_defects(name, {number}))
    reason, explained = DEFECTS[name][number]
    assert verdict.outcome is Outcome.failed and verdict.reason == reason
    assert explained is None or verdict.stage("safe").reason == explained


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFECTS)
def test_the_fixed_file_passes(name, tmp_path):
    """With every defect fixed and no marker left, does it pass?"""
    verdict = graded(tmp_path, name, with_defects(name, set()))
    assert verdict.outcome is Outcome.passed, verdict.first_problem
