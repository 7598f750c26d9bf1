"""Pictures: is what is drawn what the numbers say, do the words state it, and is nothing cut off?"""

import json
import math
import os
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
import pytest
import torch

import simt
from grader import pictures
from grader.compare import compare
from grader.pictures.error_map import boxes
from grader.pictures.reduction_tree import KINDS, steps_of, sums
from grader.pictures import request as rules
from grader.verdict import Evidence, Launch, Outcome, Reason, Stage, StageName, Status, Submission, Verdict, WrongMap, from_json, to_json
from grader.wrong import CELLS, pack, unpack

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
SOURCE = r"""
#include <torch/extension.h>
__global__ void columns(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x * 32];                                     // @strided
}
__global__ void turned(const float* x, float* y, int pad) {
  extern __shared__ float tile[];
  const int c = threadIdx.x, r = threadIdx.y, row = 32 + pad;
  tile[r * row + c] = x[r * 32 + c];                                        // @rows
  __syncthreads();
  y[r * 32 + c] = tile[c * row + r];                                        // @columns
}
void run(torch::Tensor x, torch::Tensor y, int pad) {
  columns<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>());
  turned<<<1, dim3(32, 32), 32 * (32 + pad) * 4>>>(x.data_ptr<float>(), y.data_ptr<float>(), pad);
}
"""


@pytest.fixture(scope="module")
def counted():
    """Lines by their marks, of a launch without padding and of one with."""
    module = simt.load_inline("pictures", "void run(torch::Tensor x, torch::Tensor y, int pad);", SOURCE, functions=["run"])
    numbers = {m[1]: n for n, text in enumerate(SOURCE.split("\n"), 1) if (m := re.search(r"// @(\w+)", text))}
    found = []
    for pad in (0, 1):
        with simt.count() as report:
            module.run(torch.zeros(1024), torch.zeros(1024), pad)
        found.append({mark: next(line for line in report.lines if line.line == n) for mark, n in numbers.items()} | {"launches": report.launches})
    return found


def groups(picture, prefix: str) -> dict[str, int]:
    """The SVG's groups whose id begins so, and how many pieces each one's paths have."""
    root = xml.fromstring(picture.svg())
    return {
        g.get("id"): sum(path.get("d", "").count("M") for path in g.iter(f"{SVG}path"))
        for g in root.iter(f"{SVG}g") if (g.get("id") or "").startswith(prefix)
    }  # fmt: skip


def words(picture) -> str:
    return " ".join("".join(t.itertext()) for t in xml.fromstring(picture.svg()).iter(f"{SVG}text"))


def random_request(rng, size):
    return rules.Access([rng.choice([None, rng.randrange(0, 300) * size]) for _ in range(31)] + [0], size)


# --- access and bank maps --------------------------------------------------------------------------------------------


def test_are_the_sectors_drawn_those_that_simt_counted(counted):
    line = counted[0]["strided"]
    (request,) = (r for r in line.requests if r.kind == "global_loads")
    drawn = groups(pictures.access_map(request), "access-0-sector")
    assert len(drawn) == request.sectors == line.counters.global_loads.sectors == 32
    assert pictures.access_map(request).alt == "Lanes 0 to 31 touch 32 sectors of x where 4 would do."
    assert len(groups(pictures.access_map(request), "access-1-sector")) == request.ideal_sectors == 4


@pytest.mark.parametrize("size", [4, 8, 16])
def test_are_the_sectors_drawn_those_of_a_brute_force_count(size):
    rng = random.Random(size)
    for _ in range(8):
        request = random_request(rng, size)
        touched = {byte // 32 for a in request.addresses if a is not None for byte in range(a, a + size)}
        drawn = groups(pictures.access_map(request, request), "access-0-sector")
        assert len(drawn) == len(touched)
        assert f"{len(touched)} sector" in pictures.access_map(request).alt
        assert groups(pictures.access_map(request, request), "access-0-lanes")["access-0-lanes"] == sum(a is not None for a in request.addresses)


def test_does_a_misaligned_float4_touch_one_sector_more_and_is_each_lane_drawn_in_both():
    request = rules.Access([16 * lane for lane in range(32)], 16, start=8)
    picture = pictures.access_map(request)
    assert picture.alt == "Lanes 0 to 31 touch 17 sectors where 16 would do."
    assert groups(picture, "access-0-lanes")["access-0-lanes"] == 32 + 16  # every second one crosses a border


def test_are_a_coalesced_request_and_a_strided_one_told_side_by_side():
    near, far = rules.Access([4 * lane for lane in range(32)]), rules.Access([8 * lane for lane in range(32)])
    alt = pictures.access_map(near, far, titles=["x[i]", "x[2 * i]"]).alt
    assert alt == "x[i]: lanes 0 to 31 touch 4 sectors, as few as can be. x[2 * i]: lanes 0 to 31 touch 8 sectors where 4 would do."


def test_are_the_conflicts_drawn_those_that_simt_counted(counted):
    plain, padded = ([r for r in report["columns"].requests if r.kind == "shared_loads"][0] for report in counted)
    assert (plain.wavefronts, padded.wavefronts) == (32, 1)
    picture = pictures.bank_map(plain, padded, titles=["rows of 32", "rows of 33"])
    assert groups(picture, "bank-0") == {"bank-0-conflict": 32}
    assert groups(picture, "bank-1") == {"bank-1-free": 32}
    assert "32 wavefronts where 1 would do: 32 words of bank 0" in picture.alt
    assert "rows of 33: lanes 0 to 31 need 1 wavefront: no bank conflict" in picture.alt


def test_does_padding_that_is_only_drawn_give_the_request_that_padding_gives(counted):
    plain, padded = ([r for r in report["columns"].requests if r.kind == "shared_loads"][0] for report in counted)
    assert tuple(rules.padded(plain, 32, 1).addresses) == padded.addresses
    assert "rows of 32 + 1: lanes 0 to 31 need 1 wavefront" in pictures.bank_map(plain, row=32).alt


def test_do_the_maps_of_a_line_show_what_costs_too_much_and_nothing_else(counted):
    assert [p.name for p in pictures.of_line(counted[0]["columns"], row=32)] == ["Bank map"]
    assert [p.name for p in pictures.of_line(counted[0]["strided"])] == ["Access map"]
    (picture,) = pictures.of_line(counted[0]["strided"], text="y[i] = x[i * 32];")
    assert "y[i] = x[i * 32]; (this line on average: 32 sectors a request)" in words(picture)
    assert pictures.of_line(counted[0]["rows"]) == pictures.of_line(counted[1]["columns"]) == []


def test_is_the_element_past_the_end_told_and_one_inside_refused():
    picture = pictures.past_the_end("x", 1000, 1000, thread=(232, 0, 0), block=(3, 0, 0))
    assert picture.alt == "Thread (232, 0, 0) of block (3, 0, 0) reads element 1,000 of x, 1 element past the end: it has 1,000 elements, 0 to 999."
    assert "1 element before the start" in pictures.past_the_end("x", -1, 8).alt
    with pytest.raises(ValueError, match="inside"):
        pictures.past_the_end("x", 7, 8)


# --- error map -------------------------------------------------------------------------------------------------------


def test_do_the_drawn_boxes_cover_the_wrong_elements_once_each():
    rng = np.random.default_rng(1)
    for density in (0.02, 0.5, 0.98):
        plane = rng.random((23, 31)) < density
        again = np.zeros_like(plane, dtype=int)
        for x, y, w, h in boxes(plane):
            again[y : y + h, x : x + w] += 1
        assert (again == plane).all()


def test_is_the_error_map_of_two_arrays_where_they_differ():
    expected = np.arange(2 * 3 * 8 * 8, dtype=float).reshape(2, 3, 8, 8)
    got = expected.copy()
    got[:, 1, 7, :] += 1
    got[0, 2, 0, 0] = np.nan
    picture = pictures.error_map(expected=expected, got=got, tile=(4, 4))
    assert picture.alt == (
        "17 of 384 values of the output [2 × 3 × 8 × 8] are wrong. 3 of 6 planes (image, channel) have wrong values."
    )
    assert "8 wrong, 1 more alike" in words(picture) and "image 0, channel 2" in words(picture)
    with pytest.raises(ValueError, match="no element"):
        pictures.error_map(expected=expected, got=expected)
    with pytest.raises(ValueError, match="shape"):
        pictures.error_map(expected=expected, got=got[0])


def test_does_the_error_map_say_that_all_lie_at_tile_borders_or_in_the_last_block():
    wrong = np.zeros((1, 1, 48, 48), bool)
    wrong[..., 16, :] = True
    assert "All of them lie at the borders of the 16 × 16 tiles." in pictures.error_map(wrong, tile=(16, 16)).alt
    flat = np.arange(1000) >= 768
    assert "All of them are elements of block 3, the last one of 256 threads." in pictures.error_map(flat, block=256).alt
    flat[5] = True
    assert "All of them" not in pictures.error_map(flat, block=256).alt


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 3, 16, 17), (40, 50, 60, 2)])
def test_is_a_packed_map_the_map(shape):
    wrong = torch.rand(shape) < 0.3
    packed = pack(wrong)
    cells = unpack(packed)
    assert cells.size <= CELLS
    by = np.zeros(cells.shape, bool)
    for index in zip(*np.nonzero(wrong.numpy())) if shape else [()] * bool(wrong):
        by[tuple(i // c for i, c in zip(index, packed.cell))] = True
    assert (cells == by).all()
    assert packed.cell == [1] * len(shape) or wrong.numel() > CELLS


def test_is_a_map_that_is_none_refused():
    good = pack(torch.ones(4, 4, dtype=torch.bool))
    for shape, cell in (([4], [1, 1]), ([9, 9], [1, 1]), ([1 << 30], [1]), ([0, 4], [1, 1]), ([4, 4], [0, 1])):
        with pytest.raises(ValueError):
            unpack(WrongMap(shape=shape, cell=cell, bits=good.bits))
    for bits in ("", "not base64!", "AAAA"):
        with pytest.raises(ValueError):
            unpack(WrongMap(shape=[4, 4], cell=[1, 1], bits=bits))


def verdict_of(reason, evidence, message=""):
    stage = Stage(name=StageName.correct, status=Status.failed, reason=reason, message=message, evidence=[evidence])
    whole = dict(problem="p", submission=Submission(path="p.py", sha256=""), outcome=Outcome.failed, device="cpu", versions={})
    return from_json(to_json(Verdict(stages=[stage], seed=1, seconds=0.1, sandbox="none", **whole)))


def test_does_a_wrong_result_s_verdict_get_its_error_map():
    from grader import findings

    expected = torch.rand(2, 4, 10, 10, dtype=torch.float64)
    got = expected.float()
    got[:, 2, 9, :] = 0
    found = findings.of_difference(compare(got, expected, expected.float()))
    (picture,) = pictures.of(verdict_of(found.reason, found.evidence[0], found.message))
    assert picture.name == "Error map"
    assert picture.alt.startswith("20 of 800 values of the output [2 × 4 × 10 × 10] are wrong: only channel 2, last row")


def test_are_the_borders_those_of_the_last_launch_that_fits_the_output():
    """Tiles of rows and columns, flat blocks, a grid rounded down; and none where no launch fits, or one block does it all?"""
    bad = torch.zeros(2, 1, 20, 30, dtype=torch.bool)
    bad[1, 0, 19] = True
    fits, other = ("k", (4, 3, 2), (8, 8, 1)), ("pad", (5, 5, 2), (8, 8, 1))
    flat, small = ("f", (10, 1, 1), (128, 1, 1)), ("g", (9, 1, 1), (128, 1, 1))

    def shown(*launches):
        told = [Launch(kernel=kernel, grid=grid, block=block) for kernel, grid, block in launches]
        (picture,) = pictures.of(verdict_of(Reason.wrong_values, Evidence(wrong=pack(bad), wrong_count=30, total=1200, launches=told)))
        return words(picture), picture.alt

    assert "8 × 8 tiles" in shown(flat, fits, other)[0]
    assert "where a block of 128 threads ends" in shown(fits, flat)[0] and "elements of block 9, the last one of 128 threads" in shown(flat)[1]
    assert "All of them lie behind the elements of the launch's 9 blocks of 128 threads." in shown(small)[1]
    for none in ((), (other,), (("one", (1, 1, 1), (1024, 1, 1)),), (("y", (10, 2, 1), (128, 1, 1)),)):
        assert "dashed" not in shown(*none)[0]


def test_are_borders_named_only_where_one_is_drawn():
    """A block of 1000 threads ends in the second plane of 600 elements, not in the first."""
    bad = np.zeros((1, 4, 20, 30), bool)
    bad[0, 0, 0] = True
    assert "dashed" not in words(pictures.error_map(bad, block=1000))
    bad[0, 1, 1] = True
    assert "dashed" in words(pictures.error_map(bad, block=1000))


def test_does_a_whole_wrong_output_get_no_picture_nor_a_passed_verdict_nor_a_build_error():
    everything = Evidence(wrong=pack(torch.ones(4, 4, dtype=torch.bool)), wrong_count=16, total=16)
    assert pictures.of(verdict_of(Reason.wrong_values, everything)) == []
    assert pictures.of(verdict_of(Reason.compile_error, Evidence(line=3))) == []
    assert pictures.of(verdict_of(Reason.wrong_values, Evidence())) == []


def test_does_a_verdict_of_an_access_out_of_bounds_show_where_it_lies():
    evidence = Evidence(thread=[232, 0, 0], block=[3, 0, 0], text="y[i] = x[i];")
    for message in ("Thread (232, 0, 0) of block (3, 0, 0) reads element 1000 of `x`, which has 1000 elements: 1 element past its end.",
                    "In kernel k thread (232, 0, 0) of block (3, 0, 0) reads element 1000 of `x` (1000 elements): 1 element past its end."):  # fmt: skip
        (picture,) = pictures.of(verdict_of(Reason.out_of_bounds, evidence, message))
        assert "element 1,000 of x, 1 element past the end" in picture.alt
        assert "y[i] = x[i];" in words(picture)
    assert pictures.of(verdict_of(Reason.out_of_bounds, evidence, "Thread (0, 0, 0) uses the index 9 in an array of type int[9].")) == []


def test_do_the_lines_of_an_alignment_map_stand_at_the_multiples_and_is_the_access_cut_by_them():
    rng = random.Random(3)
    for _ in range(30):
        width = rng.choice([2, 4, 8, 16])
        byte = rng.choice([n for n in range(400) if n % width])
        size = rng.randrange(byte + width, byte + 60)
        picture = pictures.alignment_map("x", byte, width, byte % width, size=size)
        low, high = max(0, byte - byte % width - width), min(size, byte - byte % width + 3 * width)
        lines = [n for n in range(low, high) if n % width == 0]
        drawn = groups(picture, "alignment")
        assert drawn["alignment-starts"] == len(lines) and drawn["alignment-access"] == 2
        assert drawn["alignment-cells"] == -(-(high - low) // math.gcd(byte, width, 4))
        assert sorted(set(map(int, re.findall(r"\d+", words(picture)))) & {*lines, byte}) == sorted({*lines, byte})
        assert f"from byte {byte} on, {byte % width} byte" in picture.alt and f"past byte {byte - byte % width}," in picture.alt


def test_is_what_is_aligned_refused():
    for byte, width, past, size in ((32, 16, 0, 64), (4, 16, 16, 64), (-4, 16, 12, 64), (68, 16, 4, 64)):
        with pytest.raises(ValueError):
            pictures.alignment_map("x", byte, width, past, size=size)


def test_does_a_verdict_of_a_misaligned_access_show_what_simt_found():
    """Each thread reads a float4 that begins one float late."""
    source = "__global__ void k(const float* x, float* y) { float4 v = *(const float4*)(x + 4 * threadIdx.x + 1); y[threadIdx.x] = v.x + v.w; }\n"
    source += "void run(torch::Tensor x, torch::Tensor y) { k<<<1, 4>>>(x.data_ptr<float>(), y.data_ptr<float>()); }"
    module = simt.load_inline("misaligned", "void run(torch::Tensor x, torch::Tensor y);", source, functions=["run"])
    with simt.check() as report:
        module.run(torch.zeros(32), torch.zeros(32))
    (found,) = report.errors
    assert (found.check, found.thread, found.index) == ("misaligned", (0, 0, 0), 1)
    evidence = Evidence(thread=list(found.thread), block=list(found.block), text="float4 v = …;")
    (picture,) = pictures.of(verdict_of(Reason.misaligned, evidence, found.message))
    assert picture.alt.startswith("Thread (0, 0, 0) of block (0, 0, 0) reads 16 bytes at once of x from byte 4 on, 4 bytes past byte 0,")
    assert "float4 v" in words(picture)
    assert pictures.of(verdict_of(Reason.misaligned, evidence, "Kernel k reads at an address that is not a multiple of its size.")) == []


# --- launch map ------------------------------------------------------------------------------------------------------


def test_are_the_thread_s_lane_warp_and_element_those_of_cuda():
    def writes(block, thread):
        row, column = block[1] * 16 + thread[1], block[0] * 16 + thread[0]
        return (0, block[2], row, column) if row < 30 and column < 40 else None

    picture = pictures.launch_map((3, 2, 4), (16, 16), thread=(5, 3), at=(2, 1, 1), shape=(1, 4, 30, 40), writes=writes)
    assert "24 blocks (3 × 2 × 4) of 256 threads (16 × 16), which are 8 warps." in picture.alt
    assert "lane 21 of warp 1 and writes output[0, 1, 19, 37]" in picture.alt
    assert groups(picture, "launch-") == {"launch-blocks": 6, "launch-warp": 31, "launch-lane": 1, "launch-written": 14 * 8, "launch-element": 1}
    assert "writes nothing" in pictures.launch_map((3, 2, 4), (16, 16), thread=(15, 15), at=(2, 1, 1), writes=writes).alt


def test_are_lanes_without_a_thread_told_and_threads_that_are_none_refused(counted):
    assert "The last warp has 6 lanes without a thread." in pictures.launch_map(10, 250).alt
    assert "1 block (1) of 1,024 threads (32 × 32), which are 32 warps" in pictures.launch_map(counted[0]["launches"][1]).alt
    with pytest.raises(ValueError, match="no thread"):
        pictures.launch_map(10, 250, thread=(250,))
    with pytest.raises(ValueError, match="no block"):
        pictures.launch_map(10, 250, at=(10,))


# --- reduction tree --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 8, 32])
def test_does_the_tree_add_every_value_once(n, kind):
    values = [3**i for i in range(n)]  # the sum tells which were added, and how often
    steps = steps_of(n, kind)
    assert sums(values, steps)[-1][0] == sum(values)
    assert len(steps) == n.bit_length() - 1 and sum(map(len, steps)) == n - 1
    picture = pictures.reduction_tree(n, kind=kind)
    assert sum(bool(re.fullmatch(r"tree-\d+-\d+", name)) for name in groups(picture, "tree-")) == n - 1
    assert f"{n} values become one in {len(steps)} step" in picture.alt and f"{n - 1} addition" in picture.alt
    assert len(groups(picture, "tree-barrier")) == (0 if kind == "shuffle" else len(steps))


def test_are_values_drawn_as_they_are_added_and_a_missing_barrier_said():
    picture = pictures.reduction_tree([1, 2, 3, 4], barriers=[True, False])
    assert "10" in words(picture).split() and "no barrier!" in words(picture)
    assert "No barrier stands before step 2" in picture.alt and len(groups(picture, "tree-barrier")) == 1
    for bad in (dict(values=64), dict(values=6), dict(values=8, kind="sideways"), dict(values=8, barriers=[True])):
        with pytest.raises(ValueError):
            pictures.reduction_tree(**bad)


# --- roofline, ladder, waterfall -------------------------------------------------------------------------------------


def test_do_the_roofs_stand_where_the_gpu_s_figures_put_them():
    roof = pictures.roof_of("H200")
    assert roof.fp32 == 2 * 128 * 132 * 1.98e9 and roof.dram == 4.8e12
    assert roof.at(1.0) == 4.8e12 and roof.at(1e3) == roof.fp32
    with pytest.raises(ValueError, match="T4"):
        pictures.roof_of("Voodoo 2")


def test_do_the_points_stand_where_their_numbers_put_them():
    points = [pictures.Point("mine", 2e9, 8e9, 5e-3), pictures.Point("eager", 4e12, 1e9, 0.1, True)]
    picture = pictures.roofline(points, "H200")
    assert picture.alt == "mine reaches 33 % of what the H200's DRAM allows at its 0.25 operations for each byte; eager 60 %."
    (ax,) = picture.figure.axes
    marks = {line.get_gid(): (line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines if line.get_gid()}
    assert marks == {"roofline-0": (0.25, pytest.approx(4e11)), "roofline-1": (4000.0, pytest.approx(4e13))}
    assert "1.6 TB/s: 33 % of the roof" in words(picture) and "predicted" in words(picture)
    with pytest.raises(ValueError, match="no time"):
        pictures.roofline([pictures.Point("nothing", 1, 1, 0)])


def test_is_a_counted_kernel_s_point_what_was_counted(counted):
    launches = counted[0]["launches"]
    point = pictures.point_of("mine", launches, "T4")
    assert point.flops == sum(l.counters.flops for l in launches)
    assert point.bytes == 32 * (32 + 4 + 128 + 128)
    assert point.seconds == sum(simt.predict(l, "T4").seconds for l in launches)


def test_does_the_ladder_place_a_kernel_between_its_neighbours():
    steps = [pictures.Step(name, ms / 1e3) for name, ms in (("01_naive", 100), ("02_tiled", 20), ("03_float4", 5))]
    said = {ms: pictures.ladder(steps, pictures.Step("mine", ms / 1e3)).alt for ms in (200, 50, 2.5)}
    assert "slower than every step; 03_float4 is 40 times as fast" in said[200]
    assert "takes 50 ms on the H200: between 01_naive and 02_tiled; 03_float4 is 10 times as fast" in said[50]
    assert "faster than every step, 2 times as fast as 03_float4" in said[2.5]
    picture = pictures.ladder(steps, pictures.Step("mine", 0.05, predicted=True))
    marks = {line.get_gid(): line.get_xdata()[0] for line in picture.figure.axes[0].lines if line.get_gid()}
    assert marks == {"ladder-0": 0.1, "ladder-1": 0.05, "ladder-2": 0.02, "ladder-3": 0.005}
    assert "is predicted to take 50 ms" in picture.alt


def test_are_the_measured_steps_those_of_the_benchmarks():
    data = json.loads((ROOT / "benchmarks/data/steps.json").read_text())["steps"]
    for problem in {key.split("/")[0] for key in data}:
        steps = pictures.steps_of(problem)
        assert [s.seconds * 1e3 for s in steps] == pytest.approx([v["ms"] for k, v in sorted(data.items()) if k.startswith(problem + "/")])
        assert pictures.ladder(steps).svg()
    with pytest.raises(ValueError, match="groupnorm"):
        pictures.steps_of("nothing")


def test_do_the_waterfall_s_bars_begin_where_the_last_one_ended():
    told = {"eager": [pictures.Launched("conv", 3e-3, 2e8), pictures.Launched("norm", 1e-3, 6e8)], "fused": [pictures.Launched("all", 2e-3, 3e8)]}
    picture = pictures.waterfall(told)
    assert picture.alt == "Fused is 2 times as fast as eager on the H200. eager: 2 launches, 4 ms, 800 MB moved; fused: 1 launch, 2 ms, 300 MB moved."
    bars = {p.get_gid(): p.get_path().get_extents() for p in picture.figure.axes[0].patches if p.get_gid()}
    assert {name: (box.x0, box.x1) for name, box in bars.items()} == {
        "waterfall-0-0": (0, pytest.approx(3e-3)), "waterfall-0-1": (pytest.approx(3e-3), pytest.approx(4e-3)), "waterfall-1-0": (0, pytest.approx(2e-3)),
    }  # fmt: skip
    many = pictures.waterfall({"im2col": [pictures.Launched(n, 1e-6, 1e3) for _ in range(50) for n in ("im2col", "matmul")]})
    assert "100 launches, 100 µs, 100 kB moved" in many.alt and "im2col × 50" in words(many)
    with pytest.raises(ValueError):
        pictures.waterfall({"eager": []})


# --- races -----------------------------------------------------------------------------------------------------------


def test_are_both_orders_of_a_race_drawn_and_what_each_leaves_said():
    reader, writer = pictures.Meeting((0, 0, 0), (2, 0, 0), "reads", 36), pictures.Meeting((1, 0, 0), (2, 0, 0), "writes", 34)
    picture = pictures.race_map("a", 1, reader, writer)
    assert "Thread (0, 0, 0) of block (2, 0, 0) reads element 1 of a in line 36; thread (1, 0, 0) of the same block writes it in line 34." in picture.alt
    assert set(groups(picture, "race-")) == {"race-0-first-0", "race-0-second-1", "race-1-second-0", "race-1-first-1"}
    shown = words(picture)
    assert "the old value is read" in shown and "the new value is read" in shown and shown.index("old value") < shown.index("new value")
    both = pictures.race_map("a", 0, writer, pictures.Meeting((7, 0, 0), (3, 0, 0), "writes", 34))
    assert "another block" in both.alt and "thread (7, 0, 0)'s value stays" in words(both) and "thread (1, 0, 0)'s value stays" in words(both)
    twins = pictures.race_map("y", 0, pictures.Meeting((0, 0, 0), (1, 0, 0), "writes"), pictures.Meeting((0, 0, 0), (2, 0, 0), "writes"))
    assert twins.alt.endswith("if block (1, 0, 0) does, block (2, 0, 0)'s value stays, else block (1, 0, 0)'s value stays.")
    assert {"If block (1, 0, 0) comes first", "If block (2, 0, 0) comes first"} <= set(re.findall(r"If block \(\d, 0, 0\) comes first", words(twins)))


def test_is_what_is_no_race_refused():
    reader = pictures.Meeting((0, 0, 0), (0, 0, 0), "reads")
    with pytest.raises(ValueError, match="no race"):
        pictures.race_map("a", 1, reader, pictures.Meeting((1, 0, 0), (0, 0, 0), "reads"))
    with pytest.raises(ValueError, match="itself"):
        pictures.race_map("a", 1, reader, pictures.Meeting((0, 0, 0), (0, 0, 0), "writes"))


def test_does_a_verdict_of_a_race_show_the_two_threads_that_simt_found():
    """The kernel has one race: thread t reads what thread t + 1 writes."""
    source = "__global__ void k(float* y) { __shared__ float a[64]; a[threadIdx.x] = 1; y[threadIdx.x] = a[(threadIdx.x + 1) % 64]; }\n"
    source += "void run(torch::Tensor y) { k<<<1, 64>>>(y.data_ptr<float>()); }"
    module = simt.load_inline("race", "void run(torch::Tensor y);", source, functions=["run"])
    with simt.check() as report:
        module.run(torch.zeros(64))
    found = next(finding for finding in report.findings if finding.check == "race")
    evidence = Evidence(thread=list(found.thread), block=list(found.block), line=found.line)
    stages = [Stage(name=StageName.safe, status=Status.failed, reason=Reason.race, message=found.message, evidence=[evidence])]
    verdict = Verdict(
        problem="p", submission=Submission(path="p.py", sha256=""), outcome=Outcome.failed, stages=stages, device="cpu", versions={}, seed=1, seconds=1.0, sandbox="none"
    )
    (picture,) = pictures.of(verdict)
    reader, writer = (found.thread, found.other_thread) if " reads " in found.message.split(", which")[0] else (found.other_thread, found.thread)
    assert writer[0] == (reader[0] + 1) % 64 and f"element {writer[0]} of a" in picture.alt
    assert f"({reader[0]}, 0, 0)" in picture.alt and f"({writer[0]}, 0, 0)" in picture.alt


# --- every picture ---------------------------------------------------------------------------------------------------


def grown(powers):
    """A line for each kind and class that a sweep may have."""
    kinds = [(k, p) for k in ("beside", "reference", "submission", "step", "eager", "compile") for p in ("fp32", "tf32")]
    return [
        pictures.Line(f"{k} {p}", k, p, tuple((2**n, (i + 1) * 1e-9 * (1 + 8 / 2**n)) for n in powers)) for i, (k, p) in enumerate(kinds)
    ]


def gallery():
    rng = np.random.default_rng(0)
    mixed = np.zeros((4, 16, 62, 62), bool)
    mixed[:, 3, 16::16, :] = mixed[:, 5, :, 15::16] = True
    mixed[2, 7] = rng.random((62, 62)) < 0.1
    strided, wide = rules.Access([128 * lane for lane in range(32)]), rules.Access([2048 * lane for lane in range(32)], 16, start=24)
    long = "a_kernel_with_a_very_long_name_indeed<float, 256, true>"
    steps = pictures.steps_of("groupnorm")
    eager = [pictures.Launched(long, 1e-3 * (i + 1), 1e9, 1 + i * 999) for i in range(9)]
    return {
        "error map": pictures.error_map(mixed, tile=(16, 16), pattern="some in channels 3, 5, 7"),
        "error map of two images": pictures.error_map(mixed[:2, :1] | True, tile=(16, 16)),
        "error map, flat": pictures.error_map(np.arange(1000) > 991, block=256),
        "error map, noise": pictures.error_map(rng.random((2, 3, 254, 254)) < 0.3, pattern="x" * 200),
        "launch map": pictures.launch_map((32, 8, 3), 1024, thread=(1000,), at=(31, 7, 2), shape=(112, 64, 512, 512), writes=(0, 3, 200, 488), kernel=long),
        "launch map, small": pictures.launch_map(1, 1),
        "access map": pictures.access_map(strided, text="const float v = x[i * 32];" * 9),
        "access map, 17 bytes": pictures.access_map(wide, strided, titles=[long, long]),
        "past the end": pictures.past_the_end(long, 2**31 - 1, 10, verb="updates atomically", thread=(1023, 0, 63), block=(2**31 - 1, 65535, 65535)),
        "past the end of one": pictures.past_the_end("x", 4, 1),
        "error map of one number a channel": pictures.error_map(np.arange(64).reshape(1, 64, 1, 1) > 0),
        "error map of one element": pictures.error_map(np.ones((1, 1), bool)),
        "alignment map": pictures.alignment_map(
            long, 2**40 + 6, 16, 6, verb="updates atomically", thread=(1023, 0, 63), block=(2**31 - 1, 65535, 65535), text=long
        ),
        "alignment map of few bytes": pictures.alignment_map("x", 2, 4, 2, size=6),
        "bank map": pictures.bank_map(strided, row=32, text="tile[threadIdx.x][threadIdx.y]"),
        "bank map, float4": pictures.bank_map(wide),
        "race": pictures.race_map("partial", 1, pictures.Meeting((0, 0, 0), (0, 0, 0), "reads", 16), pictures.Meeting((1, 0, 0), (0, 0, 0), "writes", 16)),
        "race of blocks": pictures.race_map(
            long, 2**31 - 1, pictures.Meeting((1023, 31, 63), (2**31 - 1, 65535, 65535), "updates atomically", 1234),
            pictures.Meeting((1022, 31, 63), (2**31 - 2, 65535, 65535), "writes"),
        ),
        "tree": pictures.reduction_tree(list(range(100, 116)), barriers=[True, False, True, False]),
        "tree, shuffle": pictures.reduction_tree(32, kind="shuffle"),
        "roofline": pictures.roofline([pictures.Point(long, 2.6e9 * 9**i, 1.5e10, 8.4e-3 * 3**i, i == 2) for i in range(4)]),
        "roofline of a T4": pictures.roofline([pictures.Point("mine", 1e3, 1e9, 1.0)], "T4"),
        "ladder": pictures.ladder(steps, pictures.Step(long, 7.1e-3, True), problem="groupnorm"),
        "waterfall": pictures.waterfall({"eager": eager, "fused": [pictures.Launched("k", 1e-5, 1e3)]}),
        "sweep": pictures.sweep({"batch": grown(range(10)), "side": grown(range(5, 10))}, "conv_groupnorm_logsumexp", "No cliff."),
        "sweep of decades": pictures.sweep({"batch": [pictures.Line(long, "step", "fp32", ((1, 3e-5), (3, 1e-12)))]}, long, "No cliff."),
    }  # fmt: skip


GALLERY = gallery()


@pytest.mark.parametrize("name", GALLERY)
def test_is_no_text_cut_off_and_does_none_overlap_another(name, monkeypatch):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    from grader.pictures.picture import style

    placed, draw = [], Text.draw

    def noting(text, renderer):
        draw(text, renderer)
        if text.get_text().strip() and text.get_visible():
            placed.append((text.get_text(), text.get_window_extent(renderer), text.get_rotation()))

    monkeypatch.setattr(Text, "draw", noting)
    with style():
        FigureCanvasAgg(GALLERY[name].figure).draw()
    whole = GALLERY[name].figure.bbox
    for text, box, _ in placed:
        assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1, f"{text!r} is cut off: {box}"
    straight = [(text, box.padded(-1)) for text, box, turned in placed if turned in (0, 90)]
    for i, (one, a) in enumerate(straight):
        for other, b in straight[i + 1 :]:
            assert not a.overlaps(b), f"{one!r} overlaps {other!r}"


@pytest.mark.parametrize("name", GALLERY)
def test_has_the_svg_words_text_as_text_and_a_size_that_a_notebook_keeps(name):
    picture = GALLERY[name]
    root = xml.fromstring(picture.svg())
    assert root.find(f"{SVG}title").text == picture.name and root.find(f"{SVG}desc").text == picture.alt == root.get("aria-label")
    assert root.get("role") == "img" and picture.alt.endswith(".")
    assert len(picture.svg()) < 150_000 and len(words(picture)) > 20
    assert root.get("width") == "576pt"
    assert "<metadata" not in picture.svg()


def test_are_two_renderings_the_same_bytes():
    again = gallery()
    assert all(again[name].svg() == picture.svg() and again[name].png(60) == picture.png(60) for name, picture in GALLERY.items())


def test_does_another_process_draw_the_same(tmp_path):
    code = "import sys; sys.path.insert(0, sys.argv[1])\nfrom grader.pictures import *\naccess_map(Access([8 * i for i in range(32)])).save(sys.argv[2])"
    for seed in "12":
        own = os.environ | {"PYTHONHASHSEED": seed, "HOME": str(tmp_path / seed)}
        subprocess.run([sys.executable, "-c", code, str(ROOT), str(tmp_path / f"{seed}.svg")], check=True, env=own)
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.svg").read_bytes()


def test_is_svg_shown_in_a_browser_and_png_under_nbval(monkeypatch, tmp_path):
    picture = pictures.ladder(pictures.steps_of("conv2d"))
    monkeypatch.delenv("NBVAL", raising=False)
    monkeypatch.delenv("GRADER_PICTURES", raising=False)
    assert picture._repr_mimebundle_() == {"text/plain": picture.alt, "image/svg+xml": picture.svg()}
    monkeypatch.setenv("GRADER_PICTURES", "png")
    data, metadata = picture._repr_mimebundle_()
    assert set(data) == {"text/plain", "image/png"} and metadata["image/png"]["alt"] == picture.alt
    assert picture.save(tmp_path / "a.svg").read_text() == picture.svg()
    assert picture.save(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="svg"):
        picture.save(tmp_path / "a.pdf")


def test_does_grader_work_without_matplotlib_and_a_picture_say_what_is_missing():
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.path.insert(0, sys.argv[1])\n"
        "import grader.judge, grader.pictures as p\n"
        "x = p.reduction_tree(8); print(x.alt)\n"
        "try: x.svg()\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(ROOT)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "Pictures need matplotlib, which is not installed: `pip install matplotlib` brings it."


def test_is_matplotlib_left_alone_until_a_picture_is_looked_at():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import grader.pictures as p\n"
        "p.reduction_tree(8)\n"
        "print([m for m in sys.modules if m.startswith('matplotlib')])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(ROOT)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
