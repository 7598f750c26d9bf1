"""Does every weight of Model reach the one of ModelNew that an author would expect, and no other?"""

import pytest
import torch
from torch import nn

from grader.worker.weights import load_weights, match_weights


def shapes(**given):
    return {name.replace("__", "."): torch.zeros(shape) for name, shape in given.items()}


def test_the_same_names_are_taken_whatever_their_order():
    state, own = shapes(weight=(4,), bias=(4,)), shapes(bias=(4,), weight=(4,))
    assert match_weights(state, own) == ({"weight": "weight", "bias": "bias"}, "")


def test_other_names_are_paired_by_shape_in_order():
    """Is a weight that has its own name left out of the pairing?"""
    state = shapes(conv__weight=(8, 3), conv__bias=(8,), gn__weight=(8,), gn__bias=(8,))
    own = shapes(gamma=(8,), beta=(8,), conv__bias=(8,), kernel=(8, 3))
    pairs, misfits = match_weights(state, own)
    assert not misfits
    assert pairs == {
        "conv.weight": "kernel", "conv.bias": "conv.bias", "gn.weight": "gamma", "gn.bias": "beta",
    }  # fmt: skip


def test_what_only_model_new_has_is_left_alone():
    model = nn.Linear(3, 2)
    model.register_buffer("table", torch.arange(5.0))
    model.extra = nn.Parameter(torch.full((7,), 9.0))
    pairs, misfits = load_weights(model, {"w": torch.ones(2, 3), "b": torch.full((2,), 4.0)})
    assert not misfits and pairs == {"w": "weight", "b": "bias"}
    assert torch.equal(model.weight, torch.ones(2, 3)) and torch.equal(model.bias, torch.full((2,), 4.0))
    assert torch.equal(model.get_buffer("table"), torch.arange(5.0))
    assert torch.equal(model.get_parameter("extra"), torch.full((7,), 9.0))


def test_buffers_of_the_same_shape_are_left_out_if_the_parameters_suffice():
    """Is a table between two parameters of its shape not taken for one of them, and a guess refused as before?"""
    state, own = shapes(weight=(4,), bias=(4,)), shapes(gamma=(4,), table=(4,), beta=(4,))
    assert match_weights(state, own, {"gamma", "beta"}) == ({"weight": "gamma", "bias": "beta"}, "")
    assert match_weights(state, own, {"gamma", "table", "beta"})[1]
    assert match_weights(state, own, {"gamma"})[1]
    model = nn.Module()
    model.register_buffer("table", torch.zeros(2))
    model.register_parameter("gamma", nn.Parameter(torch.zeros(2)))
    assert load_weights(model, {"w": torch.ones(2)}) == ({"w": "gamma"}, "")
    assert torch.equal(model.get_parameter("gamma"), torch.ones(2))


@pytest.mark.parametrize(
    ("state", "own", "sentence"),
    [
        (shapes(w=(4,)), {}, "ModelNew has no w, of shape (4,)"),
        (shapes(w=(4,)), shapes(w=(5,)), "w is (4,) in Model and (5,) in ModelNew"),
        (
            shapes(w=(4,)), shapes(a=(4,), b=(4,)),
            "of shape (4,), Model has w and ModelNew has a, b",
        ),
        (shapes(w=(4,), b=(4,)), shapes(w=(4,)), "ModelNew has no b, of shape (4,)"),
        (shapes(w=(4,), b=(4,)), shapes(a=(4,)), "of shape (4,), Model has w, b and ModelNew has only a"),
    ],
)  # fmt: skip
def test_a_weight_without_a_counterpart_is_named(state, own, sentence):
    assert match_weights(state, own)[1] == sentence


def test_nothing_is_copied_where_one_weight_does_not_fit():
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()
    assert load_weights(model, {"weight": torch.ones(2, 3), "bias": torch.ones(3)})[1]
    assert torch.equal(model.weight, before)


def test_a_model_that_is_no_module_has_no_weights():
    assert load_weights(object(), {}) == ({}, "")
    assert load_weights(object(), {"w": torch.ones(1)})[1] == "ModelNew has no w, of shape (1,)"
