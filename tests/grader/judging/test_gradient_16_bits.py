"""Gradients of 16-bit numbers: is what FlashAttention computes right, and are mistakes of its kind not?"""

import pytest
import torch

from grader.judging import tolerance
from grader.judging.gradients import compute_expected_gradients
from grader.judging.trial import prepare_trial
from grader.paths import KERNELS_REF
from grader.problems import problem

PROBLEM = problem.read(KERNELS_REF / "attention" / "model.py")
CASES = {case.name: case for case in PROBLEM.cases()}
NAMES = sorted(set(CASES) - {"one token"})  # whose gradients of q and k are 0


def backward(q, k, v, go, causal, weights=torch.half, uses_dot=True, lse_dtype=torch.float32):
    """The gradients by the formulas of FlashAttention, 2022: forward's result and what is multiplied have 16 bits."""
    q, k, v, go = (x.float() for x in (q, k, v, go))
    scale = q.shape[-1] ** -0.5
    scores = q @ k.mT * scale
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    lse = scores.logsumexp(-1, keepdim=True).to(lse_dtype).float()
    p = (scores - lse).exp()
    out = (p.to(weights).float() @ v).half().float()
    dot = (go * out).sum(-1, keepdim=True) if uses_dot else 0.0
    gs = (p * (go @ v.mT - dot)).to(weights).float() * scale
    return [x.half() for x in (gs @ k, gs.mT @ q, p.to(weights).float().mT @ go)]


def wrong(name: str, seed: int, **options) -> list[str]:
    """The inputs whose gradients compare() does not accept in a case."""
    case = CASES[name]
    trial = prepare_trial(case, PROBLEM.instantiate(case, seed, "cpu"))
    right = compute_expected_gradients(PROBLEM, trial, seed)
    got = backward(*trial.instance.inputs, *right.upstream, *trial.instance.init_args, **options)
    return [
        input_
        for number, input_ in enumerate(right.names)
        if tolerance.compare(
            got[number],
            right.expected[number],
            right.eager[number],
            case,
            right.noise[number],
            right.reductions[number],
        )
    ]


@pytest.mark.parametrize("name", NAMES)
def test_flash_attention_is_right(name):
    """Is a backward pass that knows forward's result in 16 bits alone right, with every seed?"""
    for seed in range(5):
        assert not wrong(name, seed)


@pytest.mark.parametrize(
    ("options", "inputs"),
    [
        ({"uses_dot": False}, ["q", "k"]),
        ({"lse_dtype": torch.bfloat16}, ["v"]),
        ({"weights": torch.float8_e4m3fn}, ["v"]),
    ],
)
def test_mistakes_are_not(options, inputs):
    """Is a forgotten sum, or a number of too few bits, wrong in most cases?"""
    found = [wrong(name, 1, **options) for name in NAMES]
    assert sum(set(inputs) <= set(each) for each in found) > len(found) / 2, found
