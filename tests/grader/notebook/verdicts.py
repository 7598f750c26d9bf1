"""A failed verdict, and what the tests of grader.check share."""

from pathlib import Path

import pytest
import torch

from grader.notebook import spare_worker
from grader.verdict import (
    CaseResult,
    Evidence,
    Outcome,
    Reason,
    Stage,
    StageName,
    Status,
    Submission,
    Verdict,
)

ROOT = Path(__file__).resolve().parents[3]
SPECIMENS = ROOT / "tests" / "specimens"
SOURCE = "first\nsecond\n    y[i] = x[i + 1]; // <b>&amp;\nfourth\nfifth\nsixth\n"

cpu_only = pytest.mark.skipif(torch.cuda.is_available(), reason="the verdicts are those of a machine without a GPU")


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    """No state of the user's is touched, no bar is drawn, no spare worker is left behind."""
    monkeypatch.setenv("GRADER_PICTURES", "png")
    yield
    spare_worker.SPARE.close()
    spare_worker.SECOND.close()


def verdict_of(
    reason=Reason.out_of_bounds, message="Thread (4, 0, 0) reads too far: line 3.", output="", **evidence
) -> Verdict:
    """A verdict whose stage `correct` failed."""
    cases = [CaseResult(name="odd", status=Status.failed, reason=reason), CaseResult(name="even", status=Status.passed)]
    failed = Stage(
        name=StageName.correct,
        status=Status.failed,
        reason=reason,
        message=message,
        evidence=[Evidence(line=3, **evidence)],
        cases=cases,
    )
    stages = [
        Stage(name=StageName.contract, status=Status.passed),
        Stage(name=StageName.build, status=Status.passed, seconds=1.25),
        failed,
    ]
    return Verdict(
        problem="groupnorm",
        submission=Submission(path="x.py", sha256=""),
        outcome=Outcome.failed,
        stages=stages,
        device="cpu",
        versions={},
        seed=1,
        seconds=2.5,
        sandbox="none",
        output=output,
    )
