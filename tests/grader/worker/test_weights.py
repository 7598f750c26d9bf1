"""Does every weight of Model reach the one of ModelNew that an author would expect, and no other?"""

import pytest
import torch
from torch import nn

from grader.worker.weights import list_buffers, load_weights, match_weights


def match(state, own, *rest):
    """Return the pairs and the misfits."""
    found = match_weights(state, own, *rest)
    return found.pairs, found.misfits


def load(model, state, *rest):
    found = load_weights(model, state, *rest)
    return found.pairs, found.misfits


def shapes(**given):
    return {name.replace("__", "."): torch.zeros(shape) for name, shape in given.items()}


def test_the_same_names_are_taken_whatever_their_order():
    state, own = shapes(weight=(4,), bias=(4,)), shapes(bias=(4,), weight=(4,))
    assert match(state, own) == ({"weight": "weight", "bias": "bias"}, "")


def test_other_names_are_paired_by_shape_in_order():
    """Is a weight that has its own name left out of the pairing?"""
    state = shapes(conv__weight=(8, 3), conv__bias=(8,), gn__weight=(8,), gn__bias=(8,))
    own = shapes(gamma=(8,), beta=(8,), conv__bias=(8,), kernel=(8, 3))
    pairs, misfits = match(state, own)
    assert not misfits
    assert pairs == {
        "conv.weight": "kernel", "conv.bias": "conv.bias", "gn.weight": "gamma", "gn.bias": "beta",
    }  # fmt: skip


def test_what_only_model_new_has_is_left_alone():
    model = nn.Linear(3, 2)
    model.register_buffer("table", torch.arange(5.0))
    model.extra = nn.Parameter(torch.full((7,), 9.0))
    pairs, misfits = load(model, {"w": torch.ones(2, 3), "b": torch.full((2,), 4.0)})
    assert not misfits and pairs == {"w": "weight", "b": "bias"}
    assert torch.equal(model.weight, torch.ones(2, 3)) and torch.equal(model.bias, torch.full((2,), 4.0))
    assert torch.equal(model.get_buffer("table"), torch.arange(5.0))
    assert torch.equal(model.get_parameter("extra"), torch.full((7,), 9.0))


def test_buffers_of_the_same_shape_are_left_out_if_the_parameters_suffice():
    """Is a table between two parameters of its shape not taken for one of them, and a guess refused as before?"""
    state, own = shapes(weight=(4,), bias=(4,)), shapes(gamma=(4,), table=(4,), beta=(4,))
    assert match(state, own, {"gamma", "beta"}) == ({"weight": "gamma", "bias": "beta"}, "")
    assert match(state, own, {"gamma", "table", "beta"})[1]
    assert match(state, own, {"gamma"})[1]
    model = nn.Module()
    model.register_buffer("table", torch.zeros(2))
    model.register_parameter("gamma", nn.Parameter(torch.zeros(2)))
    assert load(model, {"w": torch.ones(2)}) == ({"w": "gamma"}, "")
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
    assert match(state, own)[1] == sentence


def test_nothing_is_copied_where_one_weight_does_not_fit():
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()
    assert load(model, {"weight": torch.ones(2, 3), "bias": torch.ones(3)})[1]
    assert torch.equal(model.weight, before)


def test_a_model_that_is_no_module_has_no_weights():
    assert load(object(), {}) == ({}, "")
    assert load(object(), {"w": torch.ones(1)})[1] == "ModelNew has no w, of shape (1,)"


NORM = shapes(
    bn__weight=(4,), bn__bias=(4,), bn__running_mean=(4,), bn__running_var=(4,), bn__num_batches_tracked=()
)  # fmt: skip
STATISTICS = ["bn.running_mean", "bn.running_var", "bn.num_batches_tracked"]


@pytest.mark.parametrize(
    ("own", "parameters", "others", "missing"),
    [
        (shapes(w=(4,), b=(4,)), ["w", "b"], {}, STATISTICS),
        (
            shapes(w=(4,), b=(4,), mean=(4,), var=(4,)), ["w", "b"],
            {"bn.running_mean": "mean", "bn.running_var": "var"}, STATISTICS[2:],
        ),
        (
            shapes(w=(4,), b=(4,), bn__running_var=(4,)), ["w", "b"],
            {"bn.running_var": "bn.running_var"}, [STATISTICS[0], STATISTICS[2]],
        ),
        (shapes(w=(4,), b=(4,), bn__running_mean=(5,)), ["w", "b"], {}, STATISTICS),
        (shapes(w=(4,), table=(4,), b=(4,)), ["w", "b"], {}, STATISTICS),
        (shapes(w=(4,), b=(4,)), [], {}, STATISTICS),
    ],
)  # fmt: skip
def test_a_buffer_of_model_is_not_required(own, parameters, others, missing):
    """Are parameters matched with or without buffers, and buffers filled where ModelNew has the like?"""
    found = match_weights(NORM, own, parameters, STATISTICS)
    assert (found.misfits, found.missing) == ("", missing)
    assert found.pairs == {"bn.weight": "w", "bn.bias": "b"} | others


@pytest.mark.parametrize("own", [shapes(w=(4,), mean=(4,)), shapes(w=(4,), b=(4,), c=(4,)), shapes(w=(3,), b=(4,))])
def test_a_parameter_of_model_is_required_all_the_same(own):
    found = match_weights(NORM, own, [name for name in own if name != "mean"], STATISTICS)
    assert "bn.weight, bn.bias" in found.misfits and "running" not in found.misfits


def test_parameters_are_not_paired_with_buffers_of_another_layer():
    """Does a ModelNew that keeps all parameters before all buffers get those of each layer?"""
    layers = [f"{n}.{name}" for n in (0, 1) for name in ("weight", "bias", "running_mean", "running_var")]
    own = ["w0", "b0", "w1", "b1", "m0", "v0", "m1", "v1"]
    zero = torch.zeros(4)
    state, buffers = dict.fromkeys(layers, zero), [name for name in layers if "running" in name]
    found = match_weights(state, dict.fromkeys(own, zero), own[:4], buffers)
    by_layer = ["w0", "b0", "m0", "v0", "w1", "b1", "m1", "v1"]
    assert found.pairs == dict(zip(layers, by_layer, strict=True)) and not found.missing


def test_a_buffer_that_is_not_saved_takes_the_one_of_its_name_alone():
    """Is a buffer with persistent=False filled by name, and is one of another name left as its constructor made it?"""
    model = nn.Module()
    model.register_parameter("scale", nn.Parameter(torch.zeros(3)))
    model.register_buffer("shift", torch.zeros(3), persistent=False)
    model.register_buffer("table", torch.arange(3.0), persistent=False)
    state = {"gain": torch.ones(3), "shift": torch.full((3,), 2.0), "offset": torch.full((3,), 9.0)}
    found = load_weights(model, state, ["shift", "offset"])
    assert found.pairs == {"gain": "scale", "shift": "shift"} and found.missing == ["offset"] and not found.misfits
    assert torch.equal(model.get_parameter("scale"), torch.ones(3))
    assert torch.equal(model.get_buffer("shift"), torch.full((3,), 2.0))
    assert torch.equal(model.get_buffer("table"), torch.arange(3.0))


def test_buffers_are_listed_whether_saved_or_not():
    model = nn.Sequential(nn.BatchNorm1d(2))
    model.register_buffer("table", torch.zeros(1), persistent=False)
    assert list_buffers(model) == ["table", "0.running_mean", "0.running_var", "0.num_batches_tracked"]
    assert list_buffers(lambda x: x) == []
