"""The time model: which part limits a kernel, how times follow the work, and how far predictions are from an H200's
times.
"""

import dataclasses
import json
import math
import statistics
from pathlib import Path

import pytest

from simt.counting import time_model
from simt.counting.time_model import GPUS, Work, predict
from simt.devices import DEVICES

DATA = Path(__file__).resolve().parents[3] / "benchmarks" / "data" / "model.json"
UNSEEN = DATA.with_name("unseen.json")
ROWS = json.loads(DATA.read_text())["rows"] if DATA.exists() else []


def copy(floats: int, a_thread: int = 4) -> Work:
    """A copy of float4s: the simplest kernel that is bound by DRAM."""
    warps = floats // (32 * a_thread)
    bytes_ = floats * 4
    return Work(
        blocks=warps // 8, threads=256, shared=0, loads=warps, load_sectors=bytes_ / 32, load_wavefronts=bytes_ / 128,
        stores=warps, store_sectors=bytes_ / 32, store_wavefronts=bytes_ / 128, unique_read=bytes_,
        unique_written=bytes_, block_unique_read=bytes_, load_rounds=warps,
        mix={"indexing": 6.0 * warps, "indexing64": 2.0 * warps},
    )  # fmt: skip


@pytest.mark.parametrize("device", GPUS)
def test_a_large_copy_runs_at_the_memorys_speed(device):
    """Is a copy of 1 GB limited by DRAM, at between 60 and 95 % of the datasheet's bandwidth?"""
    found = predict(copy(1 << 28), device)
    assert found.limit == "DRAM bytes"
    assert 0.6 < 2 * 4 * (1 << 28) / GPUS[device].dram / found.seconds < 0.95


def test_every_gpu_has_limits_and_speeds():
    """Do the two tables name the same GPUs?"""
    assert set(GPUS) == set(DEVICES)


@pytest.mark.parametrize(
    ("limit", "change"),
    [
        ("instruction issue", {"mix": {"indexing": 1e9}}),
        ("fp64 arithmetic", {"mix": {"fp64_fma": 4e8}}),
        ("special functions", {"mix": {"divide32": 0, "fp32_fast": 4e8}}),
        ("L1 and shared-memory wavefronts", {"shared_wavefronts": 1e9}),
        ("L2 bytes", {"load_sectors": 1e9, "load_wavefronts": 2.5e8, "block_unique_read": 3.2e10}),
        ("tensor cores", {"mix": {"tensor": 1e8}}),
        ("block dispatch", {"blocks": 10**8, "threads": 32}),
        ("atomics", {"atomics": 1e8, "atomic_passes": 1e8, "unique_written": 4.0}),
    ],
)
def test_the_limit_is_the_part_with_most_to_do(limit, change):
    """Is what a kernel does most of named as its limit?"""
    plain = {"blocks": 4096, "threads": 256, "shared": 0, "mix": {"indexing": 1e6}}
    assert predict(Work(**(plain | change)), "H200").limit == limit


@pytest.mark.parametrize(
    ("device", "tflops"), [("T4", 65), ("A100", 312), ("L4", 121), ("H100", 989 * 0.629), ("H200", 989 * 0.629)]
)
def test_tensor_cores_reach_what_is_published(device, tflops):
    """Do 16-bit products alone take the time of the datasheet's dense rate, on Hopper of 62.9 % of it, give or take a
    clock's boost?
    """
    calls = 1e9
    found = predict(Work(blocks=10**5, threads=256, shared=0, mix={"tensor": calls}), device)
    assert 0.9 < calls * 2 * 16**3 / found.terms["tensor cores"] / (tflops * 1e12) < 1.15


def test_a_dependent_chain_on_one_warp_is_latency():
    """Is a pointer chase by one warp limited by latency, at about the latency of DRAM a load?"""
    loads = 4096.0
    one = Work(
        1,
        32,
        0,
        loads=loads,
        load_rounds=loads,
        load_sectors=4 * loads,
        load_wavefronts=loads,
        unique_read=128 * loads,
        block_unique_read=128 * loads,
    )
    found = predict(one, "H200")
    assert found.limit == "latency"
    assert 0.7 < found.seconds / (loads * GPUS["H200"].dram_ns * 1e-9) < 1.5


def test_loads_cost_latency_where_nothing_is_known_of_the_code():
    """Does a warp's load that no round is known for still take the latency of DRAM?"""
    known = Work(
        1, 32, 0, loads=1, load_rounds=1, load_sectors=4, load_wavefronts=1, unique_read=128, block_unique_read=128
    )
    unknown = dataclasses.replace(known, load_rounds=0)
    assert predict(unknown, "H200").terms["latency"] == predict(known, "H200").terms["latency"]
    assert predict(unknown, "H200").terms["latency"] > GPUS["H200"].dram_ns * 1e-9


def test_an_empty_kernel_is_its_launch():
    """Is a kernel without work limited by its launch?"""
    assert predict(Work(1, 32, 0), "H200").limit == "launch overhead"


def test_time_grows_with_the_grid():
    """Does 16 times the work take between 12 and 16 times as long, once it fills the GPU?"""
    small, large = (predict(copy(1 << n), "H200").seconds for n in (26, 30))
    assert 12 < large / small < 16.5


def test_one_block_too_many_costs_a_wave():
    """Does a grid of one block more than fits take longer than one that just fits?"""

    def seconds(blocks: int) -> float:
        return predict(Work(blocks, 1024, 0, mix={"fp32_fma": 1e4 * 32 * blocks}), "H200").seconds

    assert seconds(133) > 1.3 * seconds(132)


def test_less_room_for_warps_costs_time():
    """Does a copy whose blocks take all shared memory take longer?"""
    crowded = copy(1 << 26)
    crowded.shared = 100 << 10
    assert predict(crowded, "H200").seconds > 1.2 * predict(copy(1 << 26), "H200").seconds


def test_a_block_that_does_not_fit_is_said():
    """Is a block with more shared memory than there is refused rather than timed?"""
    found = predict(Work(1, 32, 300 << 10), "H200")
    assert found.seconds == math.inf and "does not fit" in found.notes[0]


def test_a_faster_memory_is_faster():
    """Are the GPUs ordered by their memory for a copy?"""
    times = [predict(copy(1 << 28), d).seconds for d in ("H200", "H100", "A100", "T4", "L4", "RTX 4060 Laptop")]
    assert times == sorted(times)


@pytest.mark.skipif(not ROWS, reason="benchmarks/data/model.json is missing")
def test_predictions_of_the_references_are_near_an_h200s_times():
    """Is the median error over kernels_ref's kernels, at full size, at most 25 %?"""
    rows = [r for r in ROWS if not r["group"].startswith("micro ")]
    errors = [abs(predict(Work(**r["work"]), "H200").seconds / r["seconds"] - 1) for r in rows]
    assert len(errors) >= 16 and statistics.median(errors) <= 0.25


@pytest.mark.skipif(not UNSEEN.exists(), reason="benchmarks/data/unseen.json is missing")
def test_the_error_that_is_told_beside_a_prediction_is_the_measured_one():
    """Is MEDIAN_ERROR, which every report prints, the median over the kernels of students' kind that were measured, and
    is it not less for the kernels beside which the model was made?
    """
    data = json.loads(UNSEEN.read_text())
    errors, device = [], next(name for name in ("H100", "H200") if name in data["machine"]["gpu"])
    for program, times in data["times"].items():
        for time, launch in zip(times.values(), data["counts"][program], strict=True):
            seconds = predict(Work(**launch["work"]), device).seconds
            errors.append(abs(1e3 * seconds / time["cold_ms"] - 1))
    assert len(errors) >= 100
    assert statistics.median(errors) == pytest.approx(time_model.MEDIAN_ERROR, abs=0.02)
    own = [abs(predict(Work(**r["work"]), "H200").seconds / r["seconds"] - 1) for r in ROWS]
    assert statistics.median(own) <= time_model.MEDIAN_ERROR


@pytest.mark.skipif(not ROWS, reason="benchmarks/data/model.json is missing")
def test_intervals_hold_nine_in_ten_measured_times():
    """Do the intervals that are shown beside predictions hold the measured times of nine in ten kernels, and are they
    those that benchmarks/validate/intervals.py gives?
    """
    held = 0
    for row in ROWS:
        low, high = time_model.find_interval(predict(Work(**row["work"]), "H200"))
        held += low <= row["seconds"] <= high
    assert held / len(ROWS) >= 0.9
    made = json.loads((DATA.parent / "intervals.json").read_text())
    assert made["coverage"] >= 0.9
    for limit, interval in time_model.INTERVALS.items():
        assert interval == (made["intervals"][limit]["low"], made["intervals"][limit]["high"])


def test_dram_reads_64_bytes_for_a_sector_of_32():
    """Does reading every other sector take DRAM a little longer than reading all of them?"""
    reads = dataclasses.replace(copy(1 << 28), stores=0, store_sectors=0, unique_written=0)
    apart = dataclasses.replace(reads, granules_read=2 * reads.unique_read)
    times = [predict(work, "T4").terms["DRAM bytes"] for work in (reads, apart)]
    assert times[1] / times[0] == pytest.approx(2 * 1.13)


def test_dram_reads_what_is_written_in_part():
    """Does writing half of each sector take DRAM half as long again as writing whole sectors?"""
    writes = dataclasses.replace(copy(1 << 30), loads=0, load_sectors=0, unique_read=0, block_unique_read=0)
    half = dataclasses.replace(writes, bytes_written=writes.unique_written / 2)
    times = [predict(work, "T4").terms["DRAM bytes"] for work in (writes, half)]
    assert times[1] / times[0] == pytest.approx(1.5)
