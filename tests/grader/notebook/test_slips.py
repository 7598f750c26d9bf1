"""Are mistakes that compile in any few lines of CUDA found, and right lines left alone?"""

import pytest

from grader.notebook import slips
from grader.notebook.fill import _code_of
from grader.paths import KERNELS_REF

DECLARED = "float value = x[i], sum = 0.0f; for (int offset = 16; offset; offset /= 2) { unsigned lane = 0; "


@pytest.mark.parametrize(
    "code, says",
    [
        ("k<<<ceil(n / 256), 256>>>(x, n);", "Write `(n + 256 - 1) / 256`."),
        ("int blocks = std::ceil(n / threads);", "`n / threads` divides integers"),
        ("int blocks = ceilf((float)(n / 256));", "`n / 256` divides integers"),
        ("int blocks = ceil(float(n / 256));", "`n / 256` divides integers"),
        ("if (i = n) return;", "`i = n` stores `n` in `i`"),
        ("while (k = 0) k--;", "`k = 0` stores `0` in `k`"),
        ("for (int k = 0; k = n; ++k) sum += x[k];", "`k = n` stores"),
        ("if (i < n && k = 2) return;", "`k = 2` stores"),
        ("__syncthreads;", "Write `__syncthreads()` to call it."),
        ("__syncwarp ;", "Write `__syncwarp()` to call it."),
        ("int i = i;", "`i` is computed from itself"),
        ("const float top = fmaxf(top, x[k]);", "`top` is computed from itself"),
        ("int64_t at = blockIdx.x * 32 + at;", "`at` is computed from itself"),
        (
            DECLARED + "value += __shfl_down_sync(0xffffffff, offset, value);",
            "Here `offset` stands in the value's place",
        ),
        (DECLARED + "sum += __shfl_xor_sync(0xffffffffu, 16, sum);", "Here `16` stands in the value's place"),
        (DECLARED + "sum = __shfl_sync(0xffffffff, lane, sum);", "Here `lane` stands in the value's place"),
    ],
)
def test_each_mistake_is_explained(code, says):
    assert says in slips.find(code)


@pytest.mark.parametrize(
    "code",
    [
        "k<<<ceil(n / 256.0), 256>>>(x, n);",
        "int blocks = ceil((float)n / 256);",
        "float part = 3.0f; int blocks = ceil(part / 2);",
        "int blocks = (n + 255) / 256;",
        "if (i == n || i >= n) return;",
        "if ((i = next()) > 0) return;",
        "for (int k = 0; k <= n; k += 2) sum += x[k];",
        "__syncthreads();",
        "__syncthreads ();",
        "int i = blockIdx.x * blockDim.x + threadIdx.x;",
        "int x = p.x, y = x + 1;",
        "i = i + 1;",
        "float count = a->count + b.count + std::count(a, b);",
        DECLARED + "value += __shfl_down_sync(0xffffffff, value, offset);",
        DECLARED + "value += __shfl_down_sync(0xffffffff, value, 16);",
        DECLARED + "lane += __shfl_down_sync(0xffffffff, lane, offset);",
        DECLARED + "int next = __shfl_sync(0xffffffff, offset, lane);",
    ],
)
def test_right_lines_are_left_alone(code):
    assert slips.find(code) == ""


def test_right_kernels_have_no_such_mistake():
    """Is nothing found in any solution of the course, nor in a step towards its fastest kernels?"""
    files = [*KERNELS_REF.glob("*/solution.py"), *KERNELS_REF.glob("*/backward.py"), *KERNELS_REF.glob("*/steps/*.py")]
    for path in files:
        assert not slips.find(_code_of(path.read_text(encoding="utf-8"))), path
