"""Does the judge find what is wrong with timed calls: inputs written to, wrong, late or imprecise results?"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from grader.judging.timing import rounds
from grader.judging.timing.bench import Backward
from grader.judging.timing.inputs import TimedInputs
from grader.judging.trial import FindingError, prepare_trial
from grader.problems import problem
from grader.verdict import Reason
from tests.grader.judging.timing.views import make_room

MODEL = """
import torch

n = 64

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(n))

    def forward(self, x):
        return torch.tanh(x * self.weight)

def get_inputs():
    return [torch.randn(40, n)]

def get_init_inputs():
    return []
"""
NUMBERS = [2, 0, 1]


class Probe:
    """Reads elements of results that are in this process."""

    def __init__(self):
        self.values: list = []
        self.places: list = []

    def draw(self, places):
        self.places = places

    def read(self, results):
        self.values = [[one.reshape(-1)[at] for one, at in zip(each, self.places)] for each in results]


class Bout:
    """Rounds in which the "submission" is a function of (what eager returns, the round's number, the call's)."""

    def __init__(self, tmp_path, submission, backward=False):
        path = tmp_path / "scaled_tanh.py"
        path.write_text(MODEL, encoding="utf-8")
        read = problem.read(path)
        case = read.full()
        self.trial = prepare_trial(case, read.instantiate(case, 3))
        self.submission: Callable = submission
        self.number = 0
        back = Backward(self.trial.eager, [0], ["weight"], [torch.zeros(40, 64), torch.zeros(64)]) if backward else None
        self.inputs = TimedInputs(read, case, 7, 3, back.outputs if back else (), device="cpu")
        self.inputs.add(make_room(self.inputs))
        self.inputs.add(make_room(self.inputs), submission=True)
        like = [*back.outputs, *back.like] if back else self.trial.eager
        context = SimpleNamespace(trials=[self.trial])
        bench: Any = SimpleNamespace(context=context, trial=self.trial, backward=back, like=like)
        self.mine, self.eager, way = (SimpleNamespace(probe=Probe(), kept=None) for _ in range(3))
        self.mine.watch = SimpleNamespace(end_own=lambda: None)
        commands: list[Any] = [self.mine, {"eager": self.eager}, way]
        self.rounds = rounds.Rounds(bench, self.inputs, *commands)

    def compute(self, number):
        values = self.inputs.ours[number]
        model = self.trial.instance.model
        x = values[0].clone().requires_grad_()
        y = model(x)
        if len(values) == 1:
            return [y.detach()]
        weight = model.get_parameter("weight")
        return [y.detach(), *torch.autograd.grad(y, [x, weight], values[1])]

    def play(self, count=6, kept=0):
        for _ in range(count):
            self.rounds.begin(NUMBERS)
            self.inputs.give(NUMBERS)
            right = [self.compute(number) for number in NUMBERS]
            mine = [self.submission([one.clone() for one in each], self.number, n) for n, each in enumerate(right)]
            self.eager.probe.read(right)
            self.mine.probe.read(mine)
            self.mine.kept = NUMBERS[kept], mine[kept]
            self.rounds.end(NUMBERS)
            self.number += 1
        self.rounds.verify()


def half(results):
    return [one.half().float() for one in results]


@pytest.fixture(params=[False, True], ids=["forward", "both ways"])
def backward(request):
    return request.param


@pytest.fixture(autouse=True)
def only_the_first_round_is_compared_whole(monkeypatch):
    monkeypatch.setattr(rounds, "VERIFY_SHARE", 0.0)


def test_right_results_pass(tmp_path, backward):
    """Also those that differ from eager's by rounding, now more and now less?"""
    noise = lambda each, played, _: [one * (1 + (played % 3) * 1e-7) for one in each]  # noqa: E731
    Bout(tmp_path, noise, backward).play()


@pytest.mark.parametrize("call", [0, 1])
def test_half_precision_between_the_first_round_and_the_last_is_found(tmp_path, backward, call):
    """Though no result of such a round is compared whole, and few elements are read?"""
    cheat = lambda each, played, n: half(each) if 1 <= played <= 4 and n == call else each  # noqa: E731
    bout = Bout(tmp_path, cheat, backward)
    with pytest.raises(FindingError) as raised:
        bout.play(6)
    assert bout.number == 1  # found in the first of them
    assert raised.value.finding.reason is Reason.low_precision


def test_a_forward_that_is_left_out_is_found_though_the_gradients_are_right(tmp_path):
    bout = Bout(tmp_path, lambda each, played, _: [torch.zeros_like(each[0]), *each[1:]], backward=True)
    with pytest.raises(FindingError) as raised:
        bout.play()
    assert raised.value.finding.reason is Reason.constant_output


def test_results_of_an_earlier_round_are_found(tmp_path, backward):
    """Are inputs and, on both ways, the gradients that backward starts with new in each round?"""
    first: list = []

    def replay(each, played, n):
        if not played:
            first.append(each)
        return first[n]

    bout = Bout(tmp_path, replay, backward)
    with pytest.raises(FindingError):
        bout.play()
    assert bout.number == 1


def test_each_call_starts_backward_with_gradients_of_its_own(tmp_path):
    bout = Bout(tmp_path, lambda each, *_: each, backward=True)
    bout.rounds.begin(NUMBERS)
    upstream = [bout.inputs.ours[number][1] for number in NUMBERS]
    assert bout.inputs.arity == 1 and not torch.equal(upstream[0], upstream[1])
    before = upstream[0].clone()
    bout.rounds.begin(NUMBERS)
    assert not torch.equal(before, upstream[0])


def test_a_write_to_an_input_is_found(tmp_path, backward):
    bout = Bout(tmp_path, None, backward)

    def write(each, played, n):
        bout.inputs.theirs[NUMBERS[n]][-1].view(-1)[5] += 1.0
        return each

    bout.submission = write
    with pytest.raises(FindingError) as raised:
        bout.play()
    assert raised.value.finding.reason is Reason.input_modified


def test_the_last_round_is_compared_whole(tmp_path, backward):
    """Is one wrong element found that was not read?"""

    bout = Bout(tmp_path, None, backward)

    def spoil(each, played, n):
        unread = next(n for n in range(40 * 64) if n not in bout.mine.probe.places[0])
        if played == 5:
            each[0].view(-1)[unread] = 9.0
        return each

    bout.submission = spoil
    with pytest.raises(FindingError):
        bout.play(6)
    assert bout.number == 6


@pytest.mark.parametrize("usual", [True, False])
def test_too_little_memory_is_no_pass(tmp_path, backward, usual, monkeypatch):
    """Does the comparison at the end, for which memory is freed, decide, and is what looks odd not let through?"""

    def full(*_):
        raise torch.OutOfMemoryError("full")

    bout = Bout(tmp_path, lambda each, played, _: each if usual or not played else half(each), backward)
    monkeypatch.setattr(bout.rounds, "_compare", full)
    with pytest.raises(torch.OutOfMemoryError if usual else rounds.NoResult):
        bout.play()
    assert bout.number == (6 if usual else 1)
