// title: every atomic function and scope, and a loop of atomicCAS for those that are missing
// features: atomics, atomic_scopes, architecture_macros, double_precision, untaken_branches

#include <cfloat>
#include <climits>
#include <cstdio>
#include <cstdlib>

#define N_THREADS 256
#define N_BLOCKS 8

#define cudaCheck(x)                                                          \
  {                                                                           \
    cudaError_t e = (x);                                                      \
    if (e != cudaSuccess) printf("%s\n", cudaGetErrorString(e)), exit(1);     \
  }

#if __CUDA_ARCH__ < 600 && defined(__CUDA_ARCH__)
__device__ double atomicAdd(double *address, double val) {
  unsigned long long int *address_as_ull = (unsigned long long int *)address;
  unsigned long long int old = *address_as_ull, assumed;
  do {
    assumed = old;
    old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}
#endif

// CUDA has no atomic product, no atomic maximum of floats.
__device__ float atomicMul(float *address, float val) {
  int *address_as_int = (int *)address;
  int old = *address_as_int, assumed;
  do {
    assumed = old;
    old = atomicCAS(address_as_int, assumed, __float_as_int(val * __int_as_float(assumed)));
  } while (assumed != old);
  return __int_as_float(old);
}

__device__ float atomicMaxFloat(float *addr, float value) {
  return value >= 0 ? __int_as_float(atomicMax((int *)addr, __float_as_int(value)))
                    : __uint_as_float(atomicMin((unsigned int *)addr, __float_as_uint(value)));
}

struct Results {
  int added, subtracted, exchanged_sum, least, most;
  unsigned int incremented, decremented, conjunction, disjunction, exclusive;
  unsigned long long added64, most64, compared;
  float added_f, most_f, product;
  double added_d;
  int system, block_sum;
  unsigned short compared16;
  short pad;
};

__global__ void all_kinds(Results *r) {
  __shared__ int per_block;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) per_block = 0;
  __syncthreads();

  atomicAdd(&r->added, 10);
  atomicSub(&r->subtracted, i % 7);
  atomicMin(&r->least, (i * 37) % 1000 - 500);
  atomicMax(&r->most, (i * 41) % 1000);
  atomicInc(&r->incremented, 17u);   // counts 0 ... 17 and starts again
  atomicDec(&r->decremented, 137u);  // counts down, from 0 to 137
  atomicAnd(&r->conjunction, 2u * i + 0xff00u);
  atomicOr(&r->disjunction, 1u << (i % 11));
  atomicXor(&r->exclusive, (unsigned)i);
  atomicAdd(&r->added64, 3000000000ull);
  atomicMax(&r->most64, (unsigned long long)i << 33);
  atomicAdd(&r->added_f, 0.5f);
  atomicAdd(&r->added_d, 0.25);
  atomicMaxFloat(&r->most_f, (float)((i * 31) % 512) - 600.0f);
  if (i % 128 == 5) atomicMul(&r->product, 2.0f);

  // Each value that is put in comes out again, but the last.
  int before = atomicExch(&r->system, i + 1);
  atomicAdd(&r->exchanged_sum, before);

  // One thread sets the word.
  if (atomicCAS(&r->compared, 0ull, 1ull + (1ull << 40)) == 0) atomicAdd_system(&r->block_sum, 1000000);
  unsigned short *half = &r->compared16;
  unsigned short seen = 0;
  for (unsigned short was;; seen = was) {  // 16 bits: the number of threads, modulo 65536
    was = atomicCAS(half, seen, (unsigned short)(seen + 1));
    if (was == seen) break;
  }

  atomicAdd_block(&per_block, 1);
  atomicMax_block(&per_block, 0);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd_system(&r->block_sum, per_block);
}

int main() {
  const int n = N_THREADS * N_BLOCKS;
  Results start = {}, got, *d;
  start.least = INT_MAX;
  start.most = INT_MIN;
  start.conjunction = 0xffffffffu;
  start.most_f = -FLT_MAX;
  start.product = 1.0f;
  cudaCheck(cudaMalloc(&d, sizeof(Results)));
  cudaCheck(cudaMemcpy(d, &start, sizeof(Results), cudaMemcpyHostToDevice));
  all_kinds<<<N_BLOCKS, N_THREADS>>>(d);
  cudaCheck(cudaGetLastError());
  cudaCheck(cudaMemcpy(&got, d, sizeof(Results), cudaMemcpyDeviceToHost));
  cudaCheck(cudaFree(d));

  Results e = start;
  unsigned count_up = 0, count_down = 0;
  double most_f = -1e9, product = 1;
  int exchanged = 0;
  for (int i = 0; i < n; i++) {
    e.added += 10;
    e.subtracted -= i % 7;
    if ((i * 37) % 1000 - 500 < e.least) e.least = (i * 37) % 1000 - 500;
    if ((i * 41) % 1000 > e.most) e.most = (i * 41) % 1000;
    count_up = count_up >= 17 ? 0 : count_up + 1;
    count_down = count_down == 0 || count_down > 137 ? 137 : count_down - 1;
    e.conjunction &= 2u * i + 0xff00u;
    e.disjunction |= 1u << (i % 11);
    e.exclusive ^= i;
    e.added64 += 3000000000ull;
    if ((i * 31) % 512 - 600.0 > most_f) most_f = (i * 31) % 512 - 600.0;
    if (i % 128 == 5) product *= 2;
    exchanged += i + 1;
  }
  int errors = 0;
#define EXPECT(name, value)                                    \
  do {                                                         \
    bool same = got.name == (value);                           \
    printf("%-13s %s\n", #name, same ? "as expected" : "WRONG"); \
    errors += !same;                                           \
  } while (0)
  EXPECT(added, e.added);
  EXPECT(subtracted, e.subtracted);
  EXPECT(exchanged_sum + got.system, exchanged);
  EXPECT(least, e.least);
  EXPECT(most, e.most);
  EXPECT(incremented, count_up);
  EXPECT(decremented, count_down);
  EXPECT(conjunction, e.conjunction);
  EXPECT(disjunction, e.disjunction);
  EXPECT(exclusive, e.exclusive);
  EXPECT(added64, e.added64);
  EXPECT(most64, (unsigned long long)(n - 1) << 33);
  EXPECT(compared, 1ull + (1ull << 40));
  EXPECT(compared16, n);
  EXPECT(added_f, n * 0.5f);
  EXPECT(added_d, n * 0.25);
  EXPECT(most_f, (float)most_f);
  EXPECT(product, (float)product);
  EXPECT(block_sum, 1000000 + n);
  printf(errors ? "FAILED\n" : "PASSED\n");
  return errors ? 1 : 0;
}
