"""Inline PTX under the checks, under the counters and under nvcc: is it seen, counted and compiled as other code is?"""

from __future__ import annotations

import shutil
import subprocess

import pytest
import torch

import simt
from tests.simt.frontend.ptx_kernels import PTX_KERNELS
from tests.simt.kernels_of_expressions import _INCLUDES, ON_GPU, load

# ---- checks ----

_CHECKED_DEVICE = (
    r"""
#define SHARED(p) static_cast<unsigned>(__cvta_generic_to_shared(p))
#define COPY(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from))
#define LDMATRIX(r, at) asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"((r)[0]), """
    r""""=r"((r)[1]) : "r"(at))
#define MMA(d, a, b)                                                                                             \
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, """
    r"""{%0,%1,%2,%3};" \
               : "+f"((d)[0]), "+f"((d)[1]), "+f"((d)[2]), "+f"((d)[3])                                          \
               : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))
__global__ void cases(int n, const float* x, float* out) {
  __shared__ __align__(16) float room[64];
  __shared__ __align__(16) float last[64];
  int t = threadIdx.x;
  unsigned a[4] = {1, 2, 3, 4}, b[2] = {5, 6};
  float d[4] = {};
  if (n < 10) {
    COPY(SHARED(&room[t]) + (n == 4 ? 4096 : 0), x + t + (n == 3 ? 200 : 0));  // copy
    asm volatile("cp.async.commit_group;");
    if (n == 1) out[t] = room[t];  // early
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    if (n != 2) asm volatile("bar.sync 0;" ::: "memory");
    out[t] = room[63 - t];                                                                                      // use
  }
  if (n == 10 || n == 11) {
    room[t] = x[t];
    if (n == 10) __syncthreads();
    LDMATRIX(a, SHARED(room + t % 16 * 4));  // rows
    out[t] = __uint_as_float(a[0]);
  }
  if (n == 12) {
    LDMATRIX(a, SHARED(last + t % 16 * 4));  // unwritten
    out[t] = __uint_as_float(a[0]);
  }
  if (n == 13) {
    unsigned c[4];
    c[0] = c[1] = c[2] = 1;
    MMA(d, c, b);  // fragment
    out[t] = d[0];
  }
  if (n == 14) asm volatile("st.global.v2.f32 [%0], {%1, %1};" ::"l"(out + 2 * t), "f"(d[0]) : "memory");  // store
  if (n == 15) {
    float v;
    room[t] = 1;
    __syncthreads();
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(SHARED(&room[0]) + 4 * t + 4));  // load
    out[t] = v;
  }
  if (n == 20 && t % 32 != 7) MMA(d, a, b);  // lane 7
  if (n == 21 && t != 9) LDMATRIX(a, SHARED(room));  // lane 9
  if (n == 22) LDMATRIX(a, SHARED(room) + 4 * t);  // rows apart
  if (n == 23) LDMATRIX(a, 16 * t);  // a number
  if (n == 24) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(SHARED(room)), "l"(x + 1));  // a float on
  if (n == 25) COPY(16, x);  // no address
  if (n == 26) {
    if (t % 32 < 16) MMA(d, a, b);  // one half
    else MMA(d, a, b);  // the other
  }
  if (n == 27) asm volatile("red.global.add.f32 [%0], 0f3F800000;" ::"l"(out) : "memory");
}
"""
)
_CHECKED_HOST = (
    "void run(int n, torch::Tensor x, torch::Tensor out) { "
    "cases<<<1, 64>>>(n, x.data_ptr<float>(), out.data_ptr<float>()); }"
)


@pytest.fixture(scope="module")
def checked():
    return load(_CHECKED_DEVICE + _CHECKED_HOST, ["void run(int n, torch::Tensor x, torch::Tensor out)"])


def _line(marker: str, source: str) -> int:
    return next(i for i, text in enumerate((_INCLUDES + source).split("\n"), 1) if text.endswith(f"// {marker}"))


@pytest.mark.slow
@pytest.mark.skipif(ON_GPU, reason="checks are of the CPU's")
@pytest.mark.parametrize(
    ("n", "check", "marker", "words"),
    [
        (0, None, "", ""), (10, None, "", ""), (27, None, "", ""),
        (1, "race", "early", "no thread has waited for it"),
        (2, "race", "use", "`room`"),
        (3, "out_of_bounds", "copy", "`x`"),
        (11, "race", "rows", "`room`"),
        (12, "uninitialized", "unwritten", "`last`"),
        (13, "uninitialized", "fragment", "`c`"),
        (14, "out_of_bounds", "store", "`out`"),
        (15, "out_of_bounds", "load", "room"),
    ],
)  # fmt: skip
def test_checks_see_what_ptx_reads_and_writes(checked, n, check, marker, words):
    """Is each defect named with its line and its array, and is sound use left alone?"""
    with simt.check() as report:
        checked.run(n, torch.ones(128), torch.zeros(64))
    if check is None:
        assert report.findings == []
        return
    found = [f for f in report.findings if f.check == check]
    assert found, [str(f) for f in report.findings]
    assert not marker or found[0].line == _line(marker, _CHECKED_DEVICE)
    assert words in found[0].message


@pytest.mark.skipif(ON_GPU, reason="a GPU says nothing of this")
@pytest.mark.parametrize(
    ("n", "reason", "words"),
    [
        (20, "warp_divergence", r"mma.sync.m16n8k8.tf32 in line \d+ needs all 32 lanes of the warp, but lane 7"),
        (21, "warp_divergence", r"ldmatrix.x2 in line \d+ needs all 32 lanes of the warp, but lane 9"),
        (22, "misaligned", "ldmatrix in line .* multiples of 16 bytes"),
        (23, "illegal_address", "ldmatrix in line .*__cvta_generic_to_shared"),
        (24, "misaligned", "cp.async in line .* source address"),
        (4, "illegal_address", "cp.async in line .* its target is not in the block's shared memory"),
        (25, "illegal_address", "cp.async in line .* its target is not in the block's shared memory"),
        (26, "warp_divergence", "waits in mma.sync.m16n8k8.tf32"),
    ],
)
def test_rules_of_ptx(checked, n, reason, words):
    """Is a call against the PTX ISA's rules a KernelError with its line, in a plain build too?"""
    with pytest.raises(simt.KernelError, match=words) as caught:
        checked.run(n, torch.ones(128), torch.zeros(64))
    assert caught.value.reason == reason


# ---- counters ----

_COUNTED_DEVICE = (
    r"""
__device__ unsigned place(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__global__ void copied(const float* x, float* out, int stride, int wide) {
  extern __shared__ __align__(16) float tile[];
  int t = threadIdx.x;
  if (wide == 2) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place(tile + 4 * t)), """
    r""""l"(x + 4 * t), "r"(stride));
  else if (wide) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place(tile + 4 * t * stride)), """
    r""""l"(x + 4 * t));
  else asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place(tile + t * stride)), "l"(x + t * stride));
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  out[t] = tile[t * stride];
}
__global__ void assigned(const float* x, float* out, int stride, int wide) {
  extern __shared__ __align__(16) float tile[];
  int t = threadIdx.x;
  if (wide) *(float4*)(tile + 4 * t * stride) = *(const float4*)(x + 4 * t);
  else tile[t * stride] = x[t * stride];
  __syncthreads();
  out[t] = tile[t * stride];
}
// Rows of 16 bytes, `stride` bytes apart.
__global__ void matrices(unsigned* out, int stride, int many) {
  extern __shared__ __align__(16) char rows[];
  unsigned r[4] = {}, row = place(rows) + threadIdx.x % 32 * stride;
  if (many == 1) asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(row));
  if (many == 2) asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), """
    r""""=r"(r[1]) : "r"(row));
  if (many == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), """
    r""""=r"(r[2]), "=r"(r[3]) : "r"(row));
  out[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
}
__global__ void products(float* out, int n) {
  float d[4] = {};
  unsigned a = 1, b = 2;
  for (int i = 0; i < n; ++i) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, """
    r"""{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(b));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, """
    r"""{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(b));
  }
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
__global__ void special(const float* x, float* out) {
  float a = x[threadIdx.x], b, c;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(b) : "f"(a));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(c) : "f"(b));
  asm("tanh.approx.f32 %0, %1;" : "=f"(b) : "f"(c));
  asm("fma.rn.f32 %0, %1, %1, %2;" : "=f"(c) : "f"(b), "f"(a));
  unsigned u;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(c));
  out[threadIdx.x] = __uint_as_float(u);
}
__global__ void vectors(const float* x, float* out) {
  float a, b, c, d;
  asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), """
    r""""=f"(d) : "l"(x + 4 * threadIdx.x));
  asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(out + 4 * threadIdx.x), "f"(d), "f"(c), "f"(b), """
    r""""f"(a) : "memory");
}
"""
)
_COUNTED_HOST = """
void run(int which, torch::Tensor x, torch::Tensor out, int a, int b) {
  float *px = x.data_ptr<float>(), *po = out.data_ptr<float>();
  if (which == 0) copied<<<1, 64, 16384>>>(px, po, a, b);
  if (which == 1) assigned<<<1, 64, 16384>>>(px, po, a, b);
  if (which == 2) matrices<<<1, 64, 8192>>>((unsigned*)po, a, b);
  if (which == 3) products<<<2, 64>>>(po, a);
  if (which == 4) special<<<1, 64>>>(px, po);
  if (which == 5) vectors<<<1, 64>>>(px, po);
}
"""


@pytest.fixture(scope="module")
def counted():
    return load(
        _COUNTED_DEVICE + _COUNTED_HOST, ["void run(int which, torch::Tensor x, torch::Tensor out, int a, int b)"]
    )


def _counters(counted, which: int, a: int = 0, b: int = 0) -> simt.Launch:
    with simt.count() as report:
        counted.run(which, torch.ones(1024), torch.zeros(1024), a, b)
    return report.launches[0]


@pytest.mark.slow
@pytest.mark.skipif(ON_GPU, reason="counters are of the CPU's")
@pytest.mark.parametrize(("stride", "wide"), [(1, 0), (2, 0), (8, 0), (1, 1), (2, 1)])
def test_cp_async_costs_what_a_copy_by_hand_does(counted, stride, wide):
    """Are its sectors, and the requests and wavefronts of its writes, those of a load and a store?"""
    a, b = (_counters(counted, which, stride, wide).counters for which in (0, 1))
    assert a.global_loads == b.global_loads and a.shared_stores == b.shared_stores
    assert a.global_loads.requests == 2


@pytest.mark.slow
@pytest.mark.skipif(ON_GPU, reason="counters are of the CPU's")
@pytest.mark.parametrize(("size", "requests", "sectors"), [(16, 2, 32), (8, 2, 32), (4, 2, 32), (0, 0, 0)])
def test_cp_async_reads_what_src_size_says(counted, size, requests, sectors):
    """Is so much of 16 bytes read in one request, and are 16 written?"""
    counters = _counters(counted, 0, size, 2).counters
    loads, stores = counters.global_loads, counters.shared_stores
    assert (loads.requests, loads.bytes, loads.sectors) == (requests, 64 * size, sectors)
    assert (stores.requests, stores.bytes) == (2, 64 * 16)


@pytest.mark.skipif(ON_GPU, reason="counters are of the CPU's")
@pytest.mark.parametrize("many", [1, 2, 4])
@pytest.mark.parametrize(("stride", "passes"), [(16, 1), (32, 2), (48, 1), (64, 4), (128, 8)])
def test_ldmatrix_costs_a_pass_a_matrix_and_its_conflicts(counted, many, stride, passes):
    """Is it one request a warp, with a wavefront for each matrix, times the rows that share banks, and no branch of its
    own?
    """
    counters = _counters(counted, 2, stride, many).counters
    loads = counters.shared_loads
    assert (loads.requests, loads.lanes, loads.bytes) == (2, 2 * 8 * many, 2 * 128 * many)
    assert (loads.wavefronts, loads.ideal_wavefronts) == (2 * many * passes, 2 * many)
    assert counters.divergent_branches == 0


@pytest.mark.skipif(ON_GPU, reason="counters are of the CPU's")
def test_mma_counts_as_its_part_of_a_wmma_product(counted):
    """Are 16 x 8 x 8 of TF32 and 16 x 8 x 16 of bf16 each half of what wmma::mma_sync() is, and does the model see
    them?
    """
    launch = _counters(counted, 3, 10)
    assert launch.counters.exchanges == 4 * 20
    assert launch.counters.mix["tensor"] == 128 * 10 * (0.5 + 0.5)
    assert launch.counters.local_loads.requests == launch.counters.local_stores.requests == 0
    assert simt.predict(launch, "H200").terms["tensor cores"] > 0


@pytest.mark.skipif(ON_GPU, reason="counters are of the CPU's")
def test_special_functions_count_as_such(counted):
    """Are ex2, rcp and tanh three operations of the special-function unit, and fma two of the others?"""
    counters = _counters(counted, 4).counters
    assert counters.mix["fp32_special"] == 3 * 64 and counters.mix["convert"] == 64
    assert counters.flops == 2 * 64


@pytest.mark.skipif(ON_GPU, reason="counters are of the CPU's")
def test_vectors_are_one_access(counted):
    """Is .v4 one request of 16 bytes a lane?"""
    counters = _counters(counted, 5).counters
    for traffic in (counters.global_loads, counters.global_stores):
        assert (traffic.requests, traffic.bytes, traffic.sectors) == (2, 64 * 16, 32)


# ---- nvcc ----


def test_nvcc_takes_the_sources_unchanged(tmp_path):
    """Does nvcc compile every kernel of ptx_kernels.py and of this file for sm_90 as it stands?"""
    if not shutil.which("nvcc"):
        pytest.skip("nvcc is not here")
    for name, text in (("kernels", PTX_KERNELS), ("checked", _CHECKED_DEVICE), ("counted", _COUNTED_DEVICE)):
        (tmp_path / f"{name}.cu").write_text("#include <cstdint>\n" + text)
        command = ["nvcc", "-arch=sm_90", "-cubin", "-o", "/dev/null", str(tmp_path / f"{name}.cu")]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
