"""Does the clock find a known ratio through noise, say so when it cannot, and keep its rules of fairness?"""

import math
import random
import statistics
from collections.abc import Callable

import pytest
import torch

from grader.bench.times import EventTimer
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

    def __init__(self, world: World, name, seconds: float | Callable[[World], float], noise, overhead: float):
        self.world, self.name, self.seconds, self.noise, self.overhead = world, name, seconds, noise, overhead
        self.aside = self.answer = self.late = 0.0
        self.batches = []
        self.calls = None

    def prepare(self, batch):
        self.world.log.append(f"prepare {self.name}")
        self.world.time += 0.02  # untimed: must appear nowhere

    def run(self, batch):
        self.batches.append(list(batch))
        self.world.log.append(self.name)
        seconds = self.seconds(self.world) if callable(self.seconds) else self.seconds
        jitter = math.exp(self.world.random.gauss(0, self.noise)) if self.noise else 1.0
        work = len(batch[: self.calls]) * seconds * jitter
        late = abs(self.world.random.gauss(0, self.late)) if self.late else 0.0
        self.world.time += self.overhead + late + len(batch) * self.answer + work
        return clock.Turn(work if self.name == "way" else 0.0, self.aside)

    def settle(self, batch):
        assert list(batch) == self.batches[-1]
        self.world.log.append(f"settle {self.name}")
        self.world.time += 0.03


def measured(world, candidate, baselines, inputs=8, way=None, **options):
    options = {"seed": 1, "now": world.now, "flush": world.flush} | options
    return clock.measure(candidate, baselines, way or world.command("way", 5e-3), inputs, **options)


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


def test_repeated_measurements_of_a_time_agree():
    """Do ten measurements agree within 2 %, though rounds differ by 1.5 % and ratios would need few of them?"""
    found = []
    for seed in range(10):
        world = World(seed)
        mine = world.command("mine", 2e-3, 0.015)
        found.append(measured(world, mine, {"eager": world.command("eager", 6e-3)}).candidate.median_ms)
    assert max(found) / min(found) <= 1.02


def test_repeated_measurements_agree_though_the_way_scatters():
    """Do ten measurements agree within 2 % where the way, once told in few rounds, is off by more?"""
    found = []
    for seed in range(10):
        world = World(seed)
        way = world.command("way", 5e-3)
        way.late = 0.8e-3  # of batches of 16 ms
        found.append(measured(world, world.command("mine", 2e-3), {"eager": world.command("eager", 6e-3)}, way=way))
    assert max(one.candidate.median_ms for one in found) / min(one.candidate.median_ms for one in found) <= 1.02
    assert all(clock.FEWEST_ROUNDS < one.rounds <= clock.ENOUGH_ROUNDS for one in found)


def test_a_time_that_scatters_by_nature_is_not_measured_for_ever():
    """Does a kernel whose rounds go up and down with the whole machine end after some rounds, its ratio known?"""
    world, rounds = World(), []
    rough = lambda w: 2e-3 * (1 + 0.5 * math.sin(len(rounds)))  # noqa: E731
    baselines = {"eager": world.command("eager", rough)}
    found = measured(world, world.command("mine", rough), baselines, refresh=rounds.append)
    assert found.conclusive and found.rounds == clock.ENOUGH_ROUNDS
    found = measured(World(), world.command("mine", rough), baselines, refresh=rounds.append, enough_rounds=12)
    assert found.conclusive and found.rounds == clock.FEWEST_ROUNDS


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
    slower = lambda seconds: lambda w: seconds * (1 + w.time / 15)  # noqa: E731
    baselines = {"eager": world.command("eager", slower(4e-3))}
    found = measured(world, world.command("mine", slower(2e-3)), baselines)
    assert 1.5 <= 1 + world.time / 15 <= 1.7
    assert found.ratios[0].speedup == pytest.approx(2.0, rel=0.03)


def test_a_few_disturbed_rounds_do_not_move_the_result():
    """Does one batch in ten that takes five times as long change median and ratio?"""
    world = World(seed=5)
    rough = lambda w: 2e-3 * (5 if w.random.random() < 0.1 else 1)  # noqa: E731
    found = measured(world, world.command("mine", rough), {"eager": world.command("eager", 4e-3)})
    assert found.candidate.median_ms == pytest.approx(2.0, rel=0.02)
    assert found.ratios[0].speedup == pytest.approx(2.0, rel=0.02)


def test_the_way_to_a_trusted_worker_is_subtracted_and_no_one_elses():
    """Is what the trusted worker knows of its way subtracted from all, whatever way a slow candidate takes?"""
    world = World()
    mine = world.command("mine", 2e-3, overhead=10e-3)  # the candidate alone is slow to answer
    found = measured(world, mine, {"eager": world.command("eager", 6e-3)}, inputs=1)
    assert found.candidate.median_ms == pytest.approx(12 - 0.05)
    assert found.baselines[0].median_ms == pytest.approx(6.0)
    assert found.way_ms == pytest.approx(0.05)


@pytest.mark.parametrize("seconds, calls", [(1e-3, 20), (4e-3, 5), (5e-3, 4), (100e-3, 1), (1e-6, 20)])
def test_the_trusted_worker_works_as_long_as_the_candidate(seconds, calls):
    """Are its calls so many that they take what the candidate's batch takes, and no more than there are?"""
    world = World()
    way = world.command("way", seconds)
    found = measured(world, world.command("mine", 1.01e-3), {"eager": world.command("eager", 2.9e-3)}, 24, way)
    assert found.batch == 20
    assert way.calls == min(calls, found.batch)
    assert [len(batch) for batch in way.batches[-found.rounds :]] == [found.batch] * found.rounds


def test_what_each_result_takes_on_the_way_is_subtracted():
    """Though the trusted worker works on fewer inputs than the candidate?"""
    world = World()
    way, mine, eager = world.command("way", 6e-3), world.command("mine", 1e-3), world.command("eager", 6e-3)
    for command in (way, mine, eager):
        command.answer = 0.1e-3
    found = measured(world, mine, {"eager": eager}, 16, way)
    assert way.calls and way.calls < found.batch
    assert found.candidate.median_ms == pytest.approx(1.0) and found.baselines[0].median_ms == pytest.approx(6.0)


def test_what_was_spent_aside_is_left_out():
    world = World()
    mine = world.command("mine", 2e-3, overhead=0.010_05)
    mine.aside = 10e-3
    found = measured(world, mine, {"eager": world.command("eager", 6e-3)}, inputs=1)
    assert found.candidate.median_ms == pytest.approx(2.0) and found.ratios[0].speedup == pytest.approx(3.0)


def test_every_timing_is_prepared_flushed_run_and_settled():
    """After warming up, is each batch preceded by its preparation and a flush, and followed by what settles it?"""
    world = World()
    measured(world, world.command("mine", 2e-3), {"eager": world.command("eager", 6e-3)})
    first = world.log.index("flush") - 1
    timed = world.log[first:]
    assert len(timed) == 4 * 3 * clock.FEWEST_ROUNDS
    for prepared, flushed, ran, settled in zip(*(timed[i::4] for i in range(4)), strict=True):
        assert (prepared, flushed, settled) == (f"prepare {ran}", "flush", f"settle {ran}")


def test_turns_interleave_in_random_order():
    """Does every round time each command once, not always in the same order?"""
    world = World()
    baselines = {name: world.command(name, 6e-3) for name in ("eager", "compiled")}
    measured(world, world.command("mine", 2e-3), baselines)
    names = {"mine", "way", *baselines}
    runs = [what for what in world.log[world.log.index("flush") :] if what in names]
    rounds = [tuple(runs[i : i + 4]) for i in range(0, len(runs), 4)]
    assert all(set(each) == names for each in rounds)
    assert len(set(rounds)) >= 4


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


@pytest.mark.parametrize("slow", ["mine", "eager"])
@pytest.mark.parametrize("times, batch", [(2.9, 20), (10, 6), (100, 5)])
def test_a_slow_command_does_not_make_the_rounds_long(slow, times, batch):
    """Is a batch of 20 ms shortened where the other command takes much longer, but not to less than 5 ms?"""
    world = World()
    seconds = {"mine": 1.01e-3, "eager": 1.01e-3} | {slow: times * 1.01e-3}
    commands = {name: world.command(name, one) for name, one in seconds.items()}
    found = measured(world, commands["mine"], {"eager": commands["eager"]}, 24)
    assert found.batch == batch


def test_the_seconds_of_each_round_are_kept():
    """Can ratios between the baselines be made of what is returned?"""
    world = World()
    baselines = {"eager": world.command("eager", 6e-3), "compiled": world.command("compiled", 3e-3)}
    found = measured(world, world.command("mine", 2e-3), baselines)
    assert clock.ratio("", found.seconds["compiled"], found.seconds["eager"]).speedup == pytest.approx(0.5)
    assert {name: len(seconds) for name, seconds in found.seconds.items()} == dict.fromkeys(
        (clock.CANDIDATE, "eager", "compiled"), found.rounds
    )


def test_a_time_below_the_bound_is_a_finding():
    """Is a kernel faster than memory allows reported?"""
    world = World()
    eager = world.command("eager", 6e-3)
    fast = measured(world, world.command("mine", 1e-3), {"eager": eager}, bound_ms=1.5)
    assert fast.below_bound and "cannot have been done" in fast.notes[0]
    assert not measured(world, world.command("mine", 2e-3), {"eager": eager}, bound_ms=1.5).below_bound


def test_inputs_are_refreshed_before_each_round_and_checked_after_it():
    """Is the caller told before and after every round, with the numbers that the round uses, outside the timing?"""
    world = World()
    calls = []

    def note(what):
        def called(numbers):
            calls.append((what, list(numbers)))
            world.time += 0.5

        return called

    mine = world.command("mine", 2e-3)
    eager = {"eager": world.command("eager", 6e-3)}
    found = measured(world, mine, eager, refresh=note("new"), check=note("look"))
    rounds = calls[-2 * found.rounds :]
    assert [what for what, _ in rounds] == ["new", "look"] * found.rounds
    assert [numbers for what, numbers in rounds if what == "new"] == mine.batches[-found.rounds :]
    assert [numbers for what, numbers in rounds if what == "look"] == mine.batches[-found.rounds :]
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


def test_the_device_is_described():
    """Does the description name torch's version, on any machine?"""
    assert clock.describe_device()["torch"] == torch.__version__


def test_without_a_gpu_there_is_no_bound():
    """Is the bound None rather than a guess where there is no GPU?"""
    if not torch.cuda.is_available():
        assert clock.roofline_bound(10**9) is None and clock.copy_rate() is None


class OnGpu:
    """A function as a command in this process."""

    def __init__(self, function, inputs):
        self.function, self.inputs = function, inputs
        self.calls: int | None = None

    def prepare(self, batch):
        pass

    def run(self, batch):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for number in batch[: self.calls]:
            self.function(*self.inputs[number])
        end.record()
        clock.synchronize()
        return clock.Turn(start.elapsed_time(end) / 1e3)

    def settle(self, batch):
        pass


@pytest.mark.gpu
def test_a_copy_twice_as_long_is_half_as_fast():
    """On a GPU, is the ratio of one copy to two of them 2, and are both above the bound?"""
    inputs = [[torch.rand(2**26, device="cuda")] for _ in range(3)]
    once = OnGpu(lambda x: x.clone(), inputs)
    twice, way = (OnGpu(lambda x: (x.clone(), x.clone()), inputs) for _ in range(2))
    found = clock.measure(once, {"twice": twice}, way, 3, bound_ms=clock.roofline_bound(2 * 2**26 * 4))
    assert found.ratios[0].speedup == pytest.approx(2.0, rel=0.05)
    assert found.conclusive and not found.below_bound


@pytest.mark.gpu
def test_the_gpu_is_described():
    """Are SMs, L2 and driver known on a GPU?"""
    known = clock.describe_device()
    assert isinstance(known["sms"], int) and isinstance(known["l2_bytes"], int)
    assert known["sms"] > 0 and known["l2_bytes"] > 0 and known["driver"]


@pytest.mark.gpu
def test_flush_leaves_a_cache_that_is_neither_warm_nor_dirty():
    """Is a read of a small tensor slow after a flush, and one of a large tensor not slowed by what the flush wrote?"""
    size, flush = torch.cuda.get_device_properties().L2_cache_size // 4, clock.Flush()
    small, large, written = (torch.zeros(times * size // 8, device="cuda") for times in (2, 16, 16))

    def measure(before, read):
        timer = EventTimer(before)
        return statistics.median(timer(read) for _ in range(31))

    assert measure(lambda: None, small.sum) < 0.9 * measure(flush.queue, small.sum)
    assert measure(flush.queue, large.sum) < 0.95 * measure(written.zero_, large.sum)
