"""Submissions written as people write them elsewhere: is each graded by what it does, in a few seconds?

The problems are files in specimens/elsewhere/problems, and a submission's name begins with its problem's; one of
several files lies in a folder of that name. What a verdict says beyond a plain pass is in expected.toml next to them.
"""

import ast
import tomllib
from pathlib import Path

import pytest
import torch

import simt
from grader.judging.grading import Limits, grade
from grader.verdict import Outcome, Status
from tests.sample import sample
from tests.slowness import slowness
from tests.test_specimens import shown

HERE = Path(__file__).parent / "specimens" / "elsewhere"
FILES = {path.stem: path for path in HERE.glob("*.py")} | {
    path.parent.name: path for path in HERE.glob("*/submission.py")
}
PROBLEMS = sorted((HERE / "problems").glob("*.py"))
EXPECTED = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
SEED = 1
OWN_S = 20.0  # for a call of forward: less than a compiler takes with two of them on two cores

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="the verdicts are those of a machine without a GPU")


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Build what is built once on a machine, so that no grading waits for it."""
    simt.warm_up()


def test_each_submission_says_what_is_unusual_about_it():
    """Has each a docstring of one sentence, a problem, and has the table no other?"""
    assert len(FILES) >= 60 and set(EXPECTED) <= set(FILES)
    for name in FILES:
        said = ast.get_docstring(ast.parse(FILES[name].read_text(encoding="utf-8"))) or ""
        assert said.endswith(".") and "\n" not in said and 20 < len(said) <= 110, name
        assert sum(name.startswith(problem.stem) for problem in PROBLEMS) == 1, name


@pytest.mark.parametrize("name", sample(sorted(FILES), ["gated_layers_packed_weights", "scaled_relu_only_on_a_gpu"]))
def test_submission_is_graded_right(name):
    problem = next(path for path in PROBLEMS if name.startswith(path.stem))
    verdict = grade(FILES[name], problem, seed=SEED, limits=Limits(own=OWN_S * slowness()))
    seen, wanted = "\n" + shown(verdict), EXPECTED.get(name, {})
    if "stage" in wanted:
        stage = verdict.stage(wanted["stage"])
        assert verdict.outcome is Outcome.failed and stage.status is Status.failed, seen
        assert stage.reason == wanted["reason"] and wanted["message"] in " ".join(stage.message.split()), seen
        first = stage.evidence[0] if stage.evidence else None
        assert "at" not in wanted or (first and first.line and wanted["at"] in (first.text or "")), seen
        later = [other.reason for other in verdict.stages if other.status is Status.failed and other is not stage]
        assert later == ([wanted["explains"]] if "explains" in wanted else []), seen
        return
    assert verdict.outcome is Outcome.passed and verdict.doubt == wanted.get("doubt"), seen
    assert wanted.get("message", "") in verdict.stage("correct").message, seen
    assert wanted.get("build", "") in verdict.stage("build").message, seen
    assert bool(verdict.stage("build").message) == ("build" in wanted), seen
    assert all(case.status is Status.passed for case in verdict.stage("correct").cases), seen


@pytest.mark.slow
def test_the_constructor_sees_the_gpu_whose_time_is_predicted():
    """Are the figures of the GPU the same in ModelNew(...) and in forward, which compares them?"""
    name = "scaled_relu_gpu_housekeeping"
    verdict = grade(FILES[name], HERE / "problems" / "scaled_relu.py", seed=SEED, predict="H200")
    assert verdict.stage("fast").prediction, verdict.stage("fast").message
