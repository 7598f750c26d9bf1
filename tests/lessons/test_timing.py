"""Do the kernels of benchmarks/timing/timing.py do what it says, and does its data file show what lesson 10 says?"""

import json
import re
import statistics
from pathlib import Path

import pytest
import torch

import simt
from benchmarks.timing import timing

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "benchmarks" / "data" / "timing.json"

PARTS = timing.ALONE + timing.TOGETHER
median = statistics.median


@pytest.fixture(scope="module")
def kernels():
    return simt.load_inline("timing_kernels", timing.CPP, timing.CUDA, functions=timing.FUNCTIONS)


@pytest.fixture(scope="module")
def data():
    if not DATA.exists():
        pytest.skip("python benchmarks/timing/timing.py has not been run on a GPU yet")
    return json.loads(DATA.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 252, 1024, 4100])
def test_scale_touches_each_element_once(kernels, n):
    """Is every element written, from its own, so that the bytes are 8 a float?"""
    x, y = torch.rand(n), torch.full((n,), float("nan"))
    with simt.check() as report:
        kernels.scale(x, y)
    assert torch.equal(y, 2 * x + 1) and not report.findings


@pytest.mark.slow
def test_chains_does_so_many_operations(kernels):
    """Are OPERATIONS what one thread does in a round: eight multiply-adds, and their sum what is stored?"""
    y = torch.empty(256)
    kernels.chains(y, 3)
    expected = torch.zeros(256, dtype=torch.float64)
    for k in range(8):
        a = torch.arange(256, dtype=torch.float64) + k
        for _ in range(3):
            a = a * 0.5 + 1
        expected += a
    torch.testing.assert_close(y.double(), expected, rtol=1e-6, atol=0)
    counts = []
    for rounds in (1, 11):
        with simt.count() as counted:
            kernels.chains(y, rounds)
        counts.append(counted.launches[0].counters.flops)
    assert (counts[1] - counts[0]) / 10 / 256 == timing.OPERATIONS


def test_its_head_names_every_part():
    """Is each part that is measured described at the head, in that order, and no other?"""
    assert timing.__doc__ is not None
    described = re.findall(r"^    (\w+)  +\S", timing.__doc__, re.MULTILINE)
    assert described == [part.__name__ for part in PARTS]


def test_the_file_is_complete(data):
    """Has the data file every part, and does it say on what it was measured?"""
    assert list(data) == ["machine", *(part.__name__ for part in PARTS)]
    assert {"date", "gpu", "torch", "nvcc"} <= set(data["machine"])


def test_it_shows_what_the_lesson_says(data):
    """Are launches quick without a wait, first calls slow, a warm L2 fast while the data fit, another stream unseen,
    zeros kind?
    """
    assert 5 * median(data["sync"]["without"]) < median(data["sync"]["events"]) < median(data["sync"]["with"])
    assert median(data["sync"]["row"]) < median(data["sync"]["events"])
    costs = {name: median(times) for name, times in data["overhead"].items()}
    assert costs["behind"] < costs["row"] < min(costs["events"], costs["host"])
    assert all(times[0] > 5 * median(times[10:]) for times in data["first"]["processes"])
    assert data["clocks"]["mhz_idle"] < data["clocks"]["mhz_program"] == data["clocks"]["mhz_after"]
    assert data["clocks"]["launches"][0] > 2 * median(data["clocks"]["launches"][-100:])
    gain = {row["bytes"] >> 20: row["cold"] / row["warm"] for row in data["l2"]["rows"]}
    assert 1.4 < gain[32] < 1.7 and all(abs(gain[megabytes] - 1) < 0.05 for megabytes in (64, 128, 256, 512))
    hidden, honest = median(data["streams"]["hidden_events"]), median(data["streams"]["honest_events"])
    assert hidden < honest / 5 and median(data["streams"]["hidden_host"]) > honest


def test_the_paired_times_are_those_of_known_ratios(data):
    """Does a kernel differ from its copy by less than a percent, and surely from one with 3 % more to do, though by
    less than 3 %?
    """
    from grader.judging import clock

    samples = data["samples"]
    assert len(samples["kernel"]) == len(samples["same"]) == len(samples["more"]) >= 500
    same = clock.ratio("its copy", samples["same"], samples["kernel"])
    more = clock.ratio("3 % more", samples["more"], samples["kernel"])
    assert abs(same.speedup - 1) < 0.01
    assert more.low > 1.01 and more.high < 1.03


def test_zeros_are_multiplied_faster(data):
    """Does the same product take longer with normal numbers, at a lower clock?"""
    found = data["contents"]
    assert median(found["zeros"]) < 0.95 * median(found["normal"])
    assert median(mhz for mhz, _ in found["zeros_mhz_watts"]) > median(mhz for mhz, _ in found["normal_mhz_watts"])
