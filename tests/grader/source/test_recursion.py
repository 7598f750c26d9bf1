"""Is it told what used up a thread's stack: which recursion and why it does not end, or which array?"""

import pytest

from grader.source.recursion import find_stack_use

WALK = """__device__ float walk(const float* x, int i, int n) {
    BEFORE
    float rest = CALL;
    return x[i] + rest;
}
"""
BIG = """constexpr int MANY = 4096;
__global__ void k(float* y) {
    __shared__ float tile[4096];
    float small[16];
    KIND all[SIZES];
    y[0] = all[0];
}
"""


def find(before: str, call: str):
    code = WALK.replace("BEFORE", before).replace("CALL", call)
    place = find_stack_use("Thread (0, 0, 0) ran out of stack.", code.split("\n"), 3)
    assert place is not None and place.instead
    return place


@pytest.mark.parametrize(
    "before, call, words, lines",
    [
        (
            "if (i == n) return 0;",
            "walk(x, i + blockDim.x, n)",
            "`walk` calls itself in line 3 with `i + blockDim.x` for `i`, and ends only where `i == n` (line 2). Such "
            "a step can pass over `n`: test `i >= n`.",
            (2, 3),
        ),
        ("if (i == 0) return 0;", "walk(x, i - 2, n)", "Such a step can pass over `0`: test `i <= 0`.", (2, 3)),
        (
            "if (i >= n) return 0;",
            "walk(x, i, n)",
            "with `i` for `i`, which changes nothing: `i >= n` in line 2 stays as it is.",
            (2, 3),
        ),
        (
            "if (i >= n) { return 0; }",
            "walk(x, i - 1, n)",
            "which makes it smaller and never leads to `i >= n` (line 2). Step the other way.",
            (2, 3),
        ),
        ("i += 1;", "walk(x, i, n)", "`walk` calls itself in line 3, and nothing ends the recursion.", (3,)),
    ],
)
def test_why_a_recursion_does_not_end(before, call, words, lines):
    place = find(before, call)
    assert words in place.words and place.lines == lines


@pytest.mark.parametrize(
    "before, call",
    [
        ("if (i == n) return 0;", "walk(x, i + 1, n)"),  # it ends, after many calls
        ("if (i >= n) return 0;", "walk(x, i + 2, n)"),
        ("if (i >= n) return 0;", "walk(x, next(i), n)"),
        ("if (x[i] < 0) return 0;", "walk(x, i + 1, n)"),
        ("if (i < 0) return 0; if (i >= n) return 1;", "walk(x, 2 * i, n)"),
    ],
)
def test_no_reason_is_made_up(before, call):
    place = find(before, call)
    assert "Check that each call comes nearer to that, or write a loop." in place.words and place.lines == (3,)


def test_a_call_under_its_own_condition():
    """Does a test that goes on where it holds end the recursion where it does not?"""
    code = "__device__ int f(int i, int n) {\n    if (i < n) return 1 + f(i - 1, n);\n    return 0;\n}\n"
    place = find_stack_use("", code.split("\n"), 2)
    assert place is not None and "makes it smaller and never leads to `i >= n` (line 2)" in place.words


@pytest.mark.parametrize(
    "kind, sizes, bytes_",
    [("float", "MANY", "16,384"), ("double", "64 * 64", "32,768"), ("float", "100][100", "40,000")],
)
def test_a_large_array(kind, sizes, bytes_):
    place = find_stack_use("", BIG.replace("KIND", kind).replace("SIZES", sizes).split("\n"), 6)
    assert place is not None and place.lines == (5,)
    assert place.words.startswith(f"`all` (line 5) takes {bytes_} bytes of each thread's stack.")


def test_no_array_is_made_up():
    assert find_stack_use("", BIG.replace("KIND", "float").replace("SIZES", "8").split("\n"), 6) is None
