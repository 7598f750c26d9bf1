// title: what cuRAND's host functions fill an array with, by generator, order, offset and distribution
// flags: -lcurand
#include <cstdio>
#include <vector>
#include <curand.h>

template <class T> unsigned hash(const std::vector<T>& x) {
  unsigned h = 2166136261u;
  const unsigned char* p = (const unsigned char*)x.data();
  for (size_t i = 0; i < x.size() * sizeof(T); ++i) h = (h ^ p[i]) * 16777619u;
  return h;
}

// exact: whether the bytes are to be the same; other results are printed with six digits.
template <class T, class F>
void show(const char* name, int type, int order, unsigned long long offset, size_t n, bool exact, F call) {
  curandGenerator_t g;
  T* d;
  cudaMalloc(&d, n * sizeof(T));
  int status[5] = {curandCreateGenerator(&g, (curandRngType_t)type)};
  status[1] = curandSetPseudoRandomGeneratorSeed(g, 987654321);
  status[2] = curandSetGeneratorOrdering(g, (curandOrdering_t)order);
  status[3] = offset ? curandSetGeneratorOffset(g, offset) : 0;
  status[4] = call(g, d, n);
  std::vector<T> x(n);
  cudaMemcpy(x.data(), d, n * sizeof(T), cudaMemcpyDeviceToHost);
  printf("%d order %d offset %llu %s x %zu:", type, order, offset, name, n);
  for (int s : status) printf(" %d", s);
  if (!status[4] && exact) printf(" hash %08x", hash(x));
  if (!status[4])
    for (size_t i : {(size_t)0, (size_t)1, (size_t)2, n / 2, n - 1}) printf(" %.6g", (double)x[i]);
  puts("");
  curandDestroyGenerator(g);
  cudaFree(d);
}

typedef unsigned U;
int main() {
  auto bits = [](auto g, U* d, size_t n) { return curandGenerate(g, d, n); };
  auto uniform = [](auto g, float* d, size_t n) { return curandGenerateUniform(g, d, n); };
  auto uniform2 = [](auto g, double* d, size_t n) { return curandGenerateUniformDouble(g, d, n); };
  auto normal = [](auto g, float* d, size_t n) { return curandGenerateNormal(g, d, n, 2, 3); };
  auto normal2 = [](auto g, double* d, size_t n) { return curandGenerateNormalDouble(g, d, n, 2, 3); };
  auto log_normal = [](auto g, float* d, size_t n) { return curandGenerateLogNormal(g, d, n, 1, 0.5f); };
  auto many = [](auto g, U* d, size_t n) { return curandGeneratePoisson(g, d, n, 3000); };
  const size_t n = 100000;
  for (int type : {101, 121, 142, 161}) {
    for (int order : {100, 101, 103}) show<U>("bits", type, order, 0, n, true, bits);
    for (unsigned long long offset : {1ull, 7ull, 4096ull, 1000000ull}) show<U>("bits", type, 101, offset, n, true, bits);
    show<U>("bits", type, 101, 0, 200000, true, bits);
    show<U>("bits", type, 101, 0, 1001, true, bits);
    show<float>("uniform", type, 101, 0, 20000, true, uniform);
    show<double>("uniform_double", type, 101, 0, 20000, true, uniform2);
    show<float>("normal", type, 101, 0, 20000, false, normal);
    show<double>("normal_double", type, 101, 0, 20000, false, normal2);
    show<float>("log_normal", type, 101, 0, 20000, false, log_normal);
    show<U>("poisson 3000", type, 101, 0, 20000, false, many);
    show<float>("normal of odd length", type, 101, 0, 1001, false, normal);
  }
}
