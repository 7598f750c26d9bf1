"""Kernels of inline PTX for the tests: one for each instruction, or for a few that belong together."""

from __future__ import annotations

import numpy as np
import torch

from tests.simt.kernels_of_expressions import DEVICE

MMA = {  # name: (instruction, registers of a, b, c and d, elements' type, k)
    "tf32_k4": ("m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4, "tf32", 4),
    "tf32_k8": ("m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, "tf32", 8),
    "f16_k8": ("m16n8k8.row.col.f32.f16.f16.f32", 2, 1, 4, "f16", 8),
    "f16_k16": ("m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, "f16", 16),
    "bf16_k8": ("m16n8k8.row.col.f32.bf16.bf16.f32", 2, 1, 4, "bf16", 8),
    "bf16_k16": ("m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, "bf16", 16),
    "e4m3_k32": ("m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 2, 4, "e4m3", 32),
    "e5m2_k32": ("m16n8k32.row.col.f32.e5m2.e5m2.f32", 4, 2, 4, "e5m2", 32),
    "half_k8": ("m16n8k8.row.col.f16.f16.f16.f16", 2, 1, 2, "f16", 8),
    "half_k16": ("m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2, "f16", 16),
}  # fmt: skip
# The same with integers of 8 bits, which are added up in int.
MMA_INT = {
    f"{t}_k{k}": (f"m16n8k{k}.row.col.s32.{t}.{t}.s32", k // 8, k // 16, 4, t, k)
    for t in ("s8", "u8")
    for k in (16, 32)
}
_APPROXIMATE = ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos")
# One result and one argument, each a register of 32 or 16 bits.
UNARY = {
    **{f"{r}_tf32": (f"cvt.{r}.tf32.f32 %0, %1;", "r", "f") for r in ("rna", "rn", "rz")},
    **{f"{r}_{t}": (f"cvt.{r}.{t}.f32 %0, %1;", "h", "f") for r in ("rn", "rz") for t in ("f16", "bf16")},
    **{f"f32_{t}": (f"cvt.f32.{t} %0, %1;", "f", "h") for t in ("f16", "bf16")},
    **{f"{f}.approx{ftz}": (f"{f}.approx{ftz}.f32 %0, %1;", "f", "f") for f in _APPROXIMATE for ftz in ("", ".ftz")},
    "tanh.approx": ("tanh.approx.f32 %0, %1;", "f", "f"), "mov": ("mov.b32 %0, %1;", "f", "r"),
    "not": ("not.b32 %0, %1;", "r", "r"), "neg": ("neg.f32 %0, %1;", "f", "f"), "abs": ("abs.f32 %0, %1;", "f", "f"),
    "to_f32": ("cvt.rn.f32.s32 %0, %1;", "f", "r"), "rzi": ("cvt.rzi.s32.f32 %0, %1;", "r", "f"),
    "rni": ("cvt.rni.s32.f32 %0, %1;", "r", "f"),
    "square_plus": ("fma.rn.f16x2 %0, %1, %1, %1;", "r", "r"),
    "halves": ("{ .reg .b16 low, high; mov.b32 {low, high}, %1; mov.b32 %0, {high, low}; }", "r", "r"),
}  # fmt: skip
BINARY = {
    **{f"{r}_{t}": (f"cvt.{r}.{t}.f32", "r", "f") for r, t in (("rn", "bf16x2"), ("rn", "f16x2"), ("rz", "bf16x2"))},
    **{f"{f}_f32": (f"{f}.f32", "f", "f") for f in ("add", "sub", "mul", "min", "max", "mul.ftz", "add.rn.ftz")},
    **{f: (f, "r", "r") for f in ("add.f16x2", "sub.rn.f16x2", "mul.f16x2")},
    **{f: (f, "r", "r") for f in "add.s32 sub.u32 mul.lo.s32 and.b32 or.b32 xor.b32 shl.b32 shr.u32 shr.s32".split()},
}  # fmt: skip
_CPP = {"f": "float", "r": "unsigned", "h": "unsigned short"}


def _name(text: str) -> str:
    return text.replace(".", "_")


def _listed(prefix: str, first: int, count: int) -> str:
    return ", ".join(f"{prefix}{first + i}" for i in range(count))


def _mma(name: str) -> str:
    """A kernel that multiplies whatever registers each lane is given."""
    instruction, a, b, c, _, _ = {**MMA, **MMA_INT}[name]
    kind, kept = ("f", "float") if c == 4 and name in MMA else ("r", "unsigned")
    sums = ", ".join(f'"+{kind}"(d[{i}])' for i in range(c))
    inputs = ", ".join([*(f'"r"(a[{i}])' for i in range(a)), *(f'"r"(b[{i}])' for i in range(b))])
    return f"""
__global__ void mma_{name}(const unsigned* A, const unsigned* B, {kept}* C) {{
  unsigned a[{a}], b[{b}];
  {kept} d[{c}];
  for (int i = 0; i < {a}; ++i) a[i] = A[threadIdx.x * {a} + i];
  for (int i = 0; i < {b}; ++i) b[i] = B[threadIdx.x * {b} + i];
  for (int i = 0; i < {c}; ++i) d[i] = C[threadIdx.x * {c} + i];
  asm volatile(
      "mma.sync.aligned.{instruction} "
      "{{{_listed("%", 0, c)}}}, {{{_listed("%", c, a)}}}, {{{_listed("%", c + a, b)}}}, {{{_listed("%", 0, c)}}};\\n"
      : {sums}
      : {inputs});
  for (int i = 0; i < {c}; ++i) C[threadIdx.x * {c} + i] = d[i];
}}"""


def _unary(name: str) -> str:
    template, to, of = UNARY[name]
    return f"""
__global__ void unary_{_name(name)}(const {_CPP[of]}* x, {_CPP[to]}* out, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  asm("{template}" : "={to}"(out[i]) : "{of}"(x[i]));
}}"""


def _binary(name: str) -> str:
    instruction, to, of = BINARY[name]
    return f"""
__global__ void binary_{_name(name)}(const {_CPP[of]}* x, const {_CPP[of]}* y, {_CPP[to]}* out, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  {_CPP[to]} result;
  asm volatile("{instruction} %0, %1, %2;" : "={to}"(result) : "{of}"(x[i]), "{of}"(y[i]));
  out[i] = result;
}}"""


_OTHERS = (
    r"""
#include <cuda_fp16.h>
typedef unsigned u32;
__device__ __forceinline__ u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

// ---- cp.async ----
#define CP_ASYNC_COMMIT() asm volatile("cp.async.commit_group;\n" ::)
#define CP_ASYNC_WAIT(n) asm volatile("cp.async.wait_group %0;\n" ::"n"(n))
#define CP_ASYNC_WAIT_TEXT(n) asm volatile("cp.async.wait_group " #n ";\n" ::: "memory")

__global__ void widths(const float* x, float* out, int n) {
  __shared__ float4 room[64];
  float* mine = (float*)&room[threadIdx.x];
  for (int i = 0; i < 4; ++i) mine[i] = -1;
  const float* from = x + 4 * threadIdx.x;
  u32 to = shared_address(mine);
  if (n == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(from));
  if (n == 17) asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(to), "l"(from), "n"(16));
  if (n == 8) asm volatile("cp.async.ca.shared.global [%0 + 8], [%1+8], 8;\n" ::"r"(to), "l"(from));
  if (n == 4) asm volatile("cp.async.ca.shared.global [%0], [%1], %2;\n" ::"r"(to + 12), "l"(from + 1), """
    r""""n"(sizeof(float)));
  if (n == 12) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(4));  """
    r"""// 4 bytes read
  if (n == 2) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(12));
  if (n == 0) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(0));
  if (n == 1) {                                                      // as CUTLASS writes it
    bool wanted = threadIdx.x % 2;
    asm volatile(
        "{\n"
        "  .reg .pred p;\n"
        "  setp.ne.b32 p, %0, 0;\n"
        "  @p cp.async.cg.shared.global.L2::256B [%1], [%2], 16;  // if wanted\n"
        "}\n" ::"r"((int)wanted), "r"(to), "l"(from));
  }
  CP_ASYNC_COMMIT();
  CP_ASYNC_WAIT_TEXT(0);
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = mine[i];
}

// What stands there after each wait: on the CPU a copy arrives as late as it may.
__global__ void late(const float* x, float* out) {
  extern __shared__ float tiles[];
  float *a = tiles, *b = tiles + 64, *c = tiles + 128;
  int t = threadIdx.x;
  a[t] = b[t] = c[t] = -1;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&a[t])), "l"(x + t));
  CP_ASYNC_COMMIT();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&b[t])), "l"(x + t));
  CP_ASYNC_COMMIT();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&c[t])), "l"(x + t));
  out[t] = a[t];                 // not waited for
  CP_ASYNC_WAIT(1);
  out[64 + t] = a[t];            // here
  out[128 + t] = b[t];           // may still be under way
  CP_ASYNC_WAIT(0);
  out[192 + t] = b[t];           // here
  out[256 + t] = c[t];           // not committed
  asm volatile("cp.async.wait_all;");
  out[320 + t] = c[t];           // here
}

// Sums of tiles of 64 through two buffers, as in test_headers_async.py.
__global__ void buffered(const float* x, float* out, int n) {
  __shared__ float tile[2][64];
  int t = threadIdx.x;
  float sum = 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&tile[0][t])), "l"(x + t));
  CP_ASYNC_COMMIT();
  for (int i = 0; i < n; ++i) {
    if (i + 1 < n) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" """
    r"""::"r"(shared_address(&tile[(i + 1) % 2][t])), "l"(x + (i + 1) * 64 + t));
    CP_ASYNC_COMMIT();
    CP_ASYNC_WAIT(1);
    asm volatile("bar.sync 0;" ::: "memory");
    sum += tile[i % 2][63 - t];
    asm volatile("bar.sync 0;" ::: "memory");
  }
  out[t] = sum;
}

// ---- addresses, loads and stores ----
__global__ void addresses(int* out) {
  __shared__ __align__(1024) int fixed[512];
  extern __shared__ __align__(1024) int dynamic[];
  int t = threadIdx.x;
  for (int i = t; i < 512; i += 32) fixed[i] = i, dynamic[i] = 1000 + i;
  __syncthreads();
  u32 f = shared_address(fixed), d = shared_address(dynamic), wide;
  asm("{ .reg .u64 at; cvta.to.shared.u64 at, %1; cvt.u32.u64 %0, at; }" : "=r"(wide) : "l"(dynamic));
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(out[t]) : "r"(f + 4 * t));
  asm volatile("ld.shared.b32 %0, [%1+64];" : "=r"(out[32 + t]) : "r"((d + 4 * t) ^ 16));       // a swizzle
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(out[64 + t]) : "r"(wide + 4 * t));
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(f + 4 * t), "r"(7 * t) : "memory");
  out[96 + t] = fixed[t];
  out[128 + t] = f % 1024 == (unsigned)((size_t)fixed % 1024) && d % 1024 == (unsigned)((size_t)dynamic % 1024);
}
__global__ void moves(const float* x, float* out) {
  __shared__ float4 room[32];
  int t = threadIdx.x;
  float a, b, c, d;
  const float* p = x + 4 * t;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), """
    r""""=f"(d) : "l"(p));
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(&room[t])), "f"(d), "f"(c), "f"(b), """
    r""""f"(a) : "memory");
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2 + 8];" : "=f"(a), "=f"(b) : "r"(shared_address(&room[t])));  """
    r"""// b, a of before
  asm volatile("st.global.cs.v2.f32 [%0], {%1, %2};" ::"l"(out + 4 * t), "f"(a), "f"(b) : "memory");
  asm volatile("ld.global.f32 %0, [%1+12];" : "=f"(c) : "l"(p));
  asm volatile("st.global.cg.f32 [%0+8], %1;" ::"l"(out + 4 * t), "f"(c) : "memory");
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
  unsigned long long both;
  unsigned low, high;
  asm volatile("ld.global.b64 %0, [%1];" : "=l"(both) : "l"(p));
  asm volatile("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"(both));
  asm volatile("st.global.b32 [%0], %1;" ::"l"(out + 4 * t + 3), "r"(high) : "memory");
}
__global__ void atomics(float* f, unsigned* u, unsigned* before) {
  __shared__ unsigned count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(f), "f"(0.5f) : "memory");
  asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(before[threadIdx.x]) : "l"(u), "r"(2) : "memory");
  asm volatile("red.relaxed.gpu.global.max.s32 [%0], %1;" ::"l"(u + 1), "r"((int)threadIdx.x - 99) : "memory");
  asm volatile("atom.shared.add.u32 %0, [%1], 1;" : "=r"(before[32 + threadIdx.x]) : "r"(shared_address(&count)) : """
    r""""memory");
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(u + 2) : "memory");
  unsigned old;
  if (threadIdx.x == 0) asm volatile("atom.global.cas.b32 %0, [%1], 5, %2;" : "=r"(old) : "l"(u + 3), """
    r""""r"(6) : "memory");
}

// The first warp waits for a word of the second, which for one of the first: neither barrier nor shuffle in between.
__global__ void signals(unsigned* flag, unsigned long long* word, float* out) {
  unsigned seen;
  if (threadIdx.x == 0) {
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    while (seen == 0);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(1ull << 40 | seen) : "memory");
  }
  if (threadIdx.x == 32) {
    out[0] = 5;
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(3) : "memory");
    unsigned long long both;
    do asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(both) : "l"(word) : "memory");
    while (both == 0);
    out[1] = (float)(both >> 40);
  }
}

// ---- registers, predicates, lanes ----
__global__ void registers(int* out) {
  int t = threadIdx.x, lane, warp;
  unsigned clock, mask, sm;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  asm volatile("mov.u32 %0, %%clock;\n\tmov.u32 %1, %%smid;" : "=r"(clock), "=r"(sm));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  int chosen, third = -1;
  asm("{\n\t.reg .pred %%p<2>;\n\t.reg .b32 %%r;\n\tsetp.lt.s32 %%p0, %1, 10;"""
    r"""\n\tadd.s32 %%r, %1, 0x64;\n\tselp.b32 %0, %1, %%r, %%p0;\n\t}" : "=r"(chosen) : "r"(t));
  asm("{ .reg .pred p; setp.ge.u32 p, %1, 30; @!p mov.u32 %0, 3; }" : "+r"(third) : "r"(t));
  out[t] = lane; out[64 + t] = warp; out[128 + t] = (int)mask; out[192 + t] = chosen; out[256 + t] = third;
  out[320 + t] = sm < 1000 && clock != 0;
}
__global__ void lanes(int* out) {
  int t = threadIdx.x, up, down, across, from, inside;
  asm volatile("shfl.sync.up.b32 %0, %1, 3, 0x1000, 0xffffffff;" : "=r"(up) : "r"(t));            // segments of 16
  asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 5, 0x1f, 0xffffffff; selp.b32 %1, 1, 0, p; }" : """
    r""""=r"(down), "=r"(inside) : "r"(t));
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, -1;" : "=r"(across) : "r"(t), "r"(9));
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x181f, 0xffffffff;" : "=r"(from) : "r"(t), "n"(5));   // segments of 8
  unsigned voted;
  int sum;
  asm volatile("{ .reg .pred p; setp.gt.s32 p, %1, 20; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : """
    r""""=r"(voted) : "r"(t));
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(t));
  out[t] = up; out[32 + t] = down; out[64 + t] = inside; out[96 + t] = across; out[128 + t] = from; """
    r"""out[160 + t] = (int)voted; out[192 + t] = sum;
}
__global__ void logic(const unsigned* x, unsigned* out) {
  unsigned a = x[0], b = x[1], c = x[2];
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(out[0]) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(out[1]) : "r"(a), "r"(b), "r"(c), "n"(0xE8));
  asm("lop3.b32 %0, %1, %2, %3, 202;" : "=r"(out[2]) : "r"(a), "r"(b), "r"(c));
  float f;
  asm("fma.rn.f32 %0, %1, 2.5, 0f3F800000;" : "=f"(f) : "f"(3.0f));
  out[3] = __float_as_uint(f);
  asm volatile("" : "+r"(out[3]) :: "memory");
  unsigned long long wide;
  asm(R"ptx(
      mul.wide.u32 %0, %1, %2;   /* 64 bits */
      add.u64 %0, %0, 1;
  )ptx" : "=l"(wide) : "r"(0xffffffffu), "r"(3u));
  out[4] = (unsigned)wide; out[5] = (unsigned)(wide >> 32);
}
"""
)


def _ldmatrix(name: str) -> str:
    """A tile of 32 rows of 8 numbers of 16 bits; rows[l]: where lane l's row begins."""
    many = name.replace("ldmatrix_", "").replace("_", ".")
    n = int(many[1])
    outputs = ", ".join(f'"=r"(r[{i}])' for i in range(n))
    return f"""
__global__ void {name}(const unsigned short* tile, const int* rows, u32* out) {{
  __shared__ __align__(16) unsigned short room[32 * 8];
  for (int i = threadIdx.x; i < 256; i += 32) room[i] = tile[i];
  __syncthreads();
  u32 r[4] = {{}};
  asm volatile("ldmatrix.sync.aligned.m8n8.{many}.shared.b16 {{{_listed("%", 0, n)}}}, [%{n}];"
               : {outputs} : "r"(shared_address(room + rows[threadIdx.x])));
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = r[i];
}}"""


MATRICES = [f"ldmatrix_x{n}{trans}" for n in (1, 2, 4) for trans in ("", "_trans")]
_MADE = ((_mma, MMA), (_mma, MMA_INT), (_unary, UNARY), (_binary, BINARY), (_ldmatrix, MATRICES))
PTX_KERNELS = _OTHERS + "".join(make(name) for make, names in _MADE for name in names)


def make_host() -> tuple[str, list[str]]:
    text, declared = "", []

    def add(name: str, parameters: str, call: str) -> None:
        nonlocal text
        declared.append(f"void run_{name}({parameters})")
        text += f"{declared[-1]} {{ {name}{call}; }}\n"

    for n in (*MMA, *MMA_INT):
        kept = "float" if n in MMA and MMA[n][3] == 4 else "unsigned"
        call = f"<<<1, 32>>>(POINTER(unsigned, a), POINTER(unsigned, b), POINTER({kept}, c))"
        add(f"mma_{n}", "torch::Tensor a, torch::Tensor b, torch::Tensor c", call)
    for n, (_, to, of) in UNARY.items():
        call = f"<<<(x.numel() + 127) / 128, 128>>>(POINTER({_CPP[of]}, x), POINTER({_CPP[to]}, out), x.numel())"
        add(f"unary_{_name(n)}", "torch::Tensor x, torch::Tensor out", call)
    for n, (_, to, of) in BINARY.items():
        pointers = f"POINTER({_CPP[of]}, x), POINTER({_CPP[of]}, y), POINTER({_CPP[to]}, out)"
        call = f"<<<(x.numel() + 127) / 128, 128>>>({pointers}, x.numel())"
        add(f"binary_{_name(n)}", "torch::Tensor x, torch::Tensor y, torch::Tensor out", call)
    for n in MATRICES:
        call = "<<<1, 32>>>(POINTER(unsigned short, tile), POINTER(int, rows), POINTER(u32, out))"
        add(n, "torch::Tensor tile, torch::Tensor rows, torch::Tensor out", call)
    add("widths", "torch::Tensor x, torch::Tensor out, int n", "<<<1, 64>>>(POINTER(float, x), POINTER(float, out), n)")
    add("late", "torch::Tensor x, torch::Tensor out", "<<<1, 64, 768>>>(POINTER(float, x), POINTER(float, out))")
    add(
        "buffered",
        "torch::Tensor x, torch::Tensor out, int n",
        "<<<1, 64>>>(POINTER(float, x), POINTER(float, out), n)",
    )
    add("addresses", "torch::Tensor out", "<<<1, 32, 2048>>>(POINTER(int, out))")
    add("moves", "torch::Tensor x, torch::Tensor out", "<<<1, 32>>>(POINTER(float, x), POINTER(float, out))")
    add(
        "atomics",
        "torch::Tensor f, torch::Tensor u, torch::Tensor before",
        "<<<1, 32>>>(POINTER(float, f), POINTER(unsigned, u), POINTER(unsigned, before))",
    )
    add(
        "signals",
        "torch::Tensor flag, torch::Tensor word, torch::Tensor out",
        "<<<1, 64>>>(POINTER(unsigned, flag), POINTER(unsigned long long, word), POINTER(float, out))",
    )
    add("registers", "torch::Tensor out", "<<<1, 64>>>(POINTER(int, out))")
    add("lanes", "torch::Tensor out", "<<<1, 32>>>(POINTER(int, out))")
    add("logic", "torch::Tensor x, torch::Tensor out", "<<<1, 1>>>(POINTER(unsigned, x), POINTER(unsigned, out))")
    return text, declared


def run_kernel(kernels, name: str, *arguments) -> None:
    """Runs a kernel on the arguments, numpy arrays which it may change."""
    signed = {np.dtype(np.uint16): np.int16, np.dtype(np.uint32): np.int32}
    tensors = [
        torch.from_numpy(a.view(signed.get(a.dtype, a.dtype))).to(DEVICE) if isinstance(a, np.ndarray) else a
        for a in arguments
    ]
    getattr(kernels, f"run_{_name(name)}")(*tensors)
    for array, tensor in zip(arguments, tensors):
        if isinstance(array, np.ndarray):
            array[...] = tensor.cpu().numpy().view(array.dtype)
