"""simt.check() names arrays: is the array told that the source indexes, whatever the expression looks like?"""

import pytest
import torch

import simt
from simt.toolchain.lines import compiled_lines, find_indexed_array

SOURCE = (
    r"""
struct Window { int low[4]; float rows[3][5]; };
#define AT(a, i) a[i]
#define CELL(y, x) board[(y)][(x)]
__device__ float table[6];
extern __shared__ float scratch[];

__global__ void matrix(int* out, int i) {
  __shared__ int tile[4][8];
  tile[threadIdx.x][0] = 1;
  __syncthreads();
  out[0] = tile[0][i];
}
__global__ void member(int* out, int i) {
  Window w = {};
  Window* at = &w;
  out[0] = at->rows[out[0]][i];
}
__global__ void two_in_a_line(int* out, int i) { int mine[4] = {}, index[4] = {}; """
    r"""out[0] = index[out[0]] + mine[index[0] + i]; }
__global__ void by_macro(int* out, int i) { int mine[4] = {}; __shared__ int board[2][2]; board[0][0] = mine[0]; """
    r"""out[0] = CELL(0, i); }
__global__ void on_two_lines(int* out, int i) {
  int mine[4] = {};
  out[0] = mine
    [i];
}
__global__ void of_the_device(int* out, int i) { float* p = table; out[0] = p[i]; }
__global__ void dynamic(int* out, int i) { out[0] = scratch[i]; }
__global__ void dynamic_inside(int* out, int i) { extern __shared__ double numbers[]; out[0] = numbers[i]; }
"""
)
CASES = {
    "matrix": ("tile", 20), "member": ("rows", 20), "two_in_a_line": ("mine", 20), "by_macro": ("board", 20),
    "on_two_lines": ("mine", 20),
    "of_the_device": ("table", 6), "dynamic": ("scratch", 3), "dynamic_inside": ("numbers", 3),
}  # fmt: skip


@pytest.fixture(scope="module")
def kernels():
    hosts = "\n".join(
        f"void run_{k}(torch::Tensor out, int i) {{ {k}<<<1, 1, 64>>>(out.data_ptr<int>(), i); }}" for k in CASES
    )
    declared = "".join(f"void run_{k}(torch::Tensor out, int i);" for k in CASES)
    return simt.load_inline("test_check_names", declared, SOURCE + hosts, functions=[f"run_{k}" for k in CASES])


@pytest.mark.slow
@pytest.mark.parametrize("kernel", CASES)
def test_is_the_array_named(kernels, kernel):
    """Out of bounds, or never written in the case of dynamic shared memory."""
    name, index = CASES[kernel]
    with simt.check() as report:
        getattr(kernels, f"run_{kernel}")(torch.zeros(1, dtype=torch.int32), index)
    finding = report.findings[0]
    assert finding.check == ("uninitialized" if "dynamic" in kernel else "out_of_bounds")
    assert (finding.array, finding.index) == (name, index) and f"`{name}`" in finding.message


def test_is_no_name_better_than_a_wrong_one(tmp_path):
    """Of a pointer in parentheses, of a macro with two arrays, and of a module whose text is gone, nothing is told."""
    text = '#line 1 "a.cu"\n#define BOTH(i) first[i] + second[i]\nx = (p + 1)[9];\ny = BOTH(9);'
    (tmp_path / "unit.cpp").write_text(text)
    (tmp_path / "texts").write_text(f"{tmp_path / 'unit.cpp'}\n")
    assert compiled_lines(text)["a.cu", 2] == "x = (p + 1)[9];"
    module = str(tmp_path / "extension.so")
    assert find_indexed_array(module, "a.cu", 2, 14) == find_indexed_array(module, "a.cu", 3, 5) == ""
    assert find_indexed_array(str(tmp_path / "gone" / "extension.so"), "a.cu", 2, 14) == ""
