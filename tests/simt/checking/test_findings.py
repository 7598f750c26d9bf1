"""Is a finding told in words that do not change from run to run?"""

from dataclasses import replace

import pytest

from simt.checking import findings
from simt.checking.findings import Finding

RACE = Finding(
    check="race",
    severity="error",
    message="Two threads write.",
    block=(1, 0, 0),
    thread=(0, 0, 0),
    other_block=(1, 0, 0),
    other_thread=(5, 0, 0),
    count=2040,
)


def test_the_number_of_occurrences_is_told():
    assert str(RACE).endswith("(2,040 times)")
    assert str(replace(RACE, other_block=None)).endswith("(2,040 times)")
    assert str(replace(RACE, count=1)).endswith("write.")


def test_how_often_two_blocks_race_is_not_told():
    """It depends on which of the two happened to run first."""
    assert str(replace(RACE, other_block=(0, 0, 0))).endswith("write.")


def test_the_advice_fits_two_accesses_in_one_line():
    """Is no barrier asked for "between the two" where both are in one statement, and none at once for two writes?"""
    assert findings._order_accesses("read", "write", False) == "Put a `__syncthreads()` between the two."
    assert findings._order_accesses("write", "write", False) == "Put a `__syncthreads()` between the two."
    assert "end the loop's body with a `__syncthreads()`" in findings._order_accesses("read", "write", True)
    assert findings._order_accesses("write", "write", True).startswith("Give each thread an element of its own.")


RAW = {
    "check": "race", "what": "read", "space": "shared", "array": "tile", "type": "", "index": 1, "elements": 64,
    "element": 4, "kernel": "k", "file": "a.cu", "line": 0, "column": 0, "barrier": 8, "block": (0, 0, 0),
    "thread": (0, 0, 0), "warning": False, "message": "", "count": 1, "first": 1,
}  # fmt: skip
TEXT = """
__device__ void fill(float* to) {
  to[0] = 1;
}
__global__ void k(float* out) {
  for (int i = 0; i < 9; ++i) {
    tile[t] = i;
    __syncthreads();
    out[t] += tile[t + 1];
  }
}
"""


@pytest.mark.parametrize(
    "read, write, barrier, over_passes",
    [(9, 7, 8, True), (7, 9, 8, True), (9, 7, 0, False), (9, 8, 9, False), (9, 3, 8, False), (9, 9, 8, False)],
)
def test_a_race_of_one_pass_with_the_next_is_told(tmp_path, read, write, barrier, over_passes):
    """Is it so if the last barrier before both accesses lies between them in one function, and only then?"""
    (tmp_path / "unit.cpp").write_text('#line 1 "a.cu"' + TEXT)
    (tmp_path / "texts").write_text(f"{tmp_path / 'unit.cpp'}\n")
    here, there = ((str(tmp_path / "k.so"), offset) for offset in (1, 2))
    raw = {**RAW, "barrier": barrier, "places": [here], "other": ("write", (0, 0, 0), (1, 0, 0), there)}
    found = findings._make_finding(raw, {here: ("a.cu", read), there: ("a.cu", write)})
    assert (found.line, found.other_line) == (read, write)
    later, earlier = ("write", "read") if read > write else ("read", "write")
    advice = f"between the {earlier} in one pass of the loop and the {later} in the next."
    assert (advice in found.message) == over_passes and " without a barrier in between." in found.message


def test_a_line_of_an_included_file_has_that_file():
    """Is the file that of the place in the code with this line, else of the first place, else the launch's?"""
    raw = {**RAW, "check": "device_assert", "message": "It failed.", "line": 7, "places": [("k.so", 1), ("k.so", 2)]}
    raw["other"] = None
    lines = {("k.so", 1): ("a.cu", 9), ("k.so", 2): ("b.cuh", 7)}
    assert findings._make_finding(raw, lines).source == "b.cuh"
    assert findings._make_finding(raw, {("k.so", 1): ("c.cuh", 9)}).source == "c.cuh"
    assert findings._make_finding(raw, {}).source == "a.cu"


def make(check: str, first: int, line: int = 1, **more) -> Finding:
    return Finding(check, "error", "", kernel="k", source="a.cu", line=line, first=first, **more)


@pytest.mark.parametrize("echo", ["int_overflow", "out_of_bounds", "illegal_address", "misaligned"])
@pytest.mark.parametrize("cause", ["race", "uninitialized"])
def test_what_follows_from_a_wrong_value_comes_behind_it(cause, echo):
    """Does the one that occurred later come second, and is the order of CHECKS kept otherwise?"""
    late = findings._put_in_order([make(echo, 5), make(cause, 4)])
    assert [f.check for f in late] == [cause, echo]
    early = findings._put_in_order([make(cause, 5), make(echo, 4)])
    assert [f.check for f in early] == [echo, cause]
    below = findings._put_in_order([make(echo, 5), make(cause, 4, line=2)])
    assert ([f.check for f in below] == [echo, cause]) == (echo != "int_overflow")
    warning = replace(make(cause, 4), severity="warning")
    assert [f.check for f in findings._put_in_order([warning, make(echo, 5)])] == [echo, cause]


def test_a_race_begins_with_the_unwritten_value_that_was_read():
    """Does a race take the moment of an uninitialised read of the same element, which is no finding of its own?"""
    race = make("race", 9, array="s", other_line=2)
    found = findings._remove_echoes([make("uninitialized", 3, array="s"), make("int_overflow", 4), race])
    assert [f.check for f in findings._put_in_order(found)] == ["race", "int_overflow"]
