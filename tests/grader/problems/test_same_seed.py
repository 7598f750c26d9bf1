"""Do weights from a shared seed equal those that a constructor draws from it, and tell nothing of the inputs?"""

import torch

from grader.problems import problem
from grader.problems.cases import Case
from grader.problems.draws import derive_seed, derive_weight_seed
from tests.grader.problems.linear import LINEAR


def test_weights_are_what_the_constructor_draws_from_the_seed(write):
    """Does constructing Model after torch.manual_seed give the same layer, and are the inputs the usual ones?"""
    read = problem.read(write(LINEAR))
    usual, shared = read.instantiate(Case("any"), 5), read.share_seed().instantiate(Case("any"), 5)
    assert usual.weight_seed is None and shared.weight_seed is not None and not read.same_seed
    torch.manual_seed(shared.weight_seed)
    own = read.module({}).Model(*shared.init_args, **shared.init_kwargs)
    for instance, alike in ((shared, True), (usual, False)):
        assert (
            all(
                torch.equal(a, b)
                for a, b in zip(own.layer.parameters(), instance.model.get_submodule("layer").parameters())
            )
            is alike
        )
    assert torch.equal(usual.inputs[0], shared.inputs[0])


NORM = LINEAR.replace(
    "nn.Linear(inner, outer)", "nn.Sequential(nn.Linear(inner, outer), nn.LayerNorm(outer), nn.PReLU())"
)


def test_parameters_that_no_constructor_draws_are_moved_and_given(write):
    """Are those that begin as 1, 0 and 0.25 other numbers, which a submission loads, and all others not?"""
    shared = problem.read(write(NORM)).share_seed().instantiate(Case("any"), 5)
    constants = ["gain", "layer.1.weight", "layer.1.bias", "layer.2.weight"]
    assert sorted(shared.weights()) == sorted(constants) != sorted(shared.model.state_dict())
    for name, start in zip(constants, (1, 1, 0, 0.25)):
        assert (shared.weights()[name] != start).all(), name


def test_the_seed_of_weights_is_far_from_that_of_inputs():
    """Is it another for each case, and not one of the neighbours of the seed that inputs are drawn from?"""
    seeds = [derive_weight_seed(seed, Case(name)) for seed in (1, 2) for name in ("a", "b")]
    assert len(set(seeds)) == 4
    assert all(
        abs(one - derive_seed(seed, Case(name))) > 1000 for one in seeds for seed in (1, 2) for name in ("a", "b")
    )
