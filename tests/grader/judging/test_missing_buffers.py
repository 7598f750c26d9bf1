"""Does a submission without Model's buffers get its verdict by its results, and a report that names them?"""

import pytest

from grader.judging.grading import Limits, grade
from grader.verdict import Outcome, Reason

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, features, is_fixed):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(features)
        self.register_buffer("shift", torch.linspace(0, 1, features))
        self.train(not is_fixed)

    def forward(self, x):
        return self.norm(x) + self.shift

batch_size, features, is_fixed = 5, 6, False

def get_inputs():
    return [torch.rand(batch_size, features)]

def get_init_inputs():
    return [features, is_fixed]

CASES = [{"name": "own"}, {"name": "other", "set": {"features": 3}, "inputs": "normal"}]
"""
SUBMISSION = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, features, is_fixed):
        super().__init__()
        self.gamma = torch.nn.Parameter(torch.ones(features))
        self.beta = torch.nn.Parameter(torch.zeros(features))
        self.register_buffer("NAME", torch.FILL(0, 1, features), persistent=False)

    def forward(self, x):
        scale = (x.var(0, correction=0) + 1e-5).rsqrt()
        return (x - x.mean(0)) * scale * self.gamma + self.beta + self.NAME
"""


def judge(tmp_path, name: str, fill: str):
    problem, path = tmp_path / "norm.py", tmp_path / "handed_in.py"
    problem.write_text(PROBLEM)
    path.write_text(SUBMISSION.replace("NAME", name).replace("FILL", fill).replace("zeros(0, 1, ", "zeros("))
    verdict = grade(path, problem, device="cpu", seed=1, limits=Limits(own=60.0))
    print(*(f"{stage.name}: {stage.message}" for stage in verdict.stages if stage.message), sep="\n")
    return verdict


@pytest.mark.slow
def test_results_that_need_no_buffer_of_model_are_right(tmp_path):
    """Does a constant of the same values pass under another name, and one of Model's name get Model's values?"""
    assert judge(tmp_path, "offset", "linspace").outcome is Outcome.passed
    assert judge(tmp_path, "shift", "zeros").outcome is Outcome.passed


def test_wrong_values_are_reported_with_the_buffers_that_are_missing(tmp_path):
    """Is a buffer that may be the cause named, and the counter, which no output depends on, left out?"""
    verdict = judge(tmp_path, "offset", "zeros")
    assert verdict.reason is Reason.wrong_values
    message = verdict.first_problem.message
    assert "no buffer for these of Model: shift, norm.running_mean, norm.running_var." in message
    assert "num_batches_tracked" not in message
