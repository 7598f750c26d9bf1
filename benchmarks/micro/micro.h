// What the programs in this folder share: memory with something in it, and launches that are timed when built to be.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) check((call), #call, __LINE__)
inline void check(cudaError_t error, const char* what, int line) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "line %d: %s: %s\n", line, what, cudaGetErrorString(error));
  exit(1);
}

// The program's size: its first argument, or `small`.
inline long size_of_run(int argc, char** argv, long small) { return argc > 1 ? atol(argv[1]) : small; }

// Device memory for n elements. Every byte is 0x3f: as a float 0.747, never zero, never a NaN.
template <class T>
T* memory(size_t n) {
  T* p;
  CHECK(cudaMalloc(&p, n * sizeof(T)));
  CHECK(cudaMemset(p, 0x3f, n * sizeof(T)));
  return p;
}

#ifndef MICRO_TIMED
// Launches once. The label goes to standard output: one line a launch, in order.
template <class Launch>
void measure(const char* label, Launch launch) {
  printf("%s\n", label);
  fflush(stdout);
  launch();
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}
#else
// Times with events, medians of RUNS: with what the last run left in L2, with L2 full of something else, and in a row.
constexpr int RUNS = 20;

__global__ void flush_l2(const float4* other, float* never, size_t n) {
  float sum = 0.0f;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
    sum += other[i].x;
  if (sum == -1.0f) *never = sum;  // read, not written: nothing is left that must go to DRAM first
}

inline float milliseconds(cudaEvent_t start, cudaEvent_t stop) {
  float ms;
  CHECK(cudaEventSynchronize(stop));
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  return ms;
}

template <class Launch>
void measure(const char* label, Launch launch) {
  static const size_t OTHER = size_t(256) << 20;
  static float4* other = memory<float4>(OTHER / sizeof(float4));
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  std::vector<float> times[2];
  for (int run = -2; run < RUNS; run++)
    for (int flushed = 0; flushed < 2; flushed++) {
      if (flushed)
        flush_l2<<<1056, 256>>>(other, (float*)other, OTHER / sizeof(float4));
      else
        launch();
      CHECK(cudaEventRecord(start));
      launch();
      CHECK(cudaEventRecord(stop));
      if (run >= 0) times[flushed].push_back(milliseconds(start, stop));
    }
  for (auto& t : times) std::sort(t.begin(), t.end());
  const int row = times[0][RUNS / 2] < 0.1f ? 100 : 5;  // launches one after another: what each adds
  CHECK(cudaEventRecord(start));
  for (int i = 0; i < row; i++) launch();
  CHECK(cudaEventRecord(stop));
  const float each = milliseconds(start, stop) / row;
  CHECK(cudaGetLastError());
  printf("%s\thot_ms %.6f\tcold_ms %.6f\trow_ms %.6f\n", label, times[0][RUNS / 2], times[1][RUNS / 2], each);
  fflush(stdout);
}
#endif
