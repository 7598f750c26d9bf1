"""Which edit mends a kernel: is the wrong line named, with evidence, and nothing where there is none?"""

from pathlib import Path

import pytest
import torch

from grader import repair
from grader.judge import grade
from grader.problem import KERNELS_REF
from grader.verdict import Reason, Stage, StageName, Status

SPECIMENS = Path(__file__).resolve().parents[1] / "specimens"
SEED = 20


def lead_of(path: Path, problem: str):
    """The verdict, the lead, the submission's lines."""
    text = path.read_text(encoding="utf-8")
    model = KERNELS_REF / problem / "model.py"
    verdict = grade(path, problem=model, seed=SEED, device="cpu")
    return verdict, repair.lead(path, text, model, verdict), text.splitlines()


@pytest.mark.skipif(torch.cuda.is_available(), reason="graded on the CPU, as a notebook without a GPU does")
@pytest.mark.long
@pytest.mark.parametrize(
    "name, problem, line, until, says",
    [
        ("conv2d_off_by_one", "conv2d", "if (i > N", "", "another comparison"),  # it crashes in another line
        ("conv2d_bias_forgotten", "conv2d", "y[i] = sum", "", "a parameter of the kernel is missing"),
        ("conv2d_swapped_rows_and_columns", "conv2d", "int oy = i % OH", "int ox = i / OH", "the other way round"),
        ("logsumexp_index_overflow", "logsumexp", "unsigned short", "", "a larger type"),
        ("logsumexp_infinity", "logsumexp", "sum += expf(", "", "no finite number"),
        ("bias_scale_sigmoid_backward_last_image", "bias_scale_sigmoid", "b = s = 0.0f", "", "in the first pass of its loop alone"),
        ("groupnorm_backward_mean_over_batch", "groupnorm", "gweight[c] = w / N", "", "another operator"),
        ("scale_maxpool_clamp_scale_after_max", "scale_maxpool_clamp", "best *= scale", "", "with each value inside the loop"),
        ("im2col_conv_missing_barrier", "im2col_conv", "b[ty][tx] =", "for (int j = 0", "wait for each other"),
    ],
)
def test_line(name, problem, line, until, says):
    """Is the line, or the place between two, named with its evidence?"""
    _, lead, lines = lead_of(SPECIMENS / f"{name}.py", problem)
    assert line in lines[lead.line - 1] and says in lead.words
    assert until in lines[lead.until - 1] if until else lead.until == 0


def test_nothing_to_look_for(tmp_path):
    """Is nothing named where a kernel is right, and nothing built for a compile error?"""
    path = tmp_path / "logsumexp.py"
    path.write_text((KERNELS_REF / "logsumexp" / "solution.py").read_text(encoding="utf-8"), encoding="utf-8")
    verdict, lead, _ = lead_of(path, "logsumexp")
    assert verdict.first_problem is None and lead is None
    verdict.stages[1] = Stage(name=StageName.build, status=Status.failed, reason=Reason.compile_error)
    assert not repair.wanted(verdict)


@pytest.mark.skipif(torch.cuda.is_available(), reason="graded on the CPU, as a notebook without a GPU does")
def test_no_edit_mends_it(tmp_path):
    """Where the whole formula is another one, is no line accused?"""
    path = tmp_path / "logsumexp.py"
    text = (SPECIMENS / "logsumexp_infinity.py").read_text(encoding="utf-8")
    path.write_text(text.replace("sum += expf(x[(n * C + c) * pixels + p])", "sum += 3.7f * c").replace("logf(sum)", "sum * 1.1f + p * 0.3f"), encoding="utf-8")
    verdict, lead, _ = lead_of(path, "logsumexp")
    assert verdict.reason is Reason.wrong_values and lead is None


def test_every_kind_has_words():
    """Has each kind of edit a sentence, with the line in it?"""
    assert set(repair.SAID) == set(repair.KINDS)
    assert all("{line}" in words for words in repair.SAID.values())
