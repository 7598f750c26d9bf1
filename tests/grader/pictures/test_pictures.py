"""Do launch map, reduction tree, roofline, ladder and waterfall draw what the numbers say?"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import simt
from grader import pictures
from grader.pictures.reduction_tree import KINDS, steps_of, sums
from tests.grader.pictures.drawn import groups, words

ROOT = Path(__file__).resolve().parents[3]


# --- launch map ------------------------------------------------------------------------------------------------------


def test_launch_map_computes_lane_warp_and_element_as_cuda_does():
    def writes(block, thread):
        row, column = block[1] * 16 + thread[1], block[0] * 16 + thread[0]
        return (0, block[2], row, column) if row < 30 and column < 40 else None

    picture = pictures.launch_map((3, 2, 4), (16, 16), thread=(5, 3), at=(2, 1, 1), shape=(1, 4, 30, 40), writes=writes)
    assert "24 blocks (3 × 2 × 4) of 256 threads (16 × 16), which are 8 warps." in picture.alt
    assert "lane 21 of warp 1 and writes output[0, 1, 19, 37]" in picture.alt
    assert groups(picture, "launch-") == {
        "launch-blocks": 6,
        "launch-warp": 31,
        "launch-lane": 1,
        "launch-written": 14 * 8,
        "launch-element": 1,
    }
    assert (
        "writes nothing" in pictures.launch_map((3, 2, 4), (16, 16), thread=(15, 15), at=(2, 1, 1), writes=writes).alt
    )


def test_launch_map_names_idle_lanes_and_refuses_threads_that_do_not_exist(counted):
    threads: Any = 250  # one number, as in <<<10, 250>>>
    assert "The last warp has 6 lanes without a thread." in pictures.launch_map(10, threads).alt
    assert (
        "1 block (1) of 1,024 threads (32 × 32), which are 32 warps"
        in pictures.launch_map(counted[0]["launches"][1]).alt
    )
    with pytest.raises(ValueError, match="no thread"):
        pictures.launch_map(10, threads, thread=(250,))
    with pytest.raises(ValueError, match="no block"):
        pictures.launch_map(10, threads, at=(10,))


# --- reduction tree --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 8, 32])
def test_the_tree_adds_every_value_once(n, kind):
    values = [3**i for i in range(n)]  # the sum tells which were added, and how often
    steps = steps_of(n, kind)
    assert sums(values, steps)[-1][0] == sum(values)
    assert len(steps) == n.bit_length() - 1 and sum(map(len, steps)) == n - 1
    picture = pictures.reduction_tree(n, kind=kind)
    assert sum(bool(re.fullmatch(r"tree-\d+-\d+", name)) for name in groups(picture, "tree-")) == n - 1
    assert f"{n} values are summed in {len(steps)} step" in picture.alt and f"{n - 1} addition" in picture.alt
    assert len(groups(picture, "tree-barrier")) == (0 if kind == "shuffle" else len(steps))


def test_the_tree_draws_the_sums_and_names_a_missing_barrier():
    picture = pictures.reduction_tree([1, 2, 3, 4], barriers=[True, False])
    assert "10" in words(picture).split() and "no barrier!" in words(picture)
    assert "There is no barrier before step 2" in picture.alt and len(groups(picture, "tree-barrier")) == 1
    refused: list[dict[str, Any]] = [
        {"values": 64},
        {"values": 6},
        {"values": 8, "kind": "sideways"},
        {"values": 8, "barriers": [True]},
    ]
    for bad in refused:
        with pytest.raises(ValueError):
            pictures.reduction_tree(**bad)


# --- roofline, ladder, waterfall -------------------------------------------------------------------------------------


def test_roofs_follow_from_the_gpu_s_figures():
    roof = pictures.roof_of("H200")
    assert roof.fp32 == 2 * 128 * 132 * 1.98e9 and roof.dram == 4.8e12
    assert roof.at(1.0) == 4.8e12 and roof.at(1e3) == roof.fp32
    with pytest.raises(ValueError, match="T4"):
        pictures.roof_of("Voodoo 2")


def test_points_are_drawn_where_their_numbers_put_them():
    points = [pictures.Point("mine", 2e9, 8e9, 5e-3), pictures.Point("eager", 4e12, 1e9, 0.1, True)]
    picture = pictures.roofline(points, "H200")
    assert (
        picture.alt
        == "mine reaches 33 % of the H200's roofline bound, which DRAM sets at 0.25 operations per byte; eager 60 %."
    )
    (ax,) = picture.figure.axes
    marks = {line.get_gid(): (line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines if line.get_gid()}
    assert marks == {"roofline-0": (0.25, pytest.approx(4e11)), "roofline-1": (4000.0, pytest.approx(4e13))}
    assert "1.6 TB/s: 33 % of the bound" in words(picture) and "predicted" in words(picture)
    with pytest.raises(ValueError, match="no time"):
        pictures.roofline([pictures.Point("nothing", 1, 1, 0)])


def test_point_of_a_counted_kernel_has_the_counted_work(counted):
    launches = counted[0]["launches"]
    point = pictures.point_of("mine", launches, "T4")
    assert point.flops == sum(launch.counters.flops for launch in launches)
    assert point.bytes == 32 * (32 + 4 + 128 + 128)
    assert point.seconds == sum(simt.predict(launch, "T4").seconds for launch in launches)


def test_the_ladder_places_a_kernel_between_its_neighbours():
    steps = [pictures.Step(name, ms / 1e3) for name, ms in (("01_naive", 100), ("02_tiled", 20), ("03_float4", 5))]
    alts = {ms: pictures.ladder(steps, pictures.Step("mine", ms / 1e3)).alt for ms in (200, 50, 2.5)}
    assert "slower than every step; 03_float4 is 40 times as fast" in alts[200]
    assert "takes 50 ms on the H200: between 01_naive and 02_tiled; 03_float4 is 10 times as fast" in alts[50]
    assert "faster than every step, 2 times as fast as 03_float4" in alts[2.5]
    near = pictures.ladder(steps, pictures.Step("mine", 1.01 * steps[0].seconds)).alt
    assert f"about as fast as {steps[0].name}; {steps[-1].name} is" in near
    assert pictures.ladder(steps, pictures.Step("mine", steps[-1].seconds)).alt.endswith(f"as {steps[-1].name}.")
    picture = pictures.ladder(steps, pictures.Step("mine", 0.05, predicted=True))
    marks = {line.get_gid(): line.get_xdata()[0] for line in picture.figure.axes[0].lines if line.get_gid()}
    assert marks == {"ladder-0": 0.1, "ladder-1": 0.05, "ladder-2": 0.02, "ladder-3": 0.005}
    assert "is predicted to take 50 ms" in picture.alt


def test_measured_steps_are_those_of_the_benchmarks():
    data = json.loads((ROOT / "benchmarks/data/steps.json").read_text())["steps"]
    for problem in {key.split("/")[0] for key in data}:
        steps = pictures.steps_of(problem)
        assert [s.seconds * 1e3 for s in steps] == pytest.approx(
            [v["ms"] for k, v in sorted(data.items()) if k.startswith(problem + "/")]
        )
        assert pictures.ladder(steps).svg()
    with pytest.raises(ValueError, match="groupnorm"):
        pictures.steps_of("nothing")


def test_waterfall_bars_begin_where_the_previous_one_ends():
    variants = {
        "eager": [pictures.TimedLaunch("conv", 3e-3, 2e8), pictures.TimedLaunch("norm", 1e-3, 6e8)],
        "fused": [pictures.TimedLaunch("all", 2e-3, 3e8)],
    }
    picture = pictures.waterfall(variants)
    assert picture.alt == (
        "Fused is 2 times as fast as eager on the H200. eager: 2 launches, 4 ms, 800 MB moved; fused: 1 "
        "launch, 2 ms, 300 MB moved."
    )
    bars = {p.get_gid(): p.get_path().get_extents() for p in picture.figure.axes[0].patches if p.get_gid()}
    assert {name: (box.x0, box.x1) for name, box in bars.items()} == {
        "waterfall-0-0": (0, pytest.approx(3e-3)),
        "waterfall-0-1": (pytest.approx(3e-3), pytest.approx(4e-3)),
        "waterfall-1-0": (0, pytest.approx(2e-3)),
    }
    many = pictures.waterfall(
        {"im2col": [pictures.TimedLaunch(n, 1e-6, 1e3) for _ in range(50) for n in ("im2col", "matmul")]}
    )
    assert "100 launches, 100 µs, 100 kB moved" in many.alt and "im2col × 50" in words(many)
    with pytest.raises(ValueError):
        pictures.waterfall({"eager": []})
