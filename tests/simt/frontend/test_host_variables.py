"""Which variables of a source does only the host have?"""

import pytest

from simt.frontend.source import Source


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int n = 5; static float table[32], other = f(1, 2), *at;", ["n", "table", "other", "at"]),
        ("namespace a { namespace { int inner{3}; } } extern \"C\" { int plain; }", ["inner", "plain"]),
        ("struct S { int member; static int all; } one; int S::all = 3;", ["one", "all"]),
        ("std::map<int, std::pair<int, int>> known;\n#define M int x;\nint rows[] = {1, 2};", ["known", "rows"]),
        ("__device__ int n; static __constant__ float c[4] = {1}; __managed__ int m; __shared__ int s;", []),
        ("#define BOTH __host__ __device__\nBOTH int n;\n#define MAKE(n) __device__ int n\nMAKE(m);", []),
        ("int f(int n) { int local; return n; } __global__ void k(int n) { int local; } int g(int n);", []),
        ("auto f = [](int n) { int local; return n; };", ["f"]),
        ("extern int n; typedef int I; using J = int; constexpr int k = 3; struct T; enum E { A, B };", []),
        ("int n; namespace gpu { __device__ int n; }", []),
    ],
)  # fmt: skip
def test_host_variables(text, expected):
    """A name that a variable of the GPU has as well does not count, since the runtime compares plain names."""
    assert Source(text).host_variables == expected
