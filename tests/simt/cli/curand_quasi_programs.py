"""The programs that the tests of cuRAND's Sobol generators and of MT19937 run."""

from __future__ import annotations

# Prints for each case the four statuses, a hash of the results' bytes (FNV-1a) and the first results.
HOST = r"""
#include <cstdio>
#include <vector>
#include <curand.h>
template <class T> unsigned hash(const std::vector<T>& x) {
  unsigned h = 2166136261u;
  const unsigned char* p = (const unsigned char*)x.data();
  for (size_t i = 0; i < x.size() * sizeof(T); ++i) h = (h ^ p[i]) * 16777619u;
  return h;
}
template <class T, class F> void show(const char* name, int type, unsigned dims, long offset, size_t n, F call) {
  curandGenerator_t g;
  T* d;
  cudaMalloc(&d, n * sizeof(T));
  int s[4] = {curandCreateGenerator(&g, (curandRngType_t)type)};
  s[1] = type < 200 ? curandSetPseudoRandomGeneratorSeed(g, 1234) : curandSetQuasiRandomGeneratorDimensions(g, dims);
  if (type >= 200) s[2] = curandSetGeneratorOffset(g, offset);
  s[3] = call(g, d, n);
  std::vector<T> x(n);
  cudaMemcpy(x.data(), d, n * sizeof(T), cudaMemcpyDeviceToHost);
  printf("%s %d %d %d %d %08x", name, s[0], s[1], s[2], s[3], hash(x));
  for (int i = 0; i < 6; ++i) printf(" %.17g", (double)x[i]);
  printf("\n");
  curandDestroyGenerator(g);
  cudaFree(d);
}
typedef unsigned U;
typedef unsigned long long L;
int main() {
  auto bits = [](auto g, U* d, size_t n) { return curandGenerate(g, d, n); };
  auto longs = [](auto g, L* d, size_t n) { return curandGenerateLongLong(g, d, n); };
  auto uniform = [](auto g, float* d, size_t n) { return curandGenerateUniform(g, d, n); };
  auto uniform2 = [](auto g, double* d, size_t n) { return curandGenerateUniformDouble(g, d, n); };
  auto normal = [](auto g, float* d, size_t n) { return curandGenerateNormal(g, d, n, 0, 1); };
  auto normal2 = [](auto g, double* d, size_t n) { return curandGenerateNormalDouble(g, d, n, 0, 1); };
  auto log = [](auto g, float* d, size_t n) { return curandGenerateLogNormal(g, d, n, 1, 2); };
  auto poisson = [](auto g, U* d, size_t n) { return curandGeneratePoisson(g, d, n, 10); };
  show<U>("sobol32", 201, 1, 0, 1000, bits);
  show<U>("sobol32_all", 201, 1111, 12345, 1111 * 40, bits);
  show<L>("sobol64_all", 203, 1111, 123456789012345, 1111 * 40, longs);
  for (int type : {201, 203, 142}) {
    printf("%d\n", type);
    show<float>("uniform", type, 3, 0, 999, uniform);
    show<double>("uniform_double", type, 3, 0, 999, uniform2);
    show<float>("normal", type, 3, 0, 999, normal);
    show<double>("normal_double", type, 3, 0, 999, normal2);
    show<float>("log_normal", type, 3, 0, 999, log);
    show<U>("poisson", type, 3, 0, 999, poisson);
  }
  show<U>("mt19937", 142, 1, 0, 5000, bits);
}
"""

# Host functions that are called wrongly, and generators that are used in several calls.
STATUSES = r"""
#include <cstdio>
#include <curand_kernel.h>
__global__ void start(const unsigned* vectors, curandStateSobol32_t* state) {
  curand_init((unsigned*)vectors, 0u, state);  // starts
}
int main(int argc, char**) {
  curandGenerator_t q, l, m;
  unsigned x[12] = {};
  unsigned long long y[4];
  curandDirectionVectors32_t* v32;
  curandDirectionVectors64_t* v64;
  curandCreateGeneratorHost(&q, CURAND_RNG_QUASI_DEFAULT);
  curandCreateGeneratorHost(&l, CURAND_RNG_QUASI_SOBOL64);
  curandCreateGeneratorHost(&m, CURAND_RNG_PSEUDO_MT19937);
  printf("create %d\n", curandCreateGeneratorHost(&q, (curandRngType_t)199));
  printf("seed %d\n", curandSetPseudoRandomGeneratorSeed(q, 5));
  printf("dimensions %d %d %d %d\n", curandSetQuasiRandomGeneratorDimensions(q, 0),
         curandSetQuasiRandomGeneratorDimensions(q, 20001), curandSetQuasiRandomGeneratorDimensions(m, 2),
         curandSetQuasiRandomGeneratorDimensions(q, 2000));
  printf("offset %d\n", curandSetGeneratorOffset(m, 1));
  printf("orders");
  for (int order : {100, 101, 102, 103, 104, 201})
    printf(" %d %d", curandSetGeneratorOrdering(q, (curandOrdering_t)order),
           curandSetGeneratorOrdering(m, (curandOrdering_t)order));
  printf("\nbits %d %d %d %d\n", curandGenerate(l, x, 4), curandGenerateLongLong(q, y, 4),
         curandGenerateLongLong(m, y, 4), curandGenerateLongLong(l, y, 4));
  printf("sets %d %d %d\n", curandGetDirectionVectors32(&v32, CURAND_DIRECTION_VECTORS_64_JOEKUO6),
         curandGetDirectionVectors64(&v64, CURAND_DIRECTION_VECTORS_32_JOEKUO6),
         curandGetDirectionVectors32(&v32, CURAND_DIRECTION_VECTORS_32_JOEKUO6));
  curandSetQuasiRandomGeneratorDimensions(q, 4);
  printf("length %d\n", curandGenerate(q, x, 6));
  curandSetQuasiRandomGeneratorDimensions(q, 2);
  curandGenerate(q, x, 6);
  curandGenerate(q, x + 6, 6);
  for (unsigned i : x) printf(" %u", i);
  float odd[5];
  printf("\nodd %d %d\n", curandGenerateNormal(m, odd, 5, 0, 1), curandGenerateNormal(q, odd, 4, 0, 1));
  unsigned* vectors;
  curandStateSobol32_t* state;
  cudaMalloc(&vectors, sizeof *v32);
  cudaMalloc(&state, sizeof *state);
  cudaMemcpy(vectors, v32[argc > 1 ? 1111 : 1110], sizeof *v32, cudaMemcpyHostToDevice);
  start<<<1, 1>>>(vectors, state);
  printf("start %d\n", cudaDeviceSynchronize() != cudaSuccess);
  cudaFree(vectors);
  cudaFree(state);
  curandDestroyGenerator(q), curandDestroyGenerator(l), curandDestroyGenerator(m);
}
"""

# Each thread has a dimension: its numbers are compared with the host functions', and printed.
DEVICE = r"""
#include <cstdio>
#include <cstring>
#include <vector>
#include <curand_kernel.h>
const int dimensions = 8, count = 40, skip = 1000;
template <class State, class Word> struct Row {
  Word bits[count], scrambled[count], skipped[count];
  float uniform[count], normal[count], log_normal[count];
  double uniform_double[count], normal_double[count];
  unsigned poisson[count];
};
template <class State, class Scrambled, class Word, class Vectors>
__global__ void generate(Vectors* vectors, Word offset, Word scramble, State* states, Row<State, Word>* rows) {
  const int d = threadIdx.x;
  Row<State, Word>& row = rows[d];
  State* s = &states[d];
  curand_init(vectors[d], offset, s);
  for (Word& x : row.bits) x = curand(s);
  curand_init(vectors[d], offset, s);
  skipahead((Word)(skip - 3), s);
  skipahead((Word)3, s);
  for (Word& x : row.skipped) x = curand(s);
  Scrambled own;
  curand_init(vectors[d], scramble, offset, &own);
  for (Word& x : row.scrambled) x = curand(&own);
  State start;
#define FILL(member, call)              \
  curand_init(vectors[d], offset, &start); \
  for (auto& x : row.member) x = call;
  FILL(uniform, curand_uniform(&start))
  FILL(uniform_double, curand_uniform_double(&start))
  FILL(normal, curand_normal(&start))
  FILL(normal_double, curand_normal_double(&start))
  FILL(log_normal, curand_log_normal(&start, 1.0f, 2.0f))
  FILL(poisson, curand_poisson(&start, 10.0))
}
template <class T, class F> bool same(curandGenerator_t g, const T* row, int d, unsigned long long offset, F call) {
  std::vector<T> all(dimensions * count);
  curandSetGeneratorOffset(g, offset);
  call(all.data(), all.size());
  return !memcmp(row, all.data() + d * count, count * sizeof(T));
}
template <class State, class Scrambled, class Word, class Vectors>
void compare(Vectors* vectors, curandRngType_t type, Word offset, Word scramble) {
  Vectors* v;
  State* states;
  Row<State, Word>* rows;
  cudaMalloc(&v, dimensions * sizeof *v);
  cudaMalloc(&states, dimensions * sizeof *states);
  cudaMalloc(&rows, dimensions * sizeof *rows);
  cudaMemcpy(v, vectors, dimensions * sizeof *v, cudaMemcpyHostToDevice);
  generate<State, Scrambled, Word><<<1, dimensions>>>(v, offset, scramble, states, rows);
  std::vector<Row<State, Word>> host(dimensions);
  cudaMemcpy(host.data(), rows, dimensions * sizeof *rows, cudaMemcpyDeviceToHost);
  curandGenerator_t g;
  curandCreateGeneratorHost(&g, type);
  curandSetQuasiRandomGeneratorDimensions(g, dimensions);
  auto bits = [&](Word* out, size_t n) {
    if constexpr (sizeof(Word) == 4) return curandGenerate(g, out, n);
    else return curandGenerateLongLong(g, out, n);
  };
  for (int d = 0; d < dimensions; ++d) {
    const auto& row = host[d];
    bool scrambled = true;
    for (int i = 0; i < count; ++i) scrambled &= row.scrambled[i] == (row.bits[i] ^ scramble);
    printf("%d%d%d %d%d%d%d%d%d", same(g, row.bits, d, offset, bits), same(g, row.skipped, d, offset + skip, bits),
           scrambled, same(g, row.uniform, d, offset, [&](float* x, size_t n) { curandGenerateUniform(g, x, n); }),
           same(g, row.uniform_double, d, offset, [&](double* x, size_t n) { curandGenerateUniformDouble(g, x, n); }),
           same(g, row.normal, d, offset, [&](float* x, size_t n) { curandGenerateNormal(g, x, n, 0, 1); }),
           same(g, row.normal_double, d, offset, [&](double* x, size_t n) {
             curandGenerateNormalDouble(g, x, n, 0, 1);
           }),
           same(g, row.log_normal, d, offset, [&](float* x, size_t n) { curandGenerateLogNormal(g, x, n, 1, 2); }),
           same(g, row.poisson, d, offset, [&](unsigned* x, size_t n) { curandGeneratePoisson(g, x, n, 10); }));
    for (Word x : row.bits) printf(" %llu", (unsigned long long)x);
    printf("\n");
  }
  curandDestroyGenerator(g);
  cudaFree(v), cudaFree(states), cudaFree(rows);
}
int main() {
  curandDirectionVectors32_t* v32;
  curandDirectionVectors64_t* v64;
  curandGetDirectionVectors32(&v32, CURAND_DIRECTION_VECTORS_32_JOEKUO6);
  curandGetDirectionVectors64(&v64, CURAND_DIRECTION_VECTORS_64_JOEKUO6);
  compare<curandStateSobol32_t, curandStateScrambledSobol32_t, unsigned>(v32, CURAND_RNG_QUASI_SOBOL32, 77, 0xcafe1234);
  compare<curandStateSobol64_t, curandStateScrambledSobol64_t, unsigned long long>(v64, CURAND_RNG_QUASI_SOBOL64, 77,
                                                                                0x123456789abcdef0);
}
"""
