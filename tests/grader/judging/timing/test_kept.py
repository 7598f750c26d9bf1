"""Are ratios of baselines to eager kept, used only where they hold, and said to be kept?"""

import json
import os
import random
import time
from types import SimpleNamespace

import pytest

from grader.judging import clock
from grader.judging.stages import fast
from grader.judging.timing import kept
from grader.judging.timing.others import COMPILED, EAGER, REFERENCE
from grader.verdict import Stage, StageName, Status

SECONDS = {clock.CANDIDATE: 4e-3, REFERENCE: 8e-3, EAGER: 2e-3, COMPILED: 1e-3}


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """Return what find() and keep() need of a Bench; `compared` may be changed."""
    made = SimpleNamespace(context=SimpleNamespace(compared=[REFERENCE, EAGER, COMPILED]))
    monkeypatch.setattr(kept, "_find_file", lambda bench: tmp_path / "ratios" / "of_one.json")
    monkeypatch.setattr(kept, "list_compared", lambda context: context.compared)
    return made


def measure(names, eager=SECONDS[EAGER], noise=0.0):
    """Return a measurement of 16 rounds next to baselines; eager's time may be another."""
    times = SECONDS | {EAGER: eager}
    seconds = {
        name: [times[name] * (1 + noise * random.Random(f"{name} {n}").uniform(-1, 1)) for n in range(16)]
        for name in (clock.CANDIDATE, *names)
    }
    ratios = [clock.ratio(name, seconds[name], seconds[clock.CANDIDATE]) for name in names]
    timings = [clock.timing(name, seconds[name]) for name in names]
    own = clock.timing(clock.CANDIDATE, seconds[clock.CANDIDATE])
    return clock.Measurement(own, timings, ratios, 16, 4, None, False, ["odd."], seconds=seconds)


def test_a_measurement_next_to_eager_is_completed(bench):
    """Do times follow eager's, and ratios the candidate's, as if all had been timed?"""
    kept.keep(bench, measure(bench.context.compared))
    known = kept.find(bench)
    assert known is not None
    now = measure([EAGER], eager=2.04e-3)
    known.check(now)
    found = known.complete(now)
    assert [timing.name for timing in found.baselines] == [ratio.baseline for ratio in found.ratios]
    assert {timing.name: timing.median_ms for timing in found.baselines} == pytest.approx(
        {REFERENCE: 8.16, EAGER: 2.04, COMPILED: 1.02}
    )
    assert {ratio.baseline: ratio.speedup for ratio in found.ratios} == pytest.approx(
        {REFERENCE: 2.04, EAGER: 0.51, COMPILED: 0.255}
    )
    assert found.conclusive and found.candidate == now.candidate
    assert found.notes[-1] == "odd." and "measured on 20" in found.notes[0]
    assert REFERENCE in found.notes[0] and COMPILED in found.notes[0] and "eager" in found.notes[0]


def test_a_ratio_of_ratios_is_as_unsure_as_both(bench):
    kept.keep(bench, measure(bench.context.compared, noise=0.004))
    known = kept.find(bench)
    assert known is not None
    factor, now = known.factors[COMPILED], measure([EAGER], noise=0.004)
    found = known.complete(now).ratios[-1]
    assert factor and factor.low < factor.median < factor.high
    assert found.high / found.low > max(factor.high / factor.low, now.ratios[0].high / now.ratios[0].low)
    assert found.conclusive


def test_an_uncertain_ratio_is_called_uncertain(bench):
    """Is it kept, and what follows from it no figure?"""
    kept.keep(bench, measure(bench.context.compared, noise=0.1))
    known = kept.find(bench)
    assert known is not None
    found = known.complete(measure([EAGER]))
    assert [ratio.baseline for ratio in found.ratios if not ratio.conclusive] == [REFERENCE, COMPILED]
    assert not found.conclusive
    assert sum("is uncertain" in note for note in found.notes) == 2


def test_a_ratio_that_says_nothing_is_not_kept(bench):
    kept.keep(bench, measure(bench.context.compared, noise=0.6))
    assert kept.find(bench) is None


def test_eager_with_another_time_is_noticed(bench):
    kept.keep(bench, measure(bench.context.compared))
    known = kept.find(bench)
    assert known is not None
    known.check(measure([EAGER], eager=2.05e-3))
    for eager in (1.9e-3, 2.1e-3):
        with pytest.raises(kept.Drifted):
            known.check(measure([EAGER], eager=eager))


def test_a_short_call_may_differ_by_some_microseconds():
    """Is what the host takes for a call, which varies from process to process, no drift?"""
    kept.Kept(0.0, 0.010, {}).check(measure([EAGER], eager=0.013e-3))
    with pytest.raises(kept.Drifted):
        kept.Kept(0.0, 0.010, {}).check(measure([EAGER], eager=0.014e-3))


def test_a_baseline_that_does_not_run_is_not_tried_again(bench):
    """Is torch.compile left out of later measurements, too, where it failed in the first?"""
    kept.keep(bench, measure([REFERENCE, EAGER]))
    known = kept.find(bench)
    assert known is not None and known.factors[COMPILED] is None
    assert [timing.name for timing in known.complete(measure([EAGER])).baselines] == [REFERENCE, EAGER]


def test_the_reference_solution_itself_is_not_compared_with_itself(bench):
    """Are its ratios to the others kept, its own left as they were, and used again for other files?"""
    kept.keep(bench, measure(bench.context.compared))
    bench.context.compared = [EAGER, COMPILED]
    known = kept.find(bench)
    assert known is not None and set(known.factors) == {COMPILED}
    kept.keep(bench, measure(bench.context.compared, eager=2.01e-3))
    bench.context.compared = [REFERENCE, EAGER, COMPILED]
    known = kept.find(bench)
    assert known is not None and set(known.factors) == {REFERENCE, COMPILED}


def test_an_old_ratio_is_dropped_where_eager_has_changed(bench):
    kept.keep(bench, measure(bench.context.compared))
    bench.context.compared = [EAGER, COMPILED]
    kept.keep(bench, measure(bench.context.compared, eager=3e-3))
    bench.context.compared = [REFERENCE, EAGER, COMPILED]
    assert kept.find(bench) is None


def test_eager_alone_keeps_nothing(bench, tmp_path):
    bench.context.compared = [EAGER]
    kept.keep(bench, measure([EAGER]))
    assert kept.find(bench) is None and not (tmp_path / "ratios").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_text("[1, 2]"),
        lambda file: file.write_text(file.read_text().replace('"low":0.5', '"low":-1')),
        lambda file: change(file, made=time.time() - kept.KEPT_S - 1),
        lambda file: change(file, made=time.time() + 100),
        lambda file: change(file, eager_ms=0),
        lambda file: change(file, factors={REFERENCE: None}),
    ],
)
def test_what_is_old_or_damaged_is_not_used(bench, tmp_path, damage):
    kept.keep(bench, measure(bench.context.compared))
    file = tmp_path / "ratios" / "of_one.json"
    before = file.read_text()
    damage(file)
    assert file.read_text() != before
    assert kept.find(bench) is None
    kept.keep(bench, measure(bench.context.compared))
    assert kept.find(bench) is not None


def change(file, **fields):
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def test_files_of_other_days_go(bench, tmp_path):
    """Does what is kept take no more room than a day's?"""
    kept.keep(bench, measure(bench.context.compared))
    other = tmp_path / "ratios" / "of_another.json"
    other.write_text("{}")
    kept.keep(bench, measure(bench.context.compared))
    assert other.exists()
    os.utime(other, (0, time.time() - kept.KEPT_S - 1))
    kept.keep(bench, measure(bench.context.compared))
    assert [file.name for file in other.parent.iterdir()] == ["of_one.json"]


def test_a_folder_that_cannot_be_written_is_no_trouble(bench, tmp_path):
    (tmp_path / "ratios").write_text("a file")
    kept.keep(bench, measure(bench.context.compared))
    assert kept.find(bench) is None


class Events(list):
    """What the stage does, in order, with everything that needs a GPU replaced. eager: its time, call by call."""

    def __init__(self, monkeypatch, known, eager):
        super().__init__()
        self.eager = list(eager)
        monkeypatch.setattr(fast.kept, "find", lambda bench: known)
        monkeypatch.setattr(fast.kept, "keep", lambda bench, found: self.append("keep"))
        monkeypatch.setattr(fast, "_release", lambda bench: self.append("release"))
        monkeypatch.setattr(fast, "_time_in_rounds", self.time)

    def time(self, bench, stage, known):
        names = [EAGER] if known else bench.context.compared
        self.append(f"time next to {len(names)}")
        found = measure(names, eager=self.eager.pop(0))
        if known:
            known.check(found)
        return found, SimpleNamespace(summarize=lambda: None)


@pytest.mark.parametrize(
    "is_known, eager, events",
    [
        (False, [2e-3], ["time next to 3", "keep"]),
        (True, [2e-3], ["time next to 1"]),
        (True, [3e-3, 3e-3], ["time next to 1", "release", "time next to 3", "keep"]),
    ],
)
def test_the_stage_times_what_is_not_known(bench, monkeypatch, is_known, eager, events):
    """Is eager alone timed where ratios are kept, and everything where they are not, or do not hold?"""
    kept.keep(bench, measure(bench.context.compared))
    done = Events(monkeypatch, kept.find(bench) if is_known else None, eager)
    bench.report, bench.backward = lambda text: None, None
    stage = Stage(name=StageName.fast, status=Status.passed)
    assert fast._time(bench, stage) is None
    assert done == events
    found = {each.name: each.value for each in stage.measurements}
    assert found[COMPILED] == pytest.approx(1.0) and found["speed-up over eager"] == pytest.approx(eager[-1] / 4e-3)
    assert ("measured on" in stage.message) == (events == ["time next to 1"])
