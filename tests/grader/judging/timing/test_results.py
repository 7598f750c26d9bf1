"""Are results of timed calls read where the worker says, taken for what they are, and compared as they should be?"""

from typing import Any

import pytest
import torch

from grader.judging.timing.results import (
    FAR_SHARE,
    READ_AT_ONCE,
    SAMPLES,
    NoResult,
    Probe,
    are_alike,
    draw_places,
    measure_distances,
)
from tests.grader.judging.timing.views import Memory, at


def make_probe(like: torch.Tensor, **tensors) -> Probe:
    memory: Any = Memory(**tensors)
    return Probe([like], memory)


def test_elements_are_read_in_row_major_order_whatever_the_layout():
    """Are the same elements read of a contiguous result and of one in channels_last?"""
    plain = torch.arange(2 * 3 * 4 * 5.0).view(2, 3, 4, 5)
    other = plain.contiguous(memory_format=torch.channels_last)
    probe = make_probe(plain, plain=plain, other=other)
    (places,) = draw_places([plain])
    probe.draw([places])
    probe.read([[at("plain", plain)], [at("other", other)]], 2)
    probe.read_rest()
    assert torch.equal(probe.values[0][0], places.float()) and torch.equal(probe.values[1][0], places.float())
    assert torch.equal(probe.copy(1)[0], plain) and probe.copy(1)[0].is_contiguous()
    assert len(places) == SAMPLES


@pytest.mark.parametrize(
    "results, says",
    [
        ([], "number of results"),
        ([[None]], "cannot look at"),
        ([[]], "another shape or dtype"),
        ([[at("x", torch.zeros(4))]], "another shape or dtype"),
        ([[at("x", torch.zeros(3, dtype=torch.float64))]], "another shape or dtype"),
        ([[at("y", torch.zeros(3))]], "outside its memory"),
    ],
)
def test_what_is_not_there_is_reported(results, says):
    """Does a result that is missing, of another kind, or nowhere, end the timing with its sentence?"""
    like = torch.zeros(3)
    probe = make_probe(like, x=like)
    probe.draw(draw_places([like]))
    with pytest.raises(NoResult, match=says):
        probe.read(results, 1)


def test_a_few_results_are_read_at_once_and_the_others_next():
    """Are elements that were read within the time kept, those of the others read later, and which is which unknown?"""
    memory = {f"call{n}": torch.zeros(50) for n in range(20)}
    probe, early = make_probe(torch.zeros(50), **memory), []
    for _ in range(2):
        for one in memory.values():
            one.zero_()
        probe.draw(draw_places([torch.zeros(50)]))
        probe.read([[at(name, one)] for name, one in memory.items()], 20)
        for one in memory.values():
            one.fill_(1.0)  # too late for those that were read
        probe.read_rest()
        assert all(len(set(values.tolist())) == 1 for (values,) in probe.values)
        early.append({call for call, (values,) in enumerate(probe.values) if not values.any()})
        assert len(early[-1]) == READ_AT_ONCE
    assert early[0] != early[1]


def test_other_elements_are_read_each_time():
    """Can nobody know which elements are read?"""
    like = [torch.zeros(1000, 1000)]
    assert not torch.equal(draw_places(like)[0], draw_places(like)[0])


def changed(values: torch.Tensor, share: float, by: float) -> torch.Tensor:
    count = round(share * values.numel())
    return torch.cat([values[:count] + by, values[count:]])


@pytest.mark.parametrize(
    "got, expected",
    [
        (lambda x: x, True),
        (lambda x: x * 1.001, True),  # as TF32 may differ from float32
        (lambda x: x * 1.2, False),
        (lambda x: x.half().float(), True),
        (lambda x: torch.zeros_like(x), False),
        (lambda x: x.roll(1), False),
        (lambda x: x * float("nan"), False),
        (lambda x: changed(x, FAR_SHARE / 2, 5.0), True),  # gradients that rounding sends elsewhere
        (lambda x: changed(x, 2 * FAR_SHARE, 5.0), False),
    ],
)
def test_elements_of_another_result_are_noticed(got, expected):
    x = torch.randn(SAMPLES, generator=torch.Generator().manual_seed(1))
    assert are_alike([[x, x], [x, got(x)]], [[x, x]] * 2, FAR_SHARE) == [True, expected]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
def test_every_element_counts_where_rounding_picks_nothing(dtype):
    """Is a single element noticed that is not there yet when the result is read?"""
    x = (1 + torch.arange(SAMPLES) % 5).to(dtype)
    late = x.clone()
    late[7] = 0
    assert are_alike([[x], [late]], [[x], [x]]) == [True, False] and are_alike([[late]], [[x]], FAR_SHARE) == [True]


def test_whole_numbers_infinities_and_complex_numbers_compare():
    numbers = torch.arange(SAMPLES)
    assert are_alike([[numbers]] * 2, [[numbers], [numbers + 1]]) == [True, False]
    odd = torch.tensor([float("inf"), float("-inf"), float("nan"), 1.0] * 100)
    assert are_alike([[odd], [odd.nan_to_num()]], [[odd]] * 2) == [True, False]
    wave = torch.polar(torch.ones(SAMPLES), torch.linspace(0, 6, SAMPLES))
    assert are_alike([[wave], [wave.conj()]], [[wave]] * 2) == [True, False]
    assert are_alike([[torch.empty(0)]], [[torch.empty(0)]]) == [True] and are_alike([[]], [[]]) == [True]


def test_distances_are_those_of_each_call():
    """Do they agree with plain Python's, are infinities and NaNs left out, and does the farthest result count?"""
    odd = torch.tensor([float("inf"), float("nan"), 3.0, 4.0])
    off = torch.tensor([1.0, 2.0, 3.0, 4.5])
    zeros = torch.zeros(4)
    got, expected = [[odd, zeros], [off, zeros], [odd, off]], [[odd, zeros], [odd, zeros], [odd, zeros]]
    assert measure_distances(got, expected) == pytest.approx([0.0, 0.1, 1.0])
    whole = torch.arange(1, 5)
    assert measure_distances([[whole * 2]], [[whole]]) == pytest.approx([1.0])
    assert measure_distances([[torch.empty(0)]], [[torch.empty(0)]]) == [0.0] and measure_distances([[]], [[]]) == [0.0]
