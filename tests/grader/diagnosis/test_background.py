"""Does the search in parallel with the judge find what one afterwards finds, disturb nothing, and leave nothing?"""

import time
from pathlib import Path
from typing import NoReturn

import psutil
import pytest
import torch

from grader.diagnosis import fault_localization
from grader.diagnosis.background import BackgroundDiagnosis
from grader.judging.grading import grade
from grader.paths import KERNELS_REF
from grader.verdict import Outcome

SPECIMENS = Path(__file__).resolve().parents[2] / "specimens"
SEED = 20
cpu_only = pytest.mark.skipif(torch.cuda.is_available(), reason="graded on the CPU, as a notebook without a GPU does")


def graded(path: Path, problem: str, beside: BackgroundDiagnosis | None):
    return grade(path, problem=KERNELS_REF / problem / "model.py", seed=SEED, device="cpu", observer=beside)


@cpu_only
@pytest.mark.slow
def test_as_a_search_afterwards():
    """Same verdict as without it, and the same line as fault_localization.lead finds alone?"""
    path, model = SPECIMENS / "conv2d_swapped_rows_and_columns.py", KERNELS_REF / "conv2d" / "model.py"
    beside = BackgroundDiagnosis()
    verdict = graded(path, "conv2d", beside)
    lead = beside.lead(verdict)
    beside.close()
    alone = graded(path, "conv2d", None)
    assert [(stage.reason, stage.message, stage.evidence) for stage in verdict.stages] == [
        (stage.reason, stage.message, stage.evidence) for stage in alone.stages
    ]
    assert lead is not None and lead == fault_localization.lead(path, path.read_text(encoding="utf-8"), model, alone)


@pytest.mark.slow
@cpu_only
def test_a_wrong_gradient():
    """Of a kernel of backward with a wrong line, and a right forward, is that line named?"""
    path = SPECIMENS / "logsumexp_wrong_gradient_unasked.py"
    beside = BackgroundDiagnosis()
    verdict = graded(path, "logsumexp", beside)
    lead = beside.lead(verdict)
    beside.close()
    assert verdict.first_problem.name == "gradient" and verdict.stage("correct").reason is None
    assert "gx[first + c * pixels] = expf(" in path.read_text(encoding="utf-8").splitlines()[lead.line - 1]


@cpu_only
@pytest.mark.slow
def test_no_edit_mends_a_gradient():
    """Where two terms of a gradient are missing, is no line accused, though some edit mends a case whose gradients are
    nearly 0?
    """
    beside = BackgroundDiagnosis()
    verdict = graded(SPECIMENS / "groupnorm_backward_mean_forgotten.py", "groupnorm", beside)
    assert verdict.reason == "wrong_gradient" and beside.lead(verdict) is None
    beside.close()


@pytest.mark.slow
@cpu_only
def test_nothing_wrong_nothing_started():
    """Where all is right, is no second worker started?"""
    started = []

    def start(*arguments, **_) -> NoReturn:
        started.append(arguments)
        raise OSError("no second worker")

    beside = BackgroundDiagnosis(start)
    verdict = graded(KERNELS_REF / "logsumexp" / "solution.py", "logsumexp", beside)
    assert verdict.outcome is Outcome.passed and beside.lead(verdict) is None and not started
    beside.close()


class OfGpu(BackgroundDiagnosis):
    """Hears of a grading on the CPU as of one on a GPU."""

    def case_failed(self, source, exercise, reason, device):
        super().case_failed(source, exercise, reason, "cuda")


@cpu_only
@pytest.mark.slow
def test_cases_of_a_gpu_are_made_anew():
    """Is the line found that a search on the CPU finds, with cases that are made when there is a verdict?"""
    path, model = SPECIMENS / "conv2d_swapped_rows_and_columns.py", KERNELS_REF / "conv2d" / "model.py"
    beside = OfGpu()
    verdict = graded(path, "conv2d", beside)
    assert beside.running and not beside.cases
    lead = beside.lead(verdict, None, model)
    beside.close()
    assert lead is not None and lead == fault_localization.lead(path, path.read_text(encoding="utf-8"), model, verdict)


@pytest.mark.slow
@cpu_only
def test_closed_in_the_middle():
    """Stopped while it works, do its thread and its worker end?"""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    beside = BackgroundDiagnosis()
    graded(SPECIMENS / "conv2d_last_row_not_written.py", "conv2d", beside)
    beside.close()
    beside.thread.join(10)
    assert not beside.thread.is_alive()
    until = time.monotonic() + 10
    while (
        left := {child.pid for child in psutil.Process().children(recursive=True)} - before
    ) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left
