"""Inline PTX: each instruction against numpy, with bits and layouts of the PTX ISA; nvcc takes every source unchanged."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
import torch

import simt
from simt.rewrite import rewrite
from tests.simt.kernels_of_expressions import _INCLUDES, DEVICE, ON_GPU, load

_MMA = {  # name: (instruction, registers of a, b, c and d, elements' type, k)
    "tf32_k4": ("m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4, "tf32", 4),
    "tf32_k8": ("m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, "tf32", 8),
    "f16_k8": ("m16n8k8.row.col.f32.f16.f16.f32", 2, 1, 4, "f16", 8),
    "f16_k16": ("m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, "f16", 16),
    "bf16_k8": ("m16n8k8.row.col.f32.bf16.bf16.f32", 2, 1, 4, "bf16", 8),
    "bf16_k16": ("m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, "bf16", 16),
    "half_k8": ("m16n8k8.row.col.f16.f16.f16.f16", 2, 1, 2, "f16", 8),
    "half_k16": ("m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2, "f16", 16),
}  # fmt: skip
_APPROXIMATE = ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos")
# One result and one argument, each a register of 32 or 16 bits.
_UNARY = {
    **{f"{r}_tf32": (f"cvt.{r}.tf32.f32 %0, %1;", "r", "f") for r in ("rna", "rn", "rz")},
    **{f"{r}_{t}": (f"cvt.{r}.{t}.f32 %0, %1;", "h", "f") for r in ("rn", "rz") for t in ("f16", "bf16")},
    **{f"f32_{t}": (f"cvt.f32.{t} %0, %1;", "f", "h") for t in ("f16", "bf16")},
    **{f"{f}.approx{ftz}": (f"{f}.approx{ftz}.f32 %0, %1;", "f", "f") for f in _APPROXIMATE for ftz in ("", ".ftz")},
    "tanh.approx": ("tanh.approx.f32 %0, %1;", "f", "f"), "mov": ("mov.b32 %0, %1;", "f", "r"), "not": ("not.b32 %0, %1;", "r", "r"),
    "neg": ("neg.f32 %0, %1;", "f", "f"), "abs": ("abs.f32 %0, %1;", "f", "f"), "to_f32": ("cvt.rn.f32.s32 %0, %1;", "f", "r"),
    "rzi": ("cvt.rzi.s32.f32 %0, %1;", "r", "f"), "rni": ("cvt.rni.s32.f32 %0, %1;", "r", "f"),
    "halves": ("{ .reg .b16 low, high; mov.b32 {low, high}, %1; mov.b32 %0, {high, low}; }", "r", "r"),
}  # fmt: skip
_BINARY = {
    **{f"{r}_{t}": (f"cvt.{r}.{t}.f32", "r", "f") for r, t in (("rn", "bf16x2"), ("rn", "f16x2"), ("rz", "bf16x2"))},
    **{f"{f}_f32": (f"{f}.f32", "f", "f") for f in ("add", "sub", "mul", "min", "max", "mul.ftz", "add.rn.ftz")},
    **{f: (f, "r", "r") for f in "add.s32 sub.u32 mul.lo.s32 and.b32 or.b32 xor.b32 shl.b32 shr.u32 shr.s32".split()},
}  # fmt: skip
_CPP = {"f": "float", "r": "unsigned", "h": "unsigned short"}


def _name(text: str) -> str:
    return text.replace(".", "_")


def _listed(prefix: str, first: int, count: int) -> str:
    return ", ".join(f"{prefix}{first + i}" for i in range(count))


def _mma(name: str) -> str:
    """A kernel that multiplies whatever registers each lane is given."""
    instruction, a, b, c, _, _ = _MMA[name]
    kind, kept = ("f", "float") if c == 4 else ("r", "unsigned")
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
    template, to, of = _UNARY[name]
    return f"""
__global__ void unary_{_name(name)}(const {_CPP[of]}* x, {_CPP[to]}* out, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  asm("{template}" : "={to}"(out[i]) : "{of}"(x[i]));
}}"""


def _binary(name: str) -> str:
    instruction, to, of = _BINARY[name]
    return f"""
__global__ void binary_{_name(name)}(const {_CPP[of]}* x, const {_CPP[of]}* y, {_CPP[to]}* out, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  {_CPP[to]} result;
  asm volatile("{instruction} %0, %1, %2;" : "={to}"(result) : "{of}"(x[i]), "{of}"(y[i]));
  out[i] = result;
}}"""


_OTHERS = r"""
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
  if (n == 4) asm volatile("cp.async.ca.shared.global [%0], [%1], %2;\n" ::"r"(to + 12), "l"(from + 1), "n"(sizeof(float)));
  if (n == 12) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(4));  // 4 bytes read
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
    if (i + 1 < n) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&tile[(i + 1) % 2][t])), "l"(x + (i + 1) * 64 + t));
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
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(p));
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(&room[t])), "f"(d), "f"(c), "f"(b), "f"(a) : "memory");
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2 + 8];" : "=f"(a), "=f"(b) : "r"(shared_address(&room[t])));  // b, a of before
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
  asm volatile("atom.shared.add.u32 %0, [%1], 1;" : "=r"(before[32 + threadIdx.x]) : "r"(shared_address(&count)) : "memory");
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(u + 2) : "memory");
  unsigned old;
  if (threadIdx.x == 0) asm volatile("atom.global.cas.b32 %0, [%1], 5, %2;" : "=r"(old) : "l"(u + 3), "r"(6) : "memory");
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
  asm("{\n\t.reg .pred %%p<2>;\n\t.reg .b32 %%r;\n\tsetp.lt.s32 %%p0, %1, 10;\n\tadd.s32 %%r, %1, 0x64;\n\tselp.b32 %0, %1, %%r, %%p0;\n\t}" : "=r"(chosen) : "r"(t));
  asm("{ .reg .pred p; setp.ge.u32 p, %1, 30; @!p mov.u32 %0, 3; }" : "+r"(third) : "r"(t));
  out[t] = lane; out[64 + t] = warp; out[128 + t] = (int)mask; out[192 + t] = chosen; out[256 + t] = third;
  out[320 + t] = sm < 1000 && clock != 0;
}
__global__ void lanes(int* out) {
  int t = threadIdx.x, up, down, across, from, inside;
  asm volatile("shfl.sync.up.b32 %0, %1, 3, 0x1000, 0xffffffff;" : "=r"(up) : "r"(t));            // segments of 16
  asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 5, 0x1f, 0xffffffff; selp.b32 %1, 1, 0, p; }" : "=r"(down), "=r"(inside) : "r"(t));
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, -1;" : "=r"(across) : "r"(t), "r"(9));
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x181f, 0xffffffff;" : "=r"(from) : "r"(t), "n"(5));   // segments of 8
  unsigned voted;
  int sum;
  asm volatile("{ .reg .pred p; setp.gt.s32 p, %1, 20; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(voted) : "r"(t));
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(t));
  out[t] = up; out[32 + t] = down; out[64 + t] = inside; out[96 + t] = across; out[128 + t] = from; out[160 + t] = (int)voted; out[192 + t] = sum;
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


_MATRICES = [f"ldmatrix_x{n}{trans}" for n in (1, 2, 4) for trans in ("", "_trans")]
_MADE = ((_mma, _MMA), (_unary, _UNARY), (_binary, _BINARY), (_ldmatrix, _MATRICES))
_DEVICE = _OTHERS + "".join(make(name) for make, names in _MADE for name in names)


def _host() -> tuple[str, list[str]]:
    text, declared = "", []

    def add(name: str, parameters: str, call: str) -> None:
        nonlocal text
        declared.append(f"void run_{name}({parameters})")
        text += f"{declared[-1]} {{ {name}{call}; }}\n"

    for n in _MMA:
        kept = "float" if _MMA[n][3] == 4 else "unsigned"
        call = f"<<<1, 32>>>(POINTER(unsigned, a), POINTER(unsigned, b), POINTER({kept}, c))"
        add(f"mma_{n}", "torch::Tensor a, torch::Tensor b, torch::Tensor c", call)
    for n, (_, to, of) in _UNARY.items():
        call = f"<<<(x.numel() + 127) / 128, 128>>>(POINTER({_CPP[of]}, x), POINTER({_CPP[to]}, out), x.numel())"
        add(f"unary_{_name(n)}", "torch::Tensor x, torch::Tensor out", call)
    for n, (_, to, of) in _BINARY.items():
        pointers = f"POINTER({_CPP[of]}, x), POINTER({_CPP[of]}, y), POINTER({_CPP[to]}, out)"
        call = f"<<<(x.numel() + 127) / 128, 128>>>({pointers}, x.numel())"
        add(f"binary_{_name(n)}", "torch::Tensor x, torch::Tensor y, torch::Tensor out", call)
    for n in _MATRICES:
        call = "<<<1, 32>>>(POINTER(unsigned short, tile), POINTER(int, rows), POINTER(u32, out))"
        add(n, "torch::Tensor tile, torch::Tensor rows, torch::Tensor out", call)
    add("widths", "torch::Tensor x, torch::Tensor out, int n", "<<<1, 64>>>(POINTER(float, x), POINTER(float, out), n)")
    add("late", "torch::Tensor x, torch::Tensor out", "<<<1, 64, 768>>>(POINTER(float, x), POINTER(float, out))")
    add("buffered", "torch::Tensor x, torch::Tensor out, int n", "<<<1, 64>>>(POINTER(float, x), POINTER(float, out), n)")
    add("addresses", "torch::Tensor out", "<<<1, 32, 2048>>>(POINTER(int, out))")
    add("moves", "torch::Tensor x, torch::Tensor out", "<<<1, 32>>>(POINTER(float, x), POINTER(float, out))")
    add("atomics", "torch::Tensor f, torch::Tensor u, torch::Tensor before",
        "<<<1, 32>>>(POINTER(float, f), POINTER(unsigned, u), POINTER(unsigned, before))")
    add("signals", "torch::Tensor flag, torch::Tensor word, torch::Tensor out",
        "<<<1, 64>>>(POINTER(unsigned, flag), POINTER(unsigned long long, word), POINTER(float, out))")
    add("registers", "torch::Tensor out", "<<<1, 64>>>(POINTER(int, out))")
    add("lanes", "torch::Tensor out", "<<<1, 32>>>(POINTER(int, out))")
    add("logic", "torch::Tensor x, torch::Tensor out", "<<<1, 1>>>(POINTER(unsigned, x), POINTER(unsigned, out))")
    return text, declared


@pytest.fixture(scope="module")
def kernels():
    host, declared = _host()
    return load(_DEVICE + host, declared)


def _run(kernels, name: str, *arguments) -> None:
    """Runs a kernel on the arguments, numpy arrays which it may change."""
    signed = {np.dtype(np.uint16): np.int16, np.dtype(np.uint32): np.int32}
    tensors = [a if isinstance(a, int) else torch.from_numpy(a.view(signed.get(a.dtype, a.dtype))).to(DEVICE) for a in arguments]
    getattr(kernels, f"run_{_name(name)}")(*tensors)
    for array, tensor in zip(arguments, tensors):
        if isinstance(array, np.ndarray):
            array[...] = tensor.cpu().numpy().view(array.dtype)


# ---- tensor cores ----


def _places(kind: str, k: int, lane: int) -> tuple[list, list, list]:
    """(row, column) of each element that a lane holds of a, b and c: PTX ISA, "Matrix Fragments for mma.m16n8k…"."""
    g, t = lane >> 2, lane % 4
    c = [(g if i < 2 else g + 8, t * 2 + (i & 1)) for i in range(4)]
    if kind == "tf32" and k == 4:
        return [(g, t), (g + 8, t)], [(t, g)], c
    if kind == "tf32":
        return [(g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)], [(t, g), (t + 4, g)], c
    if k == 8:
        return [(g if i < 2 else g + 8, t * 2 + (i & 1)) for i in range(4)], [(t * 2 + (i & 1), g) for i in range(2)], c
    a = [(g if i in (0, 1, 4, 5) else g + 8, t * 2 + (i & 1) + (8 if i >= 4 else 0)) for i in range(8)]
    return a, [(t * 2 + (i & 1) + (8 if i >= 2 else 0), g) for i in range(4)], c


_DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}


def _bits(x: np.ndarray, kind: str) -> np.ndarray:
    if kind == "tf32" or kind == "f32":
        return x.astype(np.float32).view(np.uint32)
    return torch.from_numpy(x).to(_DTYPES[kind]).view(torch.int16).numpy().view(np.uint16)


def _exact(x: np.ndarray, kind: str) -> np.ndarray:
    """What the tensor core makes of an operand: of tf32 the low 13 bits are not looked at."""
    if kind == "tf32":
        return (x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    return torch.from_numpy(x).to(_DTYPES[kind]).double().numpy()


def _spread(x: np.ndarray, kind: str, places: list[list]) -> np.ndarray:
    """Each lane's registers: its elements' bits, two in a register where they have 16."""
    bits = _bits(x, kind)
    return np.array([[bits[p] for p in lane] for lane in places]).view(np.uint32)


@pytest.mark.parametrize("name", _MMA)
def test_mma_multiplies_as_the_layouts_say(kernels, name):
    """Is d = a·b + c in float64, to within the sum's own rounding, with every element where the PTX ISA puts it?"""
    _, _, _, _, kind, k = _MMA[name]
    kept = "f32" if _MMA[name][3] == 4 else "f16"
    chance = np.random.default_rng(k)
    a, b, c = chance.normal(size=(16, k)), chance.normal(size=(k, 8)), chance.normal(size=(16, 8))
    places = [_places(kind, k, lane) for lane in range(32)]
    ra, rb = (_spread(x, kind, [p[i] for p in places]) for i, x in enumerate((a, b)))
    rc = _spread(c, kept, [p[2] for p in places])
    _run(kernels, f"mma_{name}", ra, rb, rc if kept == "f16" else (sums := rc.view(np.float32)))
    held = (rc.view(np.float16) if kept == "f16" else sums).astype(np.float64)
    got = np.zeros((16, 8))
    for lane in range(32):
        for place, value in zip(places[lane][2], held[lane]):
            got[place] = value
    ea, eb = _exact(a, kind), _exact(b, kind)
    ec = c.astype(np.float32).astype(np.float64) if kept == "f32" else _exact(c, "f16")
    error = np.abs(got - (ea @ eb + ec)) / (np.abs(ea) @ np.abs(eb) + np.abs(ec))
    assert error.max() <= (2.0**-22 if kept == "f32" else 2.0**-10)


# ---- conversions and special functions ----

_EDGES = [
    *(0.0, -0.0, 1.0, -1.0, 0.1, 65504.0, 65519.9, 65520.0, 7e4, 3.4e38, -3.4e38, 1e-40, 6e-8, 3e-8, np.inf, -np.inf),
    *(2.0**-14, 2.0**-15 * 1.3, 1 + 2.0**-11, 1 + 3 * 2.0**-11),
]  # fmt: skip


def _floats(n: int = 4000) -> np.ndarray:
    chance = np.random.default_rng(7)
    wide = chance.normal(size=n) * 2.0 ** chance.integers(-30, 18, size=n)
    return np.concatenate([_EDGES, wide]).astype(np.float32)


def _unary_of(kernels, name: str, x: np.ndarray) -> np.ndarray:
    out = np.zeros(x.shape, {"f": np.float32, "r": np.uint32, "h": np.uint16}[_UNARY[name][1]])
    _run(kernels, f"unary_{name}", x, out)
    return out


def _tf32(x: np.ndarray, rounding: str) -> np.ndarray:
    """The bits of the nearest number with 10 bits after the point, by integers alone."""
    u = x.view(np.uint32).astype(np.uint64)
    low, cut = u & 0x1FFF, u & ~np.uint64(0x1FFF)
    odd = (u >> 13) & 1 == 1
    up = {"rna": low >= 0x1000, "rn": (low > 0x1000) | ((low == 0x1000) & odd), "rz": np.zeros(u.shape, bool)}[rounding]
    return (cut + np.where(up & np.isfinite(x), 0x2000, 0)).astype(np.uint32)


@pytest.mark.parametrize("rounding", ["rna", "rn", "rz"])
def test_conversion_to_tf32(kernels, rounding):
    """Are all 32 bits those of rounding to 10 bits after the point: halves away from zero, to even, or cut?"""
    x = _floats()
    assert np.array_equal(_unary_of(kernels, f"{rounding}_tf32", x), _tf32(x, rounding))


def _sixteen(x: np.ndarray, kind: str, rounding: str = "rn") -> np.ndarray:
    dtype = _DTYPES[kind]
    nearest = torch.from_numpy(x).to(dtype)
    bits = nearest.view(torch.int16).numpy().view(np.uint16).copy()
    if rounding == "rz":  # the next lower magnitude, where the nearest is beyond; bits are in the magnitudes' order
        beyond = np.abs(nearest.double().numpy()) > np.abs(x.astype(np.float64))
        bits[beyond] -= 1
    return bits


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("rounding", ["rn", "rz"])
def test_conversion_to_16_bits(kernels, rounding, kind):
    """Are the bits torch's, or, cut, those of the next number towards zero?"""
    x = _floats()
    assert np.array_equal(_unary_of(kernels, f"{rounding}_{kind}", x), _sixteen(x, kind, rounding))


@pytest.mark.parametrize("name", ["rn_bf16x2", "rn_f16x2", "rz_bf16x2"])
def test_conversion_to_a_pair(kernels, name):
    """Does the first operand become the upper half?"""
    x, out = _floats(), np.zeros(len(_floats()), np.uint32)
    y = x[::-1].copy()
    _run(kernels, f"binary_{name}", x, y, out)
    rounding, kind = name[:2], name[3:-2]
    assert np.array_equal(out, _sixteen(x, kind, rounding).astype(np.uint32) << 16 | _sixteen(y, kind, rounding))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_conversion_from_16_bits(kernels, kind):
    """Does each of the 65,536 patterns become the number that torch has for it?"""
    h = np.arange(65536, dtype=np.uint16)
    want = torch.from_numpy(h.view(np.int16)).view(_DTYPES[kind]).float().numpy()
    assert np.array_equal(_unary_of(kernels, f"f32_{kind}", h), want, equal_nan=True)


# The PTX ISA's bounds: of the relative error, or with "a" of the absolute one.
_BOUNDS = {
    "ex2": (np.exp2, 2.0**-22, ""), "lg2": (np.log2, 2.0**-21, "a"), "rcp": (lambda x: 1 / x, 2.0**-23, ""),
    "rsqrt": (lambda x: x**-0.5, 2.0**-22, ""), "sqrt": (np.sqrt, 2.0**-22, ""), "sin": (np.sin, 2.0**-20.5, "a"),
    "cos": (np.cos, 2.0**-20.5, "a"), "tanh": (np.tanh, 2.0**-10.98, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in _UNARY if ".approx" in n])
def test_special_functions(kernels, name):
    """Is each as near to the function as the PTX ISA promises, and tanh no nearer than its 11 bits?"""
    function, bound, absolute = _BOUNDS[name.split(".")[0]]
    x = np.linspace(-3, 3, 4001).astype(np.float32)
    x = x[x > 0.01] if name[:3] in ("lg2", "rsq", "sqr") else x[x != 0]
    want = function(x.astype(np.float64))
    error = np.abs(_unary_of(kernels, name, x).astype(np.float64) - want) / (1 if absolute else np.abs(want))
    assert error.max() <= bound
    assert error.max() > 2.0**-13 or not name.startswith("tanh")


def test_flushed_numbers(kernels):
    """Are subnormal numbers zero with .ftz and themselves without it?"""
    x = np.array([1e-40, -1e-40], np.float32)
    with np.errstate(all="ignore"):
        assert np.array_equal(_unary_of(kernels, "sqrt.approx.ftz", x[:1]), [0])
        assert np.array_equal(_unary_of(kernels, "rcp.approx.ftz", x), [np.inf, -np.inf])
        assert _unary_of(kernels, "ex2.approx.ftz", np.array([-130], np.float32)) == 0
        assert _unary_of(kernels, "ex2.approx", np.array([-130], np.float32)) == 2.0**-130


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("add_f32", np.add), ("sub_f32", np.subtract), ("mul_f32", np.multiply), ("min_f32", np.minimum),
        ("max_f32", np.maximum), ("add.s32", np.add), ("sub.u32", np.subtract), ("mul.lo.s32", np.multiply),
        ("and.b32", np.bitwise_and), ("or.b32", np.bitwise_or), ("xor.b32", np.bitwise_xor),
        ("shl.b32", lambda x, n: np.where(n < 32, x << (n & 31), 0)),
        ("shr.u32", lambda x, n: np.where(n < 32, x >> (n & 31), 0)),
        ("shr.s32", lambda x, n: (x.view(np.int32) >> np.minimum(n, 31).view(np.int32)).view(np.uint32)),
    ],
)  # fmt: skip
def test_arithmetic(kernels, name, function):
    """Is it numpy's, bit by bit?"""
    chance = np.random.default_rng(3)
    if _BINARY[name][1] == "f":
        x, y = chance.normal(size=(2, 1000)).astype(np.float32)
    else:
        x, y = chance.integers(0, 2**32, (2, 1000), dtype=np.uint64).astype(np.uint32)
    y = y if "sh" not in name else (y % 40).astype(np.uint32)
    out = np.zeros_like(x)
    _run(kernels, f"binary_{name}", x, y, out)
    assert np.array_equal(out, function(x, y).astype(x.dtype))


def test_registers_of_one_argument(kernels):
    """Do mov, neg, abs, not, and conversions of integers give what their names say?"""
    x = np.array([1.5, -2.5, 2.5, 3.7, -3.7], np.float32)
    u = np.array([1, 0xFFFFFFFF, 0x12345678], np.uint32)
    assert np.array_equal(_unary_of(kernels, "neg", x), -x) and np.array_equal(_unary_of(kernels, "abs", x), np.abs(x))
    assert np.array_equal(_unary_of(kernels, "rzi", x).view(np.int32), [1, -2, 2, 3, -3])
    assert np.array_equal(_unary_of(kernels, "rni", x).view(np.int32), [2, -2, 2, 4, -4])
    assert np.array_equal(_unary_of(kernels, "not", u), ~u)
    assert np.array_equal(_unary_of(kernels, "to_f32", u), u.view(np.int32).astype(np.float32))
    assert np.array_equal(_unary_of(kernels, "mov", x.view(np.uint32)), x)
    assert np.array_equal(_unary_of(kernels, "halves", u), [0x10000, 0xFFFFFFFF, 0x56781234])


# ---- memory ----


@pytest.mark.parametrize("name", _MATRICES)
def test_ldmatrix(kernels, name):
    """Does lane l get elements 2·(l % 4) and the one after it of row l / 4 of each matrix, or, with .trans, of the column?"""
    tile = np.random.default_rng(1).integers(0, 65536, 256).astype(np.uint16)
    order = np.random.default_rng(2).permutation(32)  # any row from any address
    out = np.zeros((32, 4), np.uint32)
    _run(kernels, name, tile, (order * 8).astype(np.int32), out)
    many, want = int(name[10]), np.zeros((32, 4), np.uint32)
    rows = tile.reshape(32, 8)[order].astype(np.uint32)
    for m in range(many):
        matrix = rows[8 * m : 8 * m + 8].T if name.endswith("trans") else rows[8 * m : 8 * m + 8]
        for lane in range(32):
            want[lane, m] = matrix[lane // 4, 2 * (lane % 4)] | matrix[lane // 4, 2 * (lane % 4) + 1] << 16
    assert np.array_equal(out, want)


@pytest.mark.parametrize(
    ("n", "wanted"),
    [
        (16, [0, 1, 2, 3]), (17, [0, 1, 2, 3]), (8, [-1, -1, 2, 3]), (4, [-1, -1, -1, 1]),
        (12, [0, None, None, None]), (2, [0, 1, 2, None]), (0, [None] * 4),
    ],
)
def test_cp_async_copies_what_it_is_told(kernels, n, wanted):
    """Do 4, 8 and 16 bytes arrive, and zeros behind src-size? wanted: the element of each place, -1 untouched, None zero."""
    x, out = np.arange(1, 257, dtype=np.float32), np.zeros(256, np.float32)
    _run(kernels, "widths", x, out, n)
    for lane in range(64):
        want = [-1 if w == -1 else 0 if w is None else x[4 * lane + w] for w in wanted]
        assert list(out[4 * lane : 4 * lane + 4]) == want


def test_a_predicated_copy(kernels):
    """Does @p copy where the predicate holds, and only there?"""
    x, out = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    _run(kernels, "widths", x, out, 1)
    assert np.array_equal(out.reshape(64, 4)[1::2], x.reshape(64, 4)[1::2]) and (out.reshape(64, 4)[::2] == -1).all()


@pytest.mark.skipif(ON_GPU, reason="a GPU's copies arrive when they like")
def test_cp_async_arrives_when_waited_for(kernels):
    """Is what stands in shared memory old before the wait of its group, and new after it?"""
    x, out = np.arange(64, dtype=np.float32) + 1, np.zeros(384, np.float32)
    _run(kernels, "late", x, out)
    old, new = np.full(64, -1, np.float32), x
    assert np.array_equal(out, np.concatenate([old, new, old, new, old, new]))


def test_double_buffering(kernels):
    """Is the sum over tiles right when each is copied while the one before is added up?"""
    x, out = np.random.default_rng(1).normal(size=640).astype(np.float32), np.zeros(64, np.float32)
    _run(kernels, "buffered", x, out, 10)
    want = np.zeros(64, np.float32)
    for tile in x.reshape(10, 64):
        want += tile[::-1]
    assert np.array_equal(out, want)


def test_addresses_in_shared_memory(kernels):
    """Do 32-bit addresses of static and of dynamic shared memory lead back, by cvta too, through a swizzle and an offset?"""
    out = np.zeros(160, np.int32)
    _run(kernels, "addresses", out)
    t = np.arange(32)
    assert np.array_equal(out.reshape(5, 32), [t, 1000 + (t ^ 4) + 16, 1000 + t, 7 * t, np.ones(32)])


def test_loads_and_stores(kernels):
    """Do vectors, cache hints, offsets and pairs of registers move the right words?"""
    x, out = np.random.default_rng(5).normal(size=128).astype(np.float32), np.zeros(128, np.float32)
    _run(kernels, "moves", x, out)
    assert np.array_equal(out.reshape(32, 4), x.reshape(32, 4)[:, [1, 0, 3, 1]])


def test_atomic_operations(kernels):
    """Does each lane's operation count, once, and atom give what was there before?"""
    f, u, before = np.zeros(1, np.float32), np.array([0, 0x80000000, 0, 5], np.uint32), np.zeros(64, np.uint32)
    _run(kernels, "atomics", f, u, before)
    assert f[0] == 16 and list(u.view(np.int32)) == [64, -68, 32, 6]
    assert sorted(before[:32]) == list(range(0, 64, 2)) and sorted(before[32:]) == list(range(32))


def test_loads_and_stores_with_an_order(kernels):
    """Does a thread that waits in a loop of ld.acquire or ld.relaxed let the one that it waits for run?"""
    flag, word, out = np.zeros(1, np.uint32), np.zeros(1, np.int64), np.zeros(2, np.float32)
    _run(kernels, "signals", flag, word, out)
    assert (flag[0], word[0], list(out)) == (3, 2**40 + 3, [5, 1])


# ---- registers and lanes ----


def test_special_registers_and_predicates(kernels):
    """Are %laneid, %warpid and the masks right, and do .reg, setp, selp and @!p what PTX says?"""
    out = np.zeros(384, np.int32)
    _run(kernels, "registers", out)
    t = np.arange(64)
    lane = t % 32
    want = [lane, t // 32, (1 << lane) - 1, np.where(t < 10, t, t + 100), np.where(t >= 30, -1, 3), np.ones(64)]
    assert np.array_equal(out.reshape(6, 64), np.array(want, np.int64).astype(np.int32))


def test_shuffles_votes_and_sums(kernels):
    """Do the four modes of shfl.sync read the lane that the PTX ISA's pseudocode names, at segments' ends too?"""
    out = np.zeros(224, np.int32)
    _run(kernels, "lanes", out)
    t = np.arange(32)
    down = np.where(t + 5 < 32, t + 5, t)
    want = [np.where(t % 16 >= 3, t - 3, t), down, t + 5 < 32, t ^ 9, t // 8 * 8 + 5, np.full(32, -(2**21)), np.full(32, 496)]
    assert np.array_equal(out.reshape(7, 32), np.array(want))


def test_logic_and_wide_products(kernels):
    """Is lop3 its table bit by bit; are constants, hexadecimal floats, comments and raw strings read right?"""
    a, b, c = 0x12345678, 0xF0F0A5A5, 0x0FF0C33C
    x, out = np.array([a, b, c], np.uint32), np.zeros(6, np.uint32)
    _run(kernels, "logic", x, out)
    product = 0xFFFFFFFF * 3 + 1
    assert list(out[:3]) == [a ^ b ^ c, (a & b) | (a & c) | (b & c), (a & b) | (~a & c)]
    assert list(out[3:]) == [int(np.float32(8.5).view(np.uint32)), product & 0xFFFFFFFF, product >> 32]


# ---- checks ----

_CHECKED_DEVICE = r"""
#define SHARED(p) static_cast<unsigned>(__cvta_generic_to_shared(p))
#define COPY(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from))
#define LDMATRIX(r, at) asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"((r)[0]), "=r"((r)[1]) : "r"(at))
#define MMA(d, a, b)                                                                                             \
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
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
_CHECKED_HOST = "void run(int n, torch::Tensor x, torch::Tensor out) { cases<<<1, 64>>>(n, x.data_ptr<float>(), out.data_ptr<float>()); }"


@pytest.fixture(scope="module")
def checked():
    return load(_CHECKED_DEVICE + _CHECKED_HOST, ["void run(int n, torch::Tensor x, torch::Tensor out)"])


def _line(marker: str, source: str) -> int:
    return next(i for i, text in enumerate((_INCLUDES + source).split("\n"), 1) if text.endswith(f"// {marker}"))


@pytest.mark.skipif(ON_GPU, reason="checks are of the CPU's")
@pytest.mark.parametrize(
    ("n", "check", "marker", "words"),
    [
        (0, None, "", ""), (10, None, "", ""), (27, None, "", ""),
        (1, "race", "early", "nobody has waited for that copy"),
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

_COUNTED_DEVICE = r"""
__device__ unsigned place(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__global__ void copied(const float* x, float* out, int stride, int wide) {
  extern __shared__ __align__(16) float tile[];
  int t = threadIdx.x;
  if (wide == 2) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place(tile + 4 * t)), "l"(x + 4 * t), "r"(stride));
  else if (wide) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place(tile + 4 * t * stride)), "l"(x + 4 * t));
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
  if (many == 2) asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(row));
  if (many == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row));
  out[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
}
__global__ void products(float* out, int n) {
  float d[4] = {};
  unsigned a = 1, b = 2;
  for (int i = 0; i < n; ++i) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(b));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"
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
  asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(x + 4 * threadIdx.x));
  asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(out + 4 * threadIdx.x), "f"(d), "f"(c), "f"(b), "f"(a) : "memory");
}
"""
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
    return load(_COUNTED_DEVICE + _COUNTED_HOST, ["void run(int which, torch::Tensor x, torch::Tensor out, int a, int b)"])


def _counters(counted, which: int, a: int = 0, b: int = 0) -> simt.Launch:
    with simt.count() as report:
        counted.run(which, torch.ones(1024), torch.zeros(1024), a, b)
    return report.launches[0]


@pytest.mark.skipif(ON_GPU, reason="counters are of the CPU's")
@pytest.mark.parametrize(("stride", "wide"), [(1, 0), (2, 0), (8, 0), (1, 1), (2, 1)])
def test_cp_async_costs_what_a_copy_by_hand_does(counted, stride, wide):
    """Are its sectors, and the requests and wavefronts of its writes, those of a load and a store?"""
    a, b = (_counters(counted, which, stride, wide).counters for which in (0, 1))
    assert a.global_loads == b.global_loads and a.shared_stores == b.shared_stores
    assert a.global_loads.requests == 2


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
    """Is it one request a warp, with a wavefront for each matrix, times the rows that share banks, and no branch of its own?"""
    counters = _counters(counted, 2, stride, many).counters
    loads = counters.shared_loads
    assert (loads.requests, loads.lanes, loads.bytes) == (2, 2 * 8 * many, 2 * 128 * many)
    assert (loads.wavefronts, loads.ideal_wavefronts) == (2 * many * passes, 2 * many)
    assert counters.divergent_branches == 0


@pytest.mark.skipif(ON_GPU, reason="counters are of the CPU's")
def test_mma_counts_as_its_part_of_a_wmma_product(counted):
    """Are 16 x 8 x 8 of TF32 and 16 x 8 x 16 of bf16 each half of what wmma::mma_sync() is, and does the model see them?"""
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


# ---- what is refused ----


def _refused(template: str, operands: str = "") -> simt.CompileError:
    source = f'__global__ void k(float* x, int i) {{\n  float f;\n  asm volatile("{template}"{operands});\n}}'
    with pytest.raises(simt.CompileError) as caught:
        rewrite(source, "cuda_sources")
    (found,) = caught.value.diagnostics
    assert (found.line, found.text) == (3, source.split("\n")[2])
    assert found.message.endswith(".") and ". " not in found.message
    return caught.value


@pytest.mark.parametrize(
    ("template", "operands", "name", "instead"),
    [
        ("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0}, %1, %2, 1, 1, 1;", "", "wgmma.mma_async", "mma.sync.aligned.m16n8k8"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0}, {%1}, {%2}, {%3};", "", "mma.sync.aligned.m8n8k4", "m16n8k16"),
        ("cp.async.bulk.commit_group;", "", "cp.async.bulk.commit_group", "cp.async.wait_group"),
        ("mbarrier.init.shared.b64 [%0], 1;", "", "mbarrier.init", "cuda::barrier"),
        ("ld.global.v8.f32 {%0}, [%1];", "", "ld.global.v8.f32", "CUDA C\\+\\+"),
        ("bar.sync 1;", "", "bar.sync", "of 0"),
        ("cp.async.cg.shared.global [%0], [%1], 8;", ' :: "r"(i), "l"(x)', "cp.async.cg", "of 16"),
        ("bra done;", "", "bra", "CUDA C\\+\\+"),
        ("done:", "", "done:", "loop or branch"),
        ("mov.u32 %0, %%gridid;", ' : "=r"(i)', "%gridid", "%laneid"),
        ("setmaxnreg.dec.sync.aligned.u32 40;", "", "setmaxnreg", "CUDA C\\+\\+"),
    ],
)
def test_other_instructions_are_refused_by_name(template, operands, name, instead):
    """Is an instruction outside the subset one sentence with its name, its line and what works?"""
    error = _refused(template, operands)
    assert isinstance(error, simt.Unsupported) and name in str(error) and "can't" in str(error)
    assert re.search(instead, str(error))


@pytest.mark.parametrize(
    ("template", "operands", "words"),
    [
        ("ex2.approx.f32 %0, %1, %2;", ' : "=f"(f) : "f"(f), "f"(f)', "has 2 operands, and here it is given 3"),
        ("ex2.approx.f32 %0, %1;", ' : "=f"(f)', "uses %1, but this asm has 1 operand"),
        ("cvt.rna.tf32.f32 %0, %1;", ' : "=f"(f) : "f"(f)', 'gives an integer of 32 bits, but %0 is a float: its constraint is "r"'),
        ("mov.u32 %0, %1;", ' : "=r"(i) : "f"(f)', 'takes an integer of 32 bits where %1 stands, which is a float: its constraint is "r"'),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0}, {%1}, {%1}, {%0};", ' : "+f"(f) : "r"(i)', "has 4 registers in braces"),
        ("ld.global.f32 %0, [%1];", ' : "=f"(f) : "r"(i)', "the address %1 is an integer of 32 bits, and its constraint must be"),
        ("ex2.approx.f32 %0, %1;", ' : "f"(f) : "f"(f)', "wrong list"),
        ("ex2.approx.f32 %0, %1;", ' : "=x"(f) : "f"(f)', 'constraint "=x"'),
        ("ex2.approx.f32 %1, %0;", ' : "=f"(f) : "f"(f)', "writes %1, which is among the inputs"),
        ("ex2.approx.f32 %0, %1", ' : "=f"(f) : "f"(f)', "semicolon"),
        ("ex2.approx.f32 %0, y;", ' : "=f"(f)', "y is neither"),
        ("cp.async.wait_group %0;", ' :: "r"(i)', "has a constant"),
        ("ex2.approx.f32 %[o], %[i];", ' : [o] "=f"(f) : [i] "f"(f)', "by their numbers"),
        ("add.f32 %0, %0, 1.0;", ' : "+f"(x[i++])', "move it out"),
    ],
)  # fmt: skip
def test_wrong_operands_are_told_in_a_sentence(template, operands, words):
    """Is what nvcc would refuse told by the operand, not by g++'s words?"""
    error = _refused(template, operands)
    assert not isinstance(error, simt.Unsupported) and words in str(error)


@pytest.mark.parametrize(
    ("constraint", "variable"), [("r", "float"), ("f", "int"), ("l", "int"), ("h", "int"), ("r", "long long"), ("r", "short")]
)
def test_constraints_hold_the_variables_type(constraint, variable):
    """Is a variable of another size or kind than its constraint's an error at its line?"""
    source = f'__global__ void k({variable} v) {{\n  asm volatile("" :: "{constraint}"(v));\n}}'
    with pytest.raises(simt.CompileError, match=f'constraint "{constraint}" is') as caught:
        simt.load_inline("wrong", cpp_sources="void f();", cuda_sources=source + "\nvoid f() {}", functions=["f"])
    assert caught.value.diagnostics[0].line == 2


def test_what_is_not_compiled_is_not_refused():
    """May a branch for newer GPUs hold what a CPU can't run, and is it told at its line where that branch is the one compiled?"""
    branch = "#if {}\n__global__ void k() {{ asm volatile(\"wgmma.fence.sync.aligned;\"); }}\n#endif\nvoid f() {{}}"
    build = lambda condition: simt.load_inline("kept", cpp_sources="void f();", cuda_sources=branch.format(condition), functions=["f"])
    build("__CUDA_ARCH__ >= 900").f()
    with pytest.raises(simt.CompileError, match="^cuda_sources, line 2: `wgmma.fence.sync.aligned`: this PTX instruction can't"):
        build("__CUDA_ARCH__ >= 750")


def test_lines_stay_where_they_are():
    """Has the text as many lines as before, and what follows an asm statement its own line, in macros too?"""
    macro = '#define EX2(o, x) asm("ex2.approx.f32 %0," \\\n    " %1;" \\\n    : "=f"(o) : "f"(x))\n'
    source = macro + 'void f() {\n  asm volatile("bar.sync 0;"  // all\n    ::: "memory");\n  here();\n}'
    lines = rewrite(source, "cuda_sources").text.split("\n")
    assert len(lines) == source.count("\n") + 1 and lines[6] == "  here();"
    assert lines[0].endswith("\\") and lines[1].strip() == "\\" and "ex2_approx" in lines[0]


def test_host_sources_and_words_to_the_compiler_are_left_alone():
    """Is asm with nothing in it kept, and is that of cpp_sources the host's?"""
    empty = 'void f() { asm volatile("" ::: "memory"); }'
    assert rewrite(empty, "cuda_sources").text == empty
    host = 'void f() { asm volatile("pause"); }'
    assert rewrite(host, "cpp_sources", cuda=False).text == host


def test_nvcc_takes_the_sources_unchanged(tmp_path):
    """Does nvcc compile every kernel of this file for sm_90 as it stands?"""
    if not shutil.which("nvcc"):
        pytest.skip("nvcc is not here")
    for name, text in (("kernels", _DEVICE), ("checked", _CHECKED_DEVICE), ("counted", _COUNTED_DEVICE)):
        (tmp_path / f"{name}.cu").write_text("#include <cstdint>\n" + text)
        command = ["nvcc", "-arch=sm_90", "-cubin", "-o", "/dev/null", str(tmp_path / f"{name}.cu")]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
