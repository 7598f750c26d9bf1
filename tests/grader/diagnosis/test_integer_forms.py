"""Are mistakes of whole numbers, and sums that one thread keeps, found in forms that no specimen has, and no others?"""

import pytest

from grader.diagnosis import integer_forms, source_lines

HEAD = "// int8_t\n__global__ void k(const float* x, const int* q, float* y, float scale, int n) {\n"


@pytest.mark.parametrize(
    "find, body, lines",
    [
        ("cut_fractions", "int v = q[0] * scale;\ny[0] = v;", [3]),
        ("cut_fractions", "const int64_t v = 0.5f * q[0];\ny[0] = v + 1;", [3]),
        ("cut_fractions", "long v = q[0] / x[1];\ny[0] = v;", [3]),
        ("cut_fractions", "int v = (int)(q[0] * scale);\ny[0] = v;", []),
        ("cut_fractions", "int v = lrintf(q[0] * scale);\ny[0] = v;", []),
        ("cut_fractions", "int v = blockIdx.x * blockDim.x;\ny[v] = x[v];", []),
        ("cut_fractions", "int v = q[0] * n;\ny[0] = v * scale;", []),
        ("cut_fractions", "int s = 0;\nfor (int i = 0; i < n; ++i) s += x[i] * scale;\ny[0] = s;", [3]),
        ("cut_fractions", "const int a = x[0];\ny[0] = scale * a;", [3]),
        ("cut_fractions", "const int s = __syncthreads_count(n > 0 && x[n] > 0.0f);\ny[0] = s;", []),
        ("cut_fractions", "int v = x[0] > 0.5f;\ny[0] = v;", []),
        ("cut_fractions", "int v = x[0] > 0.5f ? scale * 2 : 0;\ny[0] = v;", [3]),
        ("narrow_sums", "int16_t total = 0;\nfor (int i = 0; i < n; ++i) total += q[i];\ny[0] = total;", [3]),
        ("narrow_sums", "short flag = 0;\ny[0] = flag;", []),
        ("unsigned_bytes", "int a = q[0] >> 8 & 0xff;\ny[0] = a;", [3]),
        ("unsigned_bytes", "unsigned a = q[0];\ny[0] = __dp4a(a, 3u, 0u);", [4]),
        ("unsigned_bytes", "int a = (int8_t)(q[0] >> 8 & 0xff);\ny[0] = a;", []),
        ("unsigned_bytes", "y[0] = __dp4a(q[0], q[1], 0);", []),
        ("unsigned_differences", "uint32_t c = (q[0] & 7) - 4;\ny[0] = c;", [3]),
        ("unsigned_differences", "int c = (q[0] & 7) - 4;\ny[0] = c;", []),
        ("signed_remainders", "int w = q[0];\ny[0] = (w >> (4 * n)) % 16;", [4]),
        ("signed_remainders", "unsigned w = q[0];\ny[0] = (w >> (4 * n)) % 16;", []),
        (
            "kept_sums",
            "int t = threadIdx.x;\nfloat s = 0;\nfor (int i = t; i < n; i += 64) s += x[i];\nif (t == 0) y[0] = s;",
            [6],
        ),
        (
            "kept_sums",
            "int t = threadIdx.x;\nfloat s = 0;\nfor (int i = t; i < n; i += 64) s += x[i];\n"
            "s += __shfl_xor_sync(~0u, s, 1);\nif (t == 0) y[0] = s;",
            [],
        ),
        (
            "kept_sums",
            "int t = threadIdx.x, a = 2;\nfor (int i = a + t; i < n; i += 9) scale += x[i];\nif (t == 0) y[0] = scale;",
            [5],
        ),
        (
            "kept_sums",
            "int t = threadIdx.x;\nfor (int i = 0; i < n; ++i) scale += x[i];\nif (t == 0) y[0] = scale;",
            [],
        ),
    ],
)
def test_lines_are_found_by_their_form(find, body, lines):
    """Is exactly the wrong line found?"""
    source = f"{HEAD}{body}\n}}\n"
    assert getattr(integer_forms, f"find_{find}")(source, source_lines.result_stores(source)) == lines


def test_an_exchange_in_a_function_counts():
    """Is a sum not called kept where a function of the file adds the threads' sums?"""
    text = (
        "__device__ float all(float v) { return v + __shfl_xor_sync(~0u, v, 1); }\n"
        + HEAD
        + (
            "int t = threadIdx.x;\nfloat s = 0;\nfor (int i = t; i < n; i += 64) s += x[i];\ns = all(s);\n"
            "if (t == 0) y[0] = s;\n}\n"
        )
    )
    assert not integer_forms.find_kept_sums(text, source_lines.result_stores(text))
