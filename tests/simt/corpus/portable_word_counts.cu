// title: counts of words in a portable style: many branches that are not taken, and macros that libraries use too
// features: untaken_branches, colliding_macros, shared_word_order, atomics, warp_votes

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- platform.h, pasted ---- */
#if defined __OPENCL_VERSION__
#  define GLOBAL __global
#  define kernel __kernel
#elif defined __METAL_VERSION__
#  define GLOBAL device
#elif defined(__CUDACC__)
#  define GLOBAL
#  define kernel __global__
#else
#  error no compiler for kernels
#endif

#if !defined(NDEBUG) && 0
#  define assert(x) while (!(x)) { printf("it isn't so: " #x); }
#endif

#ifdef __INTEL_LLVM_COMPILER
#pragma unroll_and_jam
extern SYCL_EXTERNAL void other(
#endif

#if defined(NO_SUCH_FEATURE) || (defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ < 9)
#  define VOTE(p) __ballot(p)
#  define SHFL(v, l) __shfl(v, l)
#  include <math_functions.hpp>
#  include "sm_30_intrinsics.h"
#else
#  define VOTE(p) __ballot_sync(0xffffffff, p)
#  define SHFL(v, l) __shfl_sync(0xffffffff, v, l)
#endif

#ifdef __has_include
#  if __has_include(<mpi_is_not_here.h>)
#    include <mpi_is_not_here.h>
#    define RANK rank()
#  else
#    define RANK 0
#  endif
#endif

#define MIN(x, y) ((x) < (y) ? (x) : (y))
#define MAX(x, y) ((x) > (y) ? (x) : (y))
#define CHECK(e) if (CUDA_##e != cudaSuccess) { fprintf(stderr, "line %d\n", __LINE__); exit(9); }
#define CUDA_ALLOC(p, n) cudaMalloc((void **)&(p), n)
#define CUDA_COPY(d, s, n) cudaMemcpy(d, s, n, cudaMemcpyDefault)
#define CUDA_FREE(p) cudaFree(p)
#define CUDA_LAST() cudaGetLastError()
#define WARP_SIZE 32
#define BLOCK 96
#define TABLE 61
#define A 'a'
#define Z 'z'
#define u8 unsigned char
#define ull unsigned long long
#define thread (int)threadIdx.x
#define size sizeof
#define store(p, v) (*(p) = (v))
#define load(p) (*(p))
#define lane (threadIdx.x % WARP_SIZE)
#define likely(c) __builtin_expect(!!(c), 1)
#define unused __attribute__((unused))
#define packed __attribute__((packed))
#define begin {
#define end }
#define print(...) printf(__VA_ARGS__)
#define block_of(i) ((i) / BLOCK)
#define config "plain"

#undef A
#undef Z

struct Key { u8 first, last; short length; } packed;

static __device__ __host__ int is_letter(int c) begin return c >= 'a' && c <= 'z'; end

static __device__ __host__ unsigned hash(const u8 *word, int length)
begin
  unsigned h = 2166136261u;
  for (int i = 0; i < length; i++) h = (h ^ word[i]) * 16777619u;
  return h % TABLE;
end

// The thread at the start of a word counts it; the block's counts are in shared memory.
kernel void count_words(GLOBAL const u8 *text, int n, GLOBAL int *counts, GLOBAL int *words)
{
  int __shared__ table[TABLE];
  unsigned __shared__ started[BLOCK / WARP_SIZE];
  volatile int __shared__ longest;
  for (int i = thread; i < TABLE; i += BLOCK) store(&table[i], 0);
  if (thread == 0) longest = 0;
  __syncthreads();
  const int at = blockIdx.x * BLOCK + thread;
  int starts = at < n && is_letter(load(text + at)) && (at == 0 || !is_letter(load(text + at - 1)));
  unsigned vote = VOTE(starts);
#if 0
  if (lane == 0) store(&started[0], __any(starts));   // that's how it was
#elif defined(CLUSTERS)
  cooperative_groups::this_cluster().sync();
  cudaGridDependencySynchronize();
#else
  vote = SHFL(vote, WARP_SIZE - 1);
#endif
  if (lane == 0) store(&started[thread / WARP_SIZE], vote);
  if (starts) {
    int length = 1;
    while (at + length < n && is_letter(text[at + length])) length++;
    atomicAdd(&table[hash(text + at, length)], 1);
    atomicMax((int *)&longest, length);
  }
  __syncthreads();
  for (int i = thread; i < TABLE; i += BLOCK)
    if (table[i]) atomicAdd(&counts[i], table[i]);
  if (thread == 0) {
    int total = 0;
    for (int w = 0; w < BLOCK / WARP_SIZE; w++) total += __popc(started[w]);
    atomicAdd(&words[0], total);
    atomicMax(&words[1], longest);
  }
}

#ifdef TEXTURES
texture<u8, 1, cudaReadModeElementType> text_texture;
static void bind(const u8 *text, int n) { cudaBindTexture(0, text_texture, text, n); cudaThreadSynchronize(); }
#endif

static const char *const syllables[] = {"ka", "lo", "mi", "ne", "su", "tar", "ve", "yo"};

int main(int argc, char *argv[] unused)
{
  static u8 text[6000];
  int n = 0, wrong = 0, want[TABLE] = {0}, got[TABLE], words = 0, longest = 0, both[2], seed = 7 + RANK;
  while (n < (int)(size(text) - 40)) {
    int parts;
    seed = (seed * 1103 + 12345) & 0xffff;
    for (parts = 1 + (seed >> 8) % 4; parts > 0; parts--) {
      const char *s = syllables[(seed >> (3 * parts)) & 7];
      memcpy(text + n, s, strlen(s));
      n += (int)strlen(s);
    }
    text[n++] = seed & 16 ? ' ' : seed & 32 ? ',' : '\n';
    if (seed & 64) text[n++] = ' ';
  }
  for (int i = 0; i < n; i++)
    if (is_letter(text[i])) {
      int length = 0;
      while (i + length < n && is_letter(text[i + length])) length++;
      want[hash(text + i, length)]++;
      words++;
      longest = MAX(longest, length);
      i += length - 1;
    }

  u8 *d_text;
  int *d_counts, *d_words;
  CHECK(ALLOC(d_text, n));
  CHECK(ALLOC(d_counts, size(want)));
  CHECK(ALLOC(d_words, size(both)));
  CHECK(COPY(d_text, text, n));
  memset(got, 0, size(got));
  memset(both, 0, size(both));
  CHECK(COPY(d_counts, got, size(got)));
  CHECK(COPY(d_words, both, size(both)));
  count_words<<<block_of(n + BLOCK - 1), BLOCK>>>(d_text, n, d_counts, d_words);
  CHECK(LAST());
  CHECK(COPY(got, d_counts, size(got)));
  CHECK(COPY(both, d_words, size(both)));
  for (int i = 0; i < TABLE; i++) wrong += got[i] != want[i];
  wrong += both[0] != words || both[1] != longest;
  print("%s: %d words, the longest of %d letters, %d in slot 0\n", config, both[0], both[1], got[0]);
  CHECK(FREE(d_text));
  CHECK(FREE(d_counts));
  CHECK(FREE(d_words));
  puts(likely(!wrong) ? "PASSED" : "FAILED");
  return MIN(wrong, 1);
}
