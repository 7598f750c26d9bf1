"""Honest submissions and problems: is none of them failed, marked or warned about?

The submissions in tests/specimens/honest are right and written as users write them: other layouts, names, builds, kinds
of kernels. Their names begin with the problem's. The files in honest/problems stand for KernelBench's; what is handed
in for them is their own Model. honest/expected.toml holds what a verdict may say beyond a plain pass.
"""

import ast
import tomllib
from pathlib import Path

import pytest
import torch

import simt
from grader.judging.grading import Limits, grade
from grader.verdict import EXPLANATIONS, Outcome, Reason, Stage, Status, Verdict, from_json, to_json
from tests.sample import sample
from tests.test_specimens import as_submission, problem_of, shown

HERE = Path(__file__).parent / "specimens" / "honest"
SUBMISSIONS = sorted(path.stem for path in HERE.glob("*.py"))
PROBLEMS = sorted(path.stem for path in (HERE / "problems").glob("*.py"))
EXPECTED = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
SEED = 1
OTHER_SEED = 2**40 + 7
LIMITS = Limits(own=60.0)
# What the stage "gradient" says where it has nothing to judge.
NO_GRADIENT = ("This problem asks for no gradient", "Nothing that Model is given or holds has a gradient.")

WRAPPED = """

class ModelNew(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.wrapped = Model(*args, **kwargs)

    def forward(self, *inputs):
        return self.wrapped(*inputs)
"""

on_cpu = pytest.mark.skipif(torch.cuda.is_available(), reason="these verdicts are those of a machine without a GPU")


@pytest.fixture(scope="module")
def warm():
    """Build what is built once on a machine, so that no grading waits for it."""
    simt.warm_up()


def check(verdict: Verdict, name: str, no_kernel: bool = False) -> None:
    """Assert that a verdict is a plain pass; no_kernel: but for the mark of a submission that has no kernel."""
    seen = "\n" + shown(verdict)
    mark = Reason.no_kernel if no_kernel else None
    assert verdict.outcome is Outcome.passed and verdict.doubt is mark, seen
    for stage in verdict.stages:
        assert stage.status in (Status.passed, Status.skipped) and not stage.evidence, seen
        assert stage.reason in _allowed_reasons(stage, mark), seen
    assert all(case.status is Status.passed for case in verdict.stage("correct").cases), seen
    notes = EXPLANATIONS[mark] if mark else "", EXPECTED.get(name, {}).get("correct", "")
    assert verdict.stage("correct").message == " ".join(notes).strip(), seen
    assert not verdict.stage("safe").message, seen
    gradient = verdict.stage("gradient")
    if verdict.problem.endswith("_backward"):
        assert gradient.status is Status.passed, seen
    assert not gradient.message or gradient.message.startswith(NO_GRADIENT), seen
    assert from_json(to_json(verdict)).outcome is Outcome.passed


def _allowed_reasons(stage: Stage, mark: Reason | None) -> tuple[Reason | None, ...]:
    return {"correct": (mark,), "fast": (None, Reason.no_gpu, Reason.inconclusive)}.get(stage.name.value, (None,))


def test_there_are_enough_and_the_table_knows_no_other():
    assert len(SUBMISSIONS) >= 55 and len(PROBLEMS) >= 28 and len(SUBMISSIONS) + len(PROBLEMS) >= 80
    assert set(EXPECTED) <= {*SUBMISSIONS, *PROBLEMS}


@pytest.mark.parametrize("path", [*HERE.glob("*.py"), *(HERE / "problems").glob("*.py")], ids=lambda path: path.stem)
def test_file_says_what_is_unusual_about_it(path):
    """Does each file begin with one sentence on a line?"""
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8-sig"))) or ""
    assert said.endswith(".") and "\n" not in said and 20 < len(said) <= 130


@on_cpu
@pytest.mark.parametrize("name", sample(SUBMISSIONS, ["groupnorm_gamma_and_beta"]))
def test_submission_passes(name, warm):
    check(grade(HERE / f"{name}.py", problem_of(name), seed=SEED, limits=LIMITS), name)


@on_cpu
@pytest.mark.slow
@pytest.mark.parametrize("name", SUBMISSIONS[::6])
def test_submission_passes_with_another_seed(name, warm):
    check(grade(HERE / f"{name}.py", problem_of(name), seed=OTHER_SEED, limits=LIMITS), name)


def grade_own_model(name: str, text: str, folder: Path, seed: int) -> Verdict:
    """Return the verdict on a submission for one of the problems in honest/problems."""
    submission = folder / f"{name}.py"
    submission.write_text(text, encoding="utf-8")
    return grade(submission, HERE / "problems" / f"{name}.py", seed=seed, limits=LIMITS)


@on_cpu
@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_own_model_passes(name, tmp_path, warm):
    """Does a problem's own Model pass as ModelNew, with no remark but that it has no kernel?"""
    check(grade_own_model(name, as_submission(HERE / "problems" / f"{name}.py"), tmp_path, SEED), name, no_kernel=True)


@on_cpu
@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS[::3])
def test_own_model_passes_with_another_seed(name, tmp_path, warm):
    text = as_submission(HERE / "problems" / f"{name}.py")
    check(grade_own_model(name, text, tmp_path, OTHER_SEED), name, no_kernel=True)


def has_weights(name: str) -> bool:
    text = (HERE / "problems" / f"{name}.py").read_text(encoding="utf-8")
    return any(word in text for word in ("nn.Parameter", "nn.Linear", "nn.Conv", "Norm2d", "Norm1d", "nn.LayerNorm"))


@on_cpu
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROBLEMS if has_weights(name)])
def test_own_model_passes_under_other_names(name, tmp_path, warm):
    """Does it pass where each weight has another name than in Model?"""
    text = (HERE / "problems" / f"{name}.py").read_text(encoding="utf-8") + WRAPPED
    check(grade_own_model(name, text, tmp_path, SEED), name, no_kernel=True)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", SUBMISSIONS)
def test_submission_passes_on_a_gpu(name):
    check(grade(HERE / f"{name}.py", problem_of(name), seed=SEED, device="cuda", limits=LIMITS), name)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS[::3])
def test_own_model_passes_on_a_gpu(name, tmp_path):
    check(grade_own_model(name, as_submission(HERE / "problems" / f"{name}.py"), tmp_path, SEED), name, no_kernel=True)
