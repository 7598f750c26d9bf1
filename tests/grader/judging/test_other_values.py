"""Do a case's other values change its outputs, also where Model does not mind the order of the values?"""

import pytest
import torch

from grader.judging.other_values import prepare_other_values
from grader.judging.trial import prepare_trial
from grader.problems import problem
from grader.problems.cases import Case

MODEL = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return {result}


length = 12


def get_inputs():
    return [torch.rand(length, 2)]


def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    "result", ["x * 2", "x.sum()", "x.sum(0)", "torch.histc(x, 5, 0, 1).int()", "(x - x.mean()).square().mean()"]
)
def test_outputs_change(tmp_path, result):
    """Is the earlier result wrong for the other values?"""
    (tmp_path / "model.py").write_text(MODEL.format(result=result))
    case = Case("any")
    trial = prepare_trial(case, problem.read(tmp_path / "model.py").instantiate(case, seed=3))
    other = prepare_other_values(trial)
    assert other.case is case and not torch.equal(other.instance.inputs[0], trial.instance.inputs[0])
    assert not torch.allclose(other.eager[0].double(), trial.eager[0].double(), rtol=1e-3)


def test_the_order_of_values_is_enough(tmp_path):
    """Are the values the same ones where their order changes the outputs?"""
    (tmp_path / "model.py").write_text(MODEL.format(result="x * 2"))
    case = Case("any")
    trial = prepare_trial(case, problem.read(tmp_path / "model.py").instantiate(case, seed=3))
    (moved,), (before,) = prepare_other_values(trial).instance.inputs, trial.instance.inputs
    assert torch.equal(moved.flatten().sort().values, before.flatten().sort().values)


def test_a_model_that_takes_no_repeated_values(tmp_path):
    """Are the moved values kept where Model refuses values that occur twice?"""
    refusing = "x.sum() if len(set(x.flatten().tolist())) == x.numel() else 1 / 0"
    (tmp_path / "model.py").write_text(MODEL.format(result=refusing))
    case = Case("any")
    trial = prepare_trial(case, problem.read(tmp_path / "model.py").instantiate(case, seed=3))
    (moved,), (before,) = prepare_other_values(trial).instance.inputs, trial.instance.inputs
    assert torch.equal(moved.flatten(), before.flatten().roll(1))
