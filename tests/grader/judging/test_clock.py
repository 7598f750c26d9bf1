"""Does the clock find a known ratio through noise, say so when it cannot, and keep its rules of fairness?"""

import math
import random
from collections.abc import Callable

import pytest
import torch

from grader.judging import clock


class World:
    """A clock that only moves when a command works. noise: relative spread of each batch's time."""

    def __init__(self, seed=0):
        self.time = 0.0
        self.log = []
        self.random = random.Random(seed)

    def now(self):
        return self.time

    def flush(self):
        self.log.append("flush")
        self.time += 0.01  # untimed: must appear nowhere

    def command(self, name, seconds, noise=0.0, overhead=50e-6):
        return Fake(self, name, seconds, noise, overhead)


class Fake:
    """A command that takes `seconds` a call and `overhead` a batch."""

    def __init__(self, world: World, name, seconds: float | Callable[[World], float], noise, overhead):
        self.world, self.name, self.seconds, self.noise, self.overhead = world, name, seconds, noise, overhead
        self.batches = []

    def run(self, batch):
        self.batches.append(list(batch))
        self.world.log.append(self.name)
        seconds = self.seconds(self.world) if callable(self.seconds) else self.seconds
        jitter = math.exp(self.world.random.gauss(0, self.noise)) if self.noise else 1.0
        self.world.time += self.overhead + len(batch) * seconds * jitter

    def empty(self):
        self.world.log.append(self.name + " empty")
        self.world.time += self.overhead


def measured(world, candidate, baselines, inputs=8, **options):
    options = {"seed": 1, "now": world.now, "flush": world.flush} | options
    return clock.measure(candidate, baselines, inputs, **options)


def test_times_and_ratio_without_noise_are_exact():
    """Are known times found, with the way there and back subtracted, and their ratio?"""
    world = World()
    found = measured(world, world.command("mine", 2e-3), {"eager": world.command("eager", 6e-3)})
    assert found.candidate.median_ms == pytest.approx(2.0)
    assert found.baselines[0].median_ms == pytest.approx(6.0)
    assert found.ratios[0].speedup == pytest.approx(3.0)
    assert found.conclusive and found.notes == []
    assert found.rounds == clock.FEWEST_ROUNDS


@pytest.mark.parametrize("noise", [0.005, 0.03, 0.1])
def test_a_noisy_ratio_is_found_with_its_interval(noise):
    """Is the true ratio in the interval, and the interval as narrow as promised?"""
    world = World(seed=3)
    baselines = {"eager": world.command("eager", 3e-3, noise)}
    found = measured(world, world.command("mine", 2e-3, noise), baselines, most_seconds=1e9)
    (ratio,) = found.ratios
    assert ratio.conclusive
    assert ratio.low <= 1.5 <= ratio.high
    assert math.log(ratio.high / ratio.low) / 2 <= clock.NARROW


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """Over many measurements, does the 95 % interval of a ratio miss the truth in about 5 % of them, or fewer?"""
    draw = random.Random(7)
    missed = 0
    for _ in range(400):
        pairs = [(1.3 * math.exp(draw.gauss(0, 0.2)), math.exp(draw.gauss(0, 0.2))) for _ in range(25)]
        ratio = clock.ratio("x", [b for b, _ in pairs], [c for _, c in pairs])
        missed += not ratio.low <= 1.3 <= ratio.high
    assert 0 < missed / 400 < 0.07


def test_a_ratio_that_cannot_be_told_is_inconclusive():
    """Do hopeless noise and too little time end in a sentence and not in a figure?"""
    world = World()
    found = measured(
        world, world.command("mine", 2e-3, 0.8), {"eager": world.command("eager", 2e-3, 0.8)}, most_seconds=2
    )
    assert not found.conclusive
    assert "uncertain" in found.notes[0]


def test_slow_drift_cancels_in_the_ratio():
    """Does a device that slows down by half over the measurement leave the ratio alone?"""
    world = World()
    slower = lambda seconds: lambda w: seconds * (1 + w.time)  # noqa: E731
    baselines = {"eager": world.command("eager", slower(4e-3))}
    found = measured(world, world.command("mine", slower(2e-3)), baselines)
    assert found.ratios[0].speedup == pytest.approx(2.0, rel=0.03)


def test_a_few_disturbed_rounds_do_not_move_the_result():
    """Does one batch in ten that takes five times as long change median and ratio?"""
    world = World(seed=5)
    rough = lambda w: 2e-3 * (5 if w.random.random() < 0.1 else 1)  # noqa: E731
    found = measured(world, world.command("mine", rough), {"eager": world.command("eager", 4e-3)})
    assert found.candidate.median_ms == pytest.approx(2.0, rel=0.02)
    assert found.ratios[0].speedup == pytest.approx(2.0, rel=0.02)


def test_the_cache_is_flushed_before_every_timing():
    """After warming up, is each batch and each empty command preceded by a flush?"""
    world = World()
    measured(world, world.command("mine", 2e-3), {"eager": world.command("eager", 6e-3)})
    first = world.log.index("flush")
    timed = world.log[first:]
    assert len(timed) == 8 * clock.FEWEST_ROUNDS
    assert all(what == "flush" for what in timed[0::2]) and "flush" not in timed[1::2]


def test_turns_interleave_in_random_order():
    """Does every round time each command once, not always in the same order?"""
    world = World()
    measured(world, world.command("mine", 2e-3), {"eager": world.command("eager", 6e-3)})
    runs = [what for what in world.log[world.log.index("flush") :] if what in ("mine", "eager")]
    rounds = [tuple(runs[i : i + 2]) for i in range(0, len(runs), 2)]
    assert set(rounds) == {("mine", "eager"), ("eager", "mine")}


def test_a_batch_uses_each_input_once_and_all_commands_the_same():
    """Are the inputs of a batch distinct, and those of candidate and baseline the same?"""
    world = World()
    mine, eager = world.command("mine", 1e-4), world.command("eager", 3e-4)
    found = measured(world, mine, {"eager": eager}, inputs=16)
    assert found.batch == 16
    assert all(len(set(batch)) == 16 for batch in mine.batches[-found.rounds :])
    assert mine.batches[-found.rounds :] == eager.batches[-found.rounds :]


def test_long_calls_go_one_at_a_time():
    """Is a batch no longer than the clock needs?"""
    world = World()
    assert measured(world, world.command("mine", 0.02), {"eager": world.command("eager", 0.03)}).batch == 1


def test_a_time_below_the_floor_is_a_finding():
    """Is a kernel faster than memory allows reported?"""
    world = World()
    eager = world.command("eager", 6e-3)
    fast = measured(world, world.command("mine", 1e-3), {"eager": eager}, floor_ms=1.5)
    assert fast.below_floor and "cannot have been done" in fast.notes[0]
    assert not measured(world, world.command("mine", 2e-3), {"eager": eager}, floor_ms=1.5).below_floor


def test_inputs_are_refreshed_before_each_round():
    """Is the caller told before every round, outside the timing?"""
    world = World()
    calls = []

    def refresh():
        calls.append(1)
        world.time += 0.5

    found = measured(world, world.command("mine", 2e-3), {"eager": world.command("eager", 6e-3)}, refresh=refresh)
    assert len(calls) == found.rounds
    assert found.candidate.median_ms == pytest.approx(2.0)


def test_an_exception_of_a_command_passes_through():
    """Does a command that fails end the measurement with its own exception?"""
    world = World()

    def broken(w):
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        measured(world, world.command("mine", broken), {"eager": world.command("eager", 1e-3)})


def test_quartiles_are_those_of_the_sorted_times():
    """Are median and quartiles right for a list that can be checked by eye?"""
    assert clock.timing("x", [0.005, 0.001, 0.003, 0.002, 0.004]) == clock.Timing("x", 3.0, 2.0, 4.0, 5)


def test_calls_run_a_function_on_the_inputs_of_the_batch():
    """Does Calls hand each numbered input to its function, without recording gradients?"""
    seen = []
    calls = clock.Calls(lambda x: seen.append((x, torch.is_grad_enabled())), [("a",), ("b",), ("c",)])
    calls.run([2, 0])
    assert seen == [("c", False), ("a", False)]


def test_the_device_is_described():
    """Does the description name torch's version, on any machine?"""
    assert clock.describe_device()["torch"] == torch.__version__


def test_without_a_gpu_there_is_no_floor():
    """Is the floor None rather than a guess where there is no GPU?"""
    if not torch.cuda.is_available():
        assert clock.floor(10**9) is None and clock.copy_rate() is None


@pytest.mark.gpu
def test_a_copy_twice_as_long_is_half_as_fast():
    """On a GPU, is the ratio of one copy to two of them 2, and are both above the floor?"""
    inputs = [[torch.rand(2**26, device="cuda")] for _ in range(3)]
    once = clock.Calls(lambda x: x.clone(), inputs)
    twice = clock.Calls(lambda x: (x.clone(), x.clone()), inputs)
    found = clock.measure(once, {"twice": twice}, 3, floor_ms=clock.floor(2 * 2**26 * 4))
    assert found.ratios[0].speedup == pytest.approx(2.0, rel=0.05)
    assert found.conclusive and not found.below_floor


@pytest.mark.gpu
def test_the_gpu_is_described():
    """Are SMs, L2 and driver known on a GPU?"""
    known = clock.describe_device()
    assert isinstance(known["sms"], int) and isinstance(known["l2_bytes"], int)
    assert known["sms"] > 0 and known["l2_bytes"] > 0 and known["driver"]
