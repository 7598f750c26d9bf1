"""Do a verdict's pictures show where values are wrong, where an access lies, and which threads race?"""

import math
import random
import re

import numpy as np
import pytest
import torch

import simt
from grader import pictures
from grader.judging.tolerance import compare
from grader.pictures.error_map import boxes
from grader.verdict import (
    Evidence,
    Launch,
    Outcome,
    Reason,
    Stage,
    StageName,
    Status,
    Submission,
    Verdict,
    WrongMap,
    from_json,
    to_json,
)
from grader.verdict.wrong_map import MAX_CELLS, pack, unpack
from tests.grader.pictures.drawn import groups, words

# --- error map -------------------------------------------------------------------------------------------------------


def test_boxes_cover_each_wrong_element_once():
    rng = np.random.default_rng(1)
    for density in (0.02, 0.5, 0.98):
        plane = rng.random((23, 31)) < density
        again = np.zeros_like(plane, dtype=int)
        for x, y, w, h in boxes(plane):
            again[y : y + h, x : x + w] += 1
        assert (again == plane).all()


def test_error_map_calls_the_dimensions_as_the_problem_does():
    wrong = torch.zeros(2, 3, 8, 8, dtype=torch.bool)
    wrong[1, 2, 4] = True
    packed = pack(wrong)
    assert "1 of 6 planes (image, channel) has" in pictures.error_map(packed).alt
    packed.axes = ["batch item", "head", "token", "feature"]
    picture = pictures.error_map(packed)
    assert "1 of 6 planes (batch item, head) has" in picture.alt
    said = words(picture)
    assert all(name in said for name in ("head", "token", "feature", "batch item 1, head 2"))
    assert not any(name in said for name in ("channel", "row", "column", "image"))


def test_error_map_of_two_arrays_shows_where_they_differ():
    expected = np.arange(2 * 3 * 8 * 8, dtype=float).reshape(2, 3, 8, 8)
    got = expected.copy()
    got[:, 1, 7, :] += 1
    got[0, 2, 0, 0] = np.nan
    picture = pictures.error_map(expected=expected, got=got, tile=(4, 4))
    assert picture.alt == (
        "17 of 384 values of the output [2 × 3 × 8 × 8] are wrong. 3 of 6 planes (image, channel) have wrong values."
    )
    assert "8 wrong, 1 more like this" in words(picture) and "image 0, channel 2" in words(picture)
    with pytest.raises(ValueError, match="no element"):
        pictures.error_map(expected=expected, got=expected)
    with pytest.raises(ValueError, match="shape"):
        pictures.error_map(expected=expected, got=got[0])


def test_error_map_names_tile_borders_and_the_last_block():
    wrong = np.zeros((1, 1, 48, 48), bool)
    wrong[..., 16, :] = True
    assert "All of them are at the borders of the 16 × 16 tiles." in pictures.error_map(wrong, tile=(16, 16)).alt
    flat = np.arange(1000) >= 768
    assert "All of them belong to block 3, the last block of 256 threads." in pictures.error_map(flat, block=256).alt
    flat[5] = True
    assert "All of them" not in pictures.error_map(flat, block=256).alt


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 3, 16, 17), (40, 50, 60, 2)])
def test_unpack_inverts_pack(shape):
    wrong = torch.rand(shape) < 0.3
    packed = pack(wrong)
    cells = unpack(packed)
    assert cells.size <= MAX_CELLS
    by = np.zeros(cells.shape, bool)
    for index in zip(*np.nonzero(wrong.numpy())) if shape else [()] * bool(wrong):
        by[tuple(i // c for i, c in zip(index, packed.cell))] = True
    assert (cells == by).all()
    assert packed.cell == [1] * len(shape) or wrong.numel() > MAX_CELLS


def test_unpack_refuses_an_invalid_map():
    good = pack(torch.ones(4, 4, dtype=torch.bool))
    for shape, cell in (([4], [1, 1]), ([9, 9], [1, 1]), ([1 << 30], [1]), ([0, 4], [1, 1]), ([4, 4], [0, 1])):
        with pytest.raises(ValueError):
            unpack(WrongMap(shape=shape, cell=cell, bits=good.bits))
    for bits in ("", "not base64!", "AAAA"):
        with pytest.raises(ValueError):
            unpack(WrongMap(shape=[4, 4], cell=[1, 1], bits=bits))


def verdict_of(reason, evidence, message=""):
    stage = Stage(name=StageName.correct, status=Status.failed, reason=reason, message=message, evidence=[evidence])
    whole = Verdict(
        problem="p",
        submission=Submission(path="p.py", sha256=""),
        outcome=Outcome.failed,
        stages=[stage],
        device="cpu",
        versions={},
        seed=1,
        seconds=0.1,
        sandbox="none",
    )
    return from_json(to_json(whole))


def test_a_verdict_of_wrong_values_gets_an_error_map():
    from grader.judging import findings

    expected = torch.rand(2, 4, 10, 10, dtype=torch.float64)
    got = expected.float()
    got[:, 2, 9, :] = 0
    difference = compare(got, expected, expected.float())
    assert difference is not None
    found = findings.of_difference(difference)
    (picture,) = pictures.explain_verdict(verdict_of(found.reason, found.evidence[0], found.message))
    assert picture.name == "Error map"
    assert picture.alt.startswith(
        "20 of 800 values of the output [2 × 4 × 10 × 10] are wrong: only channel 2, last row"
    )


def test_borders_are_those_of_the_last_launch_that_fits_the_output():
    """Tiles of rows and columns, flat blocks, a grid rounded down; and none where no launch fits, or one block does it
    all?
    """
    bad = torch.zeros(2, 1, 20, 30, dtype=torch.bool)
    bad[1, 0, 19] = True
    fits, other = ("k", (4, 3, 2), (8, 8, 1)), ("pad", (5, 5, 2), (8, 8, 1))
    flat, small = ("f", (10, 1, 1), (128, 1, 1)), ("g", (9, 1, 1), (128, 1, 1))

    def shown(*launches):
        given = [Launch(kernel=kernel, grid=grid, block=block) for kernel, grid, block in launches]
        (picture,) = pictures.explain_verdict(
            verdict_of(Reason.wrong_values, Evidence(wrong=pack(bad), wrong_count=30, total=1200, launches=given))
        )
        return words(picture), picture.alt

    assert "8 × 8 tiles" in shown(flat, fits, other)[0]
    assert (
        "ends of blocks of 128 threads" in shown(fits, flat)[0]
        and "belong to block 9, the last block of 128 threads" in shown(flat)[1]
    )
    assert "All of them lie after the last element that the 9 blocks of 128 threads cover." in shown(small)[1]
    for none in ((), (other,), (("one", (1, 1, 1), (1024, 1, 1)),), (("y", (10, 2, 1), (128, 1, 1)),)):
        assert "dashed" not in shown(*none)[0]


def test_borders_are_named_only_if_one_is_drawn():
    """A block of 1000 threads ends in the second plane of 600 elements, not in the first."""
    bad = np.zeros((1, 4, 20, 30), bool)
    bad[0, 0, 0] = True
    assert "dashed" not in words(pictures.error_map(bad, block=1000))
    bad[0, 1, 1] = True
    assert "dashed" in words(pictures.error_map(bad, block=1000))


def test_no_picture_for_an_entirely_wrong_output_or_a_build_error():
    everything = Evidence(wrong=pack(torch.ones(4, 4, dtype=torch.bool)), wrong_count=16, total=16)
    assert pictures.explain_verdict(verdict_of(Reason.wrong_values, everything)) == []
    assert pictures.explain_verdict(verdict_of(Reason.compile_error, Evidence(line=3))) == []
    assert pictures.explain_verdict(verdict_of(Reason.wrong_values, Evidence())) == []


def test_a_verdict_of_an_access_out_of_bounds_shows_where_it_lies():
    evidence = Evidence(thread=[232, 0, 0], block=[3, 0, 0], text="y[i] = x[i];")
    for message in (
        (
            "Thread (232, 0, 0) of block (3, 0, 0) reads element 1000 of `x`, which has 1000 elements: 1 element "
            "past its end. Check the index before the access."
        ),
        (
            "In kernel k thread (232, 0, 0) of block (3, 0, 0) reads element 1000 of `x` (1000 elements): 1 "
            "element past its end. Check the index before the access."
        ),
    ):
        (picture,) = pictures.explain_verdict(verdict_of(Reason.out_of_bounds, evidence, message))
        assert "element 1,000 of x, 1 element past the end" in picture.alt
        assert "y[i] = x[i];" in words(picture)
    assert (
        pictures.explain_verdict(
            verdict_of(Reason.out_of_bounds, evidence, "Thread (0, 0, 0) uses index 9 of an array of type int [9].")
        )
        == []
    )


def test_alignment_map_draws_lines_at_multiples_which_cut_the_access():
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
        assert (
            f"starting at byte {byte}: {byte % width} byte" in picture.alt
            and f"past byte {byte - byte % width}," in picture.alt
        )


def test_alignment_map_refuses_an_aligned_access():
    for byte, width, past, size in ((32, 16, 0, 64), (4, 16, 16, 64), (-4, 16, 12, 64), (68, 16, 4, 64)):
        with pytest.raises(ValueError):
            pictures.alignment_map("x", byte, width, past, size=size)


@pytest.mark.slow
def test_a_verdict_of_a_misaligned_access_shows_what_simt_found():
    """Each thread reads a float4 that begins one float late."""
    source = (
        "__global__ void k(const float* x, float* y) { float4 v = *(const float4*)(x + 4 * threadIdx.x + 1); "
        "y[threadIdx.x] = v.x + v.w; }\n"
    )
    source += "void run(torch::Tensor x, torch::Tensor y) { k<<<1, 4>>>(x.data_ptr<float>(), y.data_ptr<float>()); }"
    module = simt.load_inline("misaligned", "void run(torch::Tensor x, torch::Tensor y);", source, functions=["run"])
    with simt.check() as report:
        module.run(torch.zeros(32), torch.zeros(32))
    (found,) = report.errors
    assert (found.check, found.thread, found.index) == ("misaligned", (0, 0, 0), 1)
    assert found.thread is not None and found.block is not None
    evidence = Evidence(thread=list(found.thread), block=list(found.block), text="float4 v = …;")
    (picture,) = pictures.explain_verdict(verdict_of(Reason.misaligned, evidence, found.message))
    assert picture.alt.startswith(
        "Thread (0, 0, 0) of block (0, 0, 0) reads 16 bytes of x at once, starting at byte 4: 4 bytes past byte 0,"
    )
    assert "float4 v" in words(picture)
    assert (
        pictures.explain_verdict(
            verdict_of(Reason.misaligned, evidence, "Kernel k reads at an address that is not a multiple of its size.")
        )
        == []
    )


# --- races -----------------------------------------------------------------------------------------------------------


def test_race_map_draws_both_orders_and_states_their_outcomes():
    reader, writer = (
        pictures.RaceAccess((0, 0, 0), (2, 0, 0), "reads", 36),
        pictures.RaceAccess((1, 0, 0), (2, 0, 0), "writes", 34),
    )
    picture = pictures.race_map("a", 1, reader, writer)
    assert (
        "Thread (0, 0, 0) of block (2, 0, 0) reads element 1 of a in line 36; thread (1, 0, 0) of the same "
        "block writes it in line 34."
    ) in picture.alt
    assert set(groups(picture, "race-")) == {"race-0-first-0", "race-0-second-1", "race-1-second-0", "race-1-first-1"}
    shown = words(picture)
    assert (
        "the old value is read" in shown
        and "the new value is read" in shown
        and shown.index("old value") < shown.index("new value")
    )
    both = pictures.race_map("a", 0, writer, pictures.RaceAccess((7, 0, 0), (3, 0, 0), "writes", 34))
    assert (
        "another block" in both.alt
        and "thread (7, 0, 0)'s value stays" in words(both)
        and "thread (1, 0, 0)'s value stays" in words(both)
    )
    twins = pictures.race_map(
        "y", 0, pictures.RaceAccess((0, 0, 0), (1, 0, 0), "writes"), pictures.RaceAccess((0, 0, 0), (2, 0, 0), "writes")
    )
    assert twins.alt.endswith(
        "if block (1, 0, 0) comes first, block (2, 0, 0)'s value stays; otherwise block (1, 0, 0)'s value stays."
    )
    assert {"If block (1, 0, 0) comes first", "If block (2, 0, 0) comes first"} <= set(
        re.findall(r"If block \(\d, 0, 0\) comes first", words(twins))
    )


def test_race_map_refuses_what_is_no_race():
    reader = pictures.RaceAccess((0, 0, 0), (0, 0, 0), "reads")
    with pytest.raises(ValueError, match="no race"):
        pictures.race_map("a", 1, reader, pictures.RaceAccess((1, 0, 0), (0, 0, 0), "reads"))
    with pytest.raises(ValueError, match="itself"):
        pictures.race_map("a", 1, reader, pictures.RaceAccess((0, 0, 0), (0, 0, 0), "writes"))


@pytest.mark.slow
def test_a_verdict_of_a_race_shows_the_two_threads_that_simt_found():
    """The kernel has one race: thread t reads what thread t + 1 writes."""
    source = (
        "__global__ void k(float* y) { __shared__ float a[64]; a[threadIdx.x] = 1; "
        "y[threadIdx.x] = a[(threadIdx.x + 1) % 64]; }\n"
    )
    source += "void run(torch::Tensor y) { k<<<1, 64>>>(y.data_ptr<float>()); }"
    module = simt.load_inline("race", "void run(torch::Tensor y);", source, functions=["run"])
    with simt.check() as report:
        module.run(torch.zeros(64))
    found = next(finding for finding in report.findings if finding.check == "race")
    assert found.thread is not None and found.block is not None
    evidence = Evidence(thread=list(found.thread), block=list(found.block), line=found.line)
    stages = [
        Stage(name=StageName.safe, status=Status.failed, reason=Reason.race, message=found.message, evidence=[evidence])
    ]
    verdict = Verdict(
        problem="p",
        submission=Submission(path="p.py", sha256=""),
        outcome=Outcome.failed,
        stages=stages,
        device="cpu",
        versions={},
        seed=1,
        seconds=1.0,
        sandbox="none",
    )
    (picture,) = pictures.explain_verdict(verdict)
    reader, writer = (
        (found.thread, found.other_thread)
        if " reads " in found.message.split(", which")[0]
        else (found.other_thread, found.thread)
    )
    assert writer[0] == (reader[0] + 1) % 64 and f"element {writer[0]} of a" in picture.alt
    assert f"({reader[0]}, 0, 0)" in picture.alt and f"({writer[0]}, 0, 0)" in picture.alt
