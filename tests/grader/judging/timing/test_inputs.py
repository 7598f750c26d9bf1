"""Are the inputs of each round new, the same again when the judge makes them once more, and watched for changes?"""

import statistics
from typing import Any

import pytest
import torch

from grader.judging.timing import inputs as timed
from grader.judging.timing.inputs import TimedInputs
from grader.problems import problem

MODEL = """
import torch

n = 300

class Model(torch.nn.Module):
    def forward(self, x, where, times):
        return torch.tril(x)[where] * times

def get_inputs():
    return [torch.tril(torch.randn(n, n)), torch.randint(0, n, (5,)), 3]

def get_init_inputs():
    return []
"""


class Memory:
    """Stands in for the memory that workers map."""

    device = "cpu"

    def __init__(self):
        self.given = []

    def inputs(self, made):
        copies = [value.clone() if isinstance(value, torch.Tensor) else value for value in made]
        self.given.append([(one, None) for one in copies])
        return copies


def make(read, case, count) -> TimedInputs:
    memory: Any = Memory()
    return TimedInputs(read, case, 7, memory, count)


@pytest.fixture
def made(tmp_path):
    path = tmp_path / "triangle.py"
    path.write_text(MODEL)
    read = problem.read(path)
    return make(read, read.full(), 3)


def test_each_refresh_draws_new_values_with_the_problems_own_structure(made):
    """Are values never seen before, and a triangular matrix still triangular?"""
    seen = [made.ours[1][0].clone()]
    for _ in range(3):
        made.refresh([1])
        now = made.ours[1][0]
        assert all(not torch.equal(now, old) for old in seen)
        assert torch.equal(now, torch.tril(now)) and now.abs().sum() > 0
        seen.append(now.clone())
    assert made.ours[1][2] == 3


def test_inputs_can_be_made_again(made):
    """Does the judge get the values that it wrote, also after a worker has changed the memory?"""
    made.refresh([0, 2])
    x, where = made.ours[2][0].clone(), made.ours[2][1].clone()
    made.ours[2][0].zero_()
    again = made.again(2)
    assert torch.equal(again[0], x) and torch.equal(again[1], where) and again[2] == 3
    assert again[0].data_ptr() != made.ours[2][0].data_ptr()


def test_a_changed_input_is_noticed(made):
    made.refresh([0, 1])
    made.give([0, 1])
    assert not made.find_modified([0, 1])
    made.theirs[1][0].view(-1)[-1] += 1.0
    assert made.find_modified([0, 1]) and not made.find_modified([0])
    made.refresh([0, 1])
    made.give([0, 1])
    assert not made.find_modified([0, 1])


def test_new_inputs_are_the_submissions_once_they_are_given(made):
    """Does the submission's memory keep the values of the round before until then?"""
    made.give([0, 1])
    before = made.theirs[1][0].clone()
    made.rehearse([0, 1])
    made.refresh([0, 1])
    assert torch.equal(made.theirs[1][0], before) and not torch.equal(made.ours[1][0], before)
    made.give([0, 1])
    assert torch.equal(made.theirs[1][0], made.ours[1][0])
    assert 0 < statistics.median(made.seconds[2]) < made.most_seconds(2)


def test_what_takes_long_to_draw_is_rolled(monkeypatch, made):
    """Are values that are slow to draw moved instead, differently each time, and again the same when made once more?"""
    monkeypatch.setattr(timed, "SLOW_DRAW_S", 0.0)
    slow = make(made.problem, made.case, 2)
    monkeypatch.setattr(slow.problem, "draw_inputs", lambda *_: pytest.fail("drawn"))
    slow.refresh([0, 1])
    first = slow.ours[0][0].clone()
    assert torch.equal(slow.again(0)[0], first)
    slow.refresh([0])
    assert not torch.equal(slow.ours[0][0], first)
    assert torch.equal(slow.ours[0][0].flatten().sort().values, first.flatten().sort().values)
