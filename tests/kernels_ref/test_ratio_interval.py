"""Is the interval of the exercise ratio_interval the one that the grader itself reports?"""

import importlib.util
import math

import pytest
import torch

import simt
from grader.judging import clock
from grader.paths import KERNELS_REF

ON_CPU = simt.enable()
DEVICE = "cpu" if ON_CPU else "cuda"


def module(file):
    spec = importlib.util.spec_from_file_location(
        f"ratio_interval_{file}", KERNELS_REF / "ratio_interval" / f"{file}.py"
    )
    assert spec is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("rounds", [1, 2, 5, 6, 12, 24, 25, 101, 400])
def test_it_is_the_clock_s(rounds):
    """Do model and reference give clock.ratio's median and ends, for few rounds and many, odd and even?"""
    generator = torch.Generator().manual_seed(rounds)
    x = 1 + torch.rand(1, 2, 1, rounds, generator=generator)
    expected = clock.ratio("baseline", x[0, 0, 0].tolist(), x[0, 1, 0].tolist())
    middle = expected.speedup
    if rounds % 2 == 0:  # the clock takes the mean of two logarithms, the exercise that of two ratios
        ordered = sorted(math.log(b / c) for b, c in zip(x[0, 0, 0].tolist(), x[0, 1, 0].tolist()))
        middle = (math.exp(ordered[rounds // 2 - 1]) + math.exp(ordered[rounds // 2])) / 2
    for file, name in (("model", "Model"), ("solution", "ModelNew")):
        got = getattr(module(file), name)()(x.to(DEVICE)).flatten().tolist()
        assert got == pytest.approx([middle, expected.low, expected.high], rel=1e-5)
