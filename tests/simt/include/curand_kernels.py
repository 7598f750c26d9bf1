"""The extension, the programs and the generators in Python that the tests of cuRAND compare."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import simt

XORWOW, PHILOX, MRG = 0, 1, 2  # the extension's numbers of the device's generators

_CUDA = r"""
#include <curand.h>
#include <curand_kernel.h>

template <class S> __device__ void start(S* state, const long* from) {  // seed, subsequence, offset; skips
  curand_init(from[0], from[1], from[2], state);
  for (int i = 3; i < 7; ++i) skipahead((unsigned long long)from[i], state);
  skipahead_sequence(from[7], state);
}
template <class S> __global__ void make_bits(const long* from, long* out, int n) {
  S state;
  start(&state, from);
  for (int i = 0; i < n; ++i) out[i] = curand(&state);
}
template <class S> __global__ void make_values(const long* from, double lambda, double* out, int n) {
  S s;
  start(&s, from);
  for (int i = 0; i < n; ++i) {
    double* row = out + i * 10;
    row[0] = curand_uniform(&s);
    row[1] = curand_uniform_double(&s);
    row[2] = curand_normal(&s);
    row[3] = curand_normal_double(&s);
    const float2 a = curand_normal2(&s);
    row[4] = a.x, row[5] = a.y;
    const double2 b = curand_normal2_double(&s);
    row[6] = b.x, row[7] = b.y;
    row[8] = curand_log_normal2(&s, 0.5f, 0.25f).y;
    row[9] = curand_poisson(&s, lambda);
  }
}
__global__ void make_fours(const long* from, double* out) {
  curandStatePhilox4_32_10_t s;
  start(&s, from);
  const uint4 a = curand4(&s);
  const float4 b = curand_uniform4(&s), c = curand_normal4(&s), d = curand_log_normal4(&s, 0.5f, 0.25f);
  const double2 e = curand_uniform2_double(&s);
  const uint4 f = curand_poisson4(&s, 10);
  const double row[] = {(double)a.x, (double)a.y, (double)a.z, (double)a.w, b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w, d.x,
                        d.y, d.z, d.w, e.x, e.y, (double)f.x, (double)f.y, (double)f.z, (double)f.w};
  for (int i = 0; i < 22; ++i) out[i] = row[i];
}
__global__ void kept(double* out) {  // the second of a pair is kept for the same function only
  curandState s;
  curand_init(5, 0, 0, &s);
  for (int i = 0; i < 4; ++i) out[i] = curand_normal(&s);
  out[4] = curand_log_normal(&s, 0, 1);
  out[5] = curand_normal(&s);
}
__global__ void mrg_state(long* out) {
  curandStateMRG32k3a_t s;
  curand_init(0, 0, 0, &s);
  skipahead_sequence(1, &s);
  for (int i = 0; i < 3; ++i) out[i] = s.s1[i], out[3 + i] = s.s2[i];
}
#define KIND(call) if (kind == 0) { typedef curandState S; call; } \
  else if (kind == 1) { typedef curandStatePhilox4_32_10_t S; call; } else { typedef curandStateMRG32k3a_t S; call; }
void bits(int64_t kind, torch::Tensor from, torch::Tensor out) {
  KIND((make_bits<S><<<1, 1>>>(from.data_ptr<long>(), out.data_ptr<long>(), out.numel())))
}
void values(int64_t kind, torch::Tensor from, double lambda, torch::Tensor out) {
  KIND((make_values<S><<<1, 1>>>(from.data_ptr<long>(), lambda, out.data_ptr<double>(), out.size(0))))
}
void fours(torch::Tensor from, torch::Tensor out) {
  make_fours<<<1, 1>>>(from.data_ptr<long>(), out.data_ptr<double>());
}
void pairs(torch::Tensor out) { kept<<<1, 1>>>(out.data_ptr<double>()); }
void jumped(torch::Tensor out) { mrg_state<<<1, 1>>>(out.data_ptr<long>()); }

curandGenerator_t generator;
int64_t create(int64_t type, int64_t seed, int64_t offset) {
  const int status = curandCreateGenerator(&generator, (curandRngType_t)type);
  if (status) return status;
  curandSetPseudoRandomGeneratorSeed(generator, seed);
  return curandSetGeneratorOffset(generator, offset);
}
int64_t order(int64_t ordering) { return curandSetGeneratorOrdering(generator, (curandOrdering_t)ordering); }
int64_t destroy() { return curandDestroyGenerator(generator); }
int64_t generate(int64_t what, torch::Tensor out, double a, double b) {
  const auto g = generator;
  const size_t n = out.numel();
  if (what == 0) return curandGenerate(g, (unsigned*)out.data_ptr(), n);
  if (what == 1) return curandGenerateUniform(g, out.data_ptr<float>(), n);
  if (what == 2) return curandGenerateUniformDouble(g, out.data_ptr<double>(), n);
  if (what == 3) return curandGenerateNormal(g, out.data_ptr<float>(), n, a, b);
  if (what == 4) return curandGenerateNormalDouble(g, out.data_ptr<double>(), n, a, b);
  if (what == 5) return curandGenerateLogNormal(g, out.data_ptr<float>(), n, a, b);
  if (what == 6) return curandGenerateLogNormalDouble(g, out.data_ptr<double>(), n, a, b);
  return curandGeneratePoisson(g, (unsigned*)out.data_ptr(), n, a);
}
"""
_CPP = r"""
#include <ATen/core/PhiloxRNGEngine.h>
void bits(int64_t kind, torch::Tensor from, torch::Tensor out);
void values(int64_t kind, torch::Tensor from, double lambda, torch::Tensor out);
void fours(torch::Tensor from, torch::Tensor out);
void pairs(torch::Tensor out);
void jumped(torch::Tensor out);
int64_t create(int64_t type, int64_t seed, int64_t offset);
int64_t order(int64_t ordering);
int64_t destroy();
int64_t generate(int64_t what, torch::Tensor out, double a, double b);
void torch_philox(int64_t seed, int64_t subsequence, int64_t offset, torch::Tensor out) {
  at::Philox4_32 engine(seed, subsequence, offset);
  for (int i = 0; i < out.numel(); ++i) out.data_ptr<long>()[i] = engine();
}
"""


@functools.lru_cache(1)
def load() -> Any:
    """Return the extension."""
    names = "bits values fours pairs jumped create order destroy generate torch_philox".split()
    return simt.load_inline("curand_device_and_host", cpp_sources=_CPP, cuda_sources=_CUDA, functions=names)


# ---- the generators, as published ----


def step_xorwow(v: int) -> int:
    """Return the state after one step; word 0 is in the lowest bits."""
    first, last = v & 0xFFFFFFFF, v >> 128
    t = first ^ first >> 2
    return v >> 32 | ((last ^ last << 4 ^ t ^ t << 1) & 0xFFFFFFFF) << 128


def _apply(matrix: list[int], v: int) -> int:
    out = 0
    for row in matrix:
        if v & 1:
            out ^= row
        v >>= 1
    return out


def jump_xorwow(v: int, steps: int) -> int:
    """Return the state after any number of steps, by powers of the matrix of one."""
    matrix = [step_xorwow(1 << i) for i in range(160)]
    while steps:
        if steps & 1:
            v = _apply(matrix, v)
        steps >>= 1
        if steps:
            matrix = [_apply(matrix, row) for row in matrix]
    return v


def xorwow(seed: int, steps: int) -> Iterator[int]:
    """Yield XORWOW's numbers after the given number of steps, with cuRAND's seeds."""
    low = 1099087573 * ((seed & 0xFFFFFFFF) ^ 0xAAD26B49) & 0xFFFFFFFF
    high = 2591861531 * ((seed >> 32) ^ 0xF7DCEFDD) & 0xFFFFFFFF
    words = [123456789 + low, 362436069 ^ low, 521288629 + high, 88675123 ^ high, 5783321 + low]
    v = sum((word & 0xFFFFFFFF) << 32 * i for i, word in enumerate(words))
    v, d = jump_xorwow(v, steps), 6615241 + low + high + 362437 * steps
    while True:
        v, d = step_xorwow(v), d + 362437
        yield ((v >> 128) + d) & 0xFFFFFFFF


_MODULI = (4294967087, 4294944443)
_ONE_STEP = (((0, 1, 0), (0, 0, 1), (-810728, 1403580, 0)), ((0, 1, 0), (0, 0, 1), (-1370589, 0, 527612)))


def mrg(seed: int, steps: int) -> Iterator[int]:
    """Yield MRG32k3a's numbers, from 1 to the first modulus, after the given number of steps, with cuRAND's seeds."""
    halves = ((seed & 0xFFFFFFFF) ^ 0x55555555, (seed >> 32) ^ 0xAAAAAAAA) if seed else (1, 1)
    start = [12345 * halves[i % 2] % _MODULI[i // 3] for i in range(6)]
    states = []
    for which, m in enumerate(_MODULI):
        state, matrix, left = start[3 * which : 3 * which + 3], _ONE_STEP[which], steps
        while left:
            if left & 1:
                state = [sum(a * b for a, b in zip(row, state, strict=True)) % m for row in matrix]
            columns = list(zip(*matrix, strict=True))
            matrix = [[sum(a * b for a, b in zip(row, c, strict=True)) % m for c in columns] for row in matrix]
            left >>= 1
        states.append(state)
    while True:
        for which, m in enumerate(_MODULI):
            s = states[which]
            states[which] = [s[1], s[2], sum(a * b for a, b in zip(_ONE_STEP[which][2], s, strict=True)) % m]
        yield (states[0][2] - states[1][2] - 1) % _MODULI[0] + 1


# ---- programs ----

PI = r"""
#include <cstdio>
#include <curand_kernel.h>

__global__ void seed_states(STATE* states) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(2024, i, 0, &states[i]);  // seeds
}
__global__ void count_inside(STATE* states, unsigned* inside, int tries) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  STATE mine = states[INDEX];  // loads
  unsigned hits = 0;
  for (int k = 0; k < tries; k++) {
    float x = curand_uniform(&mine), y = curand_uniform(&mine);
    hits += x * x + y * y <= 1;
  }
  states[INDEX] = mine;  // stores
  atomicAdd(inside, hits);
}
__global__ void add_noise(STATE* states, float* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] += curand_normal(&states[INDEX]);  // uses
}
int main() {
  const int blocks = 8, threads = 64, n = blocks * threads, tries = 400;
  STATE* states;
  unsigned *inside, host;
  float* x;
  cudaMalloc(&states, n * sizeof(STATE));
  cudaMalloc(&inside, sizeof(unsigned));
  cudaMalloc(&x, n * sizeof(float));
  cudaMemset(inside, 0, sizeof(unsigned));
  cudaMemset(x, 0, n * sizeof(float));
#ifndef FORGET
  seed_states<<<blocks, threads>>>(states);
#endif
  count_inside<<<blocks, threads>>>(states, inside, tries);
  add_noise<<<blocks, threads>>>(states, x);
  cudaMemcpy(&host, inside, sizeof host, cudaMemcpyDeviceToHost);
  printf("%.4f\n", 4.0 * host / (n * tries));
  cudaFree(states);
  cudaFree(inside);
  cudaFree(x);
}
"""

FILLED = r"""
#include <cstdio>
#include <curand.h>
__global__ void scale(float* x) { x[threadIdx.x] *= 2; }
int main() {
  float *x, host[100];
  curandGenerator_t generator;
  cudaMalloc(&x, sizeof host);
  curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
  curandSetPseudoRandomGeneratorSeed(generator, 1234ULL);
  int status = curandGenerateUniform(generator, x, COUNT);  // fills
  scale<<<1, 100>>>(x);
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
  printf("%d %.6f %.6f\n", status, host[0], host[1]);
  curandDestroyGenerator(generator);
  cudaFree(x);
}
"""
