"""Is the part of an index named that no test keeps within its dimension, where other parts are tested?"""

import pytest

from grader.source.bounds import find_returned_index, find_untested, split_index

KERNEL = """__global__ void k(const float* x, float* y, int n, int C, int H, int W, int total) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    const int px = i % W, py = i / W % H, c = i / W / H;
    BEFORE
    y[i] = ACCESS;
}
"""


def find(before: str, access: str, element: int = 40):
    message = (
        f"Thread (1, 0, 0) of block (0, 0, 0) reads element {element} of `x`, which has 30 elements: past its end."
    )
    return find_untested(message, KERNEL.replace("BEFORE", before).replace("ACCESS", access).split("\n"), 6)


@pytest.mark.parametrize(
    "index, parts",
    [
        ("((n * C + c) * H + y) * W + x", [("x", "W"), ("y", "H"), ("c", "C"), ("n", "")]),
        ("(int64_t)(row + r) * K + k0 + k", [("k0 + k", "K"), ("row + r", "")]),
        ("n * C * P + c * P + p", [("p", "P"), ("c", "C"), ("n", "")]),
        ("8 * w + k", [("k", "8"), ("w", "")]),
        ("(y - 1) * W + x - 1", [("x - 1", "W"), ("y - 1", "")]),
        ("i + 1", [("i + 1", "")]),
        ("a * b + c * d + e", []),
    ],
)
def test_the_parts_of_an_index(index, parts):
    assert split_index(index) == parts


@pytest.mark.parametrize(
    "before, access, element, words, marked",
    [
        # one side of two
        (
            "const int qx = px + 1 - n, qy = py + 1 - n; if (qy < 0 || qx < 0) return;",
            "x[(c * H + qy) * W + qx]",
            40,
            "Line 5 tests only whether `qy` and `qx` are below 0. They can also be too large: leave out the access "
            "where `qy >= H || qx >= W`, too.",
            5,
        ),
        (
            "const int qx = px - n;",
            "qx >= 0 ? x[c * W + qx] : 0.0f",
            40,
            "Line 6 tests only whether `qx` is below 0. It can also be too large: leave out the access where "
            "`qx >= W`, too.",
            6,
        ),
        (
            "const int qx = px - 1, qy = py - 1;\n    const bool inside = qx < W && qy < H;",
            "inside ? x[(c * H + qy) * W + qx] : 0.0f",
            -3,
            "Line 6 tests `qy < H`, but not whether `qy` and `qx` are below 0. They can be: leave out the access where "
            "`qy < 0 || qx < 0`, too.",
            6,
        ),
        # a part of the index
        ("if (i < n)", "x[i + 1]", 40, "Line 5 tests `i < n`, but the index is `i + 1`. Test `i + 1 < n`.", 5),
        ("if (px > 0)", "x[px - 2]", -1, "Line 5 tests `px > 0`, but the index is `px - 2`. Test `px - 2 > 0`.", 5),
        (
            "for (int k = 0; k < W; k += 4)",
            "x[c * W + k + n]",
            40,
            "The loop in line 5 runs while `k < W`, but the index is `k + n`. Test `k + n < W`, or change the index.",
            6,
        ),
        # one dimension of two
        (
            "const int row = blockIdx.y * 4 + n, k0 = 4 * n;",
            "row < H ? x[row * W + k0 + n] : 0.0f",
            40,
            "Line 6 tests `row < H`, but not `k0 + n`, which must be less than `W` as well. Test `k0 + n < W`, too.",
            6,
        ),
    ],
)
def test_the_other_half_of_a_test(before, access, element, words, marked):
    at = 6 + before.count("\n")
    message = f"Thread (1, 0, 0) of block (0, 0, 0) reads element {element} of `x`, which has 30 elements."
    code = KERNEL.replace("BEFORE", before).replace("ACCESS", access).split("\n")
    place = find_untested(message, code, at)
    assert place is not None
    assert place.words == words.replace("Line 6", f"Line {at - 1 if 'inside' in before else 6}")
    assert place.lines == (marked,)


@pytest.mark.parametrize(
    "before, access",
    [
        ("", "x[i]"),  # no test of the index but that of the total
        ("if (px < 0 || px >= W) return;", "x[c * W + px]"),
        ("", "x[(c * H + py) * W + px]"),  # remainders
        ("const int q = min(px + n, W - 1); if (q < 0) return;", "x[c * W + q]"),
        ("for (int ky = 0; ky < n; ++ky)", "x[(c * H + py + ky) * W + px]"),  # py + ky is in range, since py is
        ("if (c < C)", "x[(c * H + py + n) * W + px + n]"),  # two parts without a test: which?
        ("if (n > 0) { if (px >= n) return; }", "x[px + n * W]"),  # what leaves elsewhere proves nothing here
    ],
)
def test_no_part_is_named_without_need(before, access):
    assert find(before, access) is None


@pytest.mark.parametrize(
    "returns, access, found",
    [
        ("return v * 9;", "bins[find(x[i])]", 3),
        ("if (v < 0) return -1;\n    return v * 9;", "bins[find(x[i])]", 4),
        ("if (v < 0) return 2 * v;\n    return v * 9;", "bins[find(x[i])]", None),  # either
        ("return v * 9;", "bins[find(x[i]) + 1]", None),
        ("return v * 9;", "bins[b]", 3),
        ("return v * 9;", "bins[i]", None),
        ("return MOST;", "bins[b]", 3),
        ("if (v < 0) return 0;\n    return MOST;", "bins[b]", None),
    ],
)
def test_an_index_that_a_function_returns(returns, access, found):
    """Is the line named from which a function returns the index, and none where the index is something else?"""
    code = f"""
__device__ int find(float v) {{
    {returns}
}}
__global__ void k(const float* x, int* bins) {{
    const int i = threadIdx.x, b = find(x[i]);
    atomicAdd(&{access}, 1);
}}""".split("\n")
    message = "Thread (1, 0, 0) of block (0, 0, 0) updates atomically element 16 of `bins`, which has 16 elements: 1"
    place = find_returned_index(message, code, len(code) - 1)
    assert (place.lines[0] if place else None) == found
    assert place is None or ("what `find` returns in line" in place.words and "less than 16" in place.words)


@pytest.mark.parametrize(
    "test, found", [("i < own", 2), ("i <= own", 2), ("i < n", None), ("own < i", None), ("i + 1 < own", None)]
)
def test_a_limit_that_a_function_returns(test, found):
    """Is the line named from which a function returns the limit of an index, where a test before the access uses it?"""
    code = f"""
__device__ int count(int n) {{ return PART; }}
__global__ void k(const int* keys, int* y, int n) {{
    const int i = threadIdx.x, own = count(n);
    if ({test}) y[0] = keys[i];
}}""".split("\n")
    message = "Thread (1, 0, 0) of block (0, 0, 0) reads element 16 of `keys` (16 elements): 1 element past its end."
    place = find_returned_index(message, code, len(code) - 1)
    assert (place.lines[0] if place else None) == found
    assert place is None or f"`{test}` in line 5 is true here" in place.words
