"""The search beside the judge: does it find what a search afterwards finds, disturb nothing, and leave nothing behind?"""

import time
from pathlib import Path

import psutil
import pytest
import torch

from grader import repair
from grader.beside import Beside
from grader.judge import grade
from grader.problem import KERNELS_REF
from grader.verdict import Outcome

SPECIMENS = Path(__file__).resolve().parents[1] / "specimens"
SEED = 20
cpu_only = pytest.mark.skipif(torch.cuda.is_available(), reason="graded on the CPU, as a notebook without a GPU does")


def graded(path: Path, problem: str, beside: Beside | None):
    return grade(path, problem=KERNELS_REF / problem / "model.py", seed=SEED, device="cpu", beside=beside)


@cpu_only
def test_as_a_search_afterwards():
    """Same verdict as without it, and the same line as repair.lead finds alone?"""
    path, model = SPECIMENS / "conv2d_swapped_rows_and_columns.py", KERNELS_REF / "conv2d" / "model.py"
    beside = Beside()
    verdict = graded(path, "conv2d", beside)
    lead = beside.lead(verdict)
    beside.close()
    alone = graded(path, "conv2d", None)
    assert [(stage.reason, stage.message, stage.evidence) for stage in verdict.stages] == [(stage.reason, stage.message, stage.evidence) for stage in alone.stages]
    assert lead is not None and lead == repair.lead(path, path.read_text(encoding="utf-8"), model, alone)


@cpu_only
def test_nothing_wrong_nothing_started():
    """Where all is right, is no second worker started?"""
    started = []
    beside = Beside(lambda *arguments, **options: started.append(arguments))
    verdict = graded(KERNELS_REF / "logsumexp" / "solution.py", "logsumexp", beside)
    assert verdict.outcome is Outcome.passed and beside.lead(verdict) is None and not started
    beside.close()


@cpu_only
def test_closed_in_the_middle():
    """Stopped while it works, do its thread and its worker end?"""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    beside = Beside()
    graded(SPECIMENS / "conv2d_last_row_not_written.py", "conv2d", beside)
    beside.close()
    beside.thread.join(10)
    assert not beside.thread.is_alive()
    until = time.monotonic() + 10
    while (left := {child.pid for child in psutil.Process().children(recursive=True)} - before) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left
