// title: what kernels draw from cuRAND's states: bits, uniform, normal and Poisson numbers, after jumps too
// flags: -lcurand
#include <cstdio>
#include <cstring>
#include <curand_kernel.h>

enum { THREADS = 4, COUNT = 6 };
struct Row {
  unsigned bits[COUNT], skipped[COUNT], jumped[COUNT], poisson[4][COUNT];
  float uniform[COUNT], normal[COUNT], log_normal[COUNT];
  double uniform_double[COUNT], normal_double[COUNT];
  float2 normal2[2];
};

template <class State>
__global__ void draw(Row* rows, unsigned long long seed, unsigned long long offset) {
  Row& row = rows[threadIdx.x];
  State s;
  const unsigned long long sequence = threadIdx.x * 1000003ull;
#define FILL(member, call)             \
  curand_init(seed, sequence, offset, &s); \
  for (auto& x : member) x = call;
  FILL(row.bits, curand(&s))
  FILL(row.uniform, curand_uniform(&s))
  FILL(row.normal, curand_normal(&s))
  FILL(row.log_normal, curand_log_normal(&s, 0.5f, 0.25f))
  FILL(row.uniform_double, curand_uniform_double(&s))
  FILL(row.normal_double, curand_normal_double(&s))
  FILL(row.normal2, curand_normal2(&s))
  FILL(row.poisson[0], curand_poisson(&s, 0.7))
  FILL(row.poisson[1], curand_poisson(&s, 20))
  FILL(row.poisson[2], curand_poisson(&s, 63))
  FILL(row.poisson[3], curand_poisson(&s, 5000))
  curand_init(seed, sequence, offset, &s);
  skipahead(1000001ull, &s);
  for (unsigned& x : row.skipped) x = curand(&s);
  curand_init(seed, sequence, offset, &s);
  skipahead_sequence(12345ull, &s);
  for (unsigned& x : row.jumped) x = curand(&s);
}

static void show(const char* name, const unsigned* x) {
  printf("  %s", name);
  for (int i = 0; i < COUNT; ++i) printf(" %08x", x[i]);
  puts("");
}

template <class State>
int show_all(const char* what) {
  Row *d, rows[THREADS];
  if (cudaMalloc(&d, sizeof rows)) return 1;
  for (unsigned long long seed : {0ull, 1234ull, 0xfedcba9876543210ull})
    for (unsigned long long offset : {0ull, 5ull, 123456789012ull}) {
      draw<State><<<1, THREADS>>>(d, seed, offset);
      if (cudaMemcpy(rows, d, sizeof rows, cudaMemcpyDeviceToHost)) return 1;
      for (int t = 0; t < THREADS; ++t) {
        const Row& row = rows[t];
        printf("%s seed %llx offset %llu thread %d\n", what, seed, offset, t);
        unsigned words[COUNT];
        memcpy(words, row.uniform, sizeof words);
        show("bits", row.bits), show("skipped", row.skipped), show("jumped", row.jumped), show("uniform", words);
        printf("  uniform_double");
        for (double x : row.uniform_double) printf(" %.17g", x);
        printf("\n  normal");
        for (float x : row.normal) printf(" %.5f", x);
        for (float2 x : row.normal2) printf(" %.5f %.5f", x.x, x.y);
        printf("\n  log_normal");
        for (float x : row.log_normal) printf(" %.5f", x);
        printf("\n  normal_double");
        for (double x : row.normal_double) printf(" %.10f", x);
        for (const auto& mean : row.poisson) {
          printf("\n  poisson");
          for (unsigned x : mean) printf(" %u", x);
        }
        puts("");
      }
    }
  return cudaFree(d) != cudaSuccess;
}

int main() {
  return show_all<curandStateXORWOW_t>("xorwow") || show_all<curandStatePhilox4_32_10_t>("philox") ||
         show_all<curandStateMRG32k3a_t>("mrg");
}
