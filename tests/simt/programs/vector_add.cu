/*
Vector addition: c[i] = a[i] + b[i], the first program of every CUDA course.

    nvcc -std=c++17 -arch=native vector_add.cu -o vector_add && ./vector_add [n]
    python -m simt run vector_add.cu [n]

version 1: one element a thread; the last block is only partly used, so every thread asks whether its element exists
version 2: a grid-stride loop: as many blocks as keep the device busy, each thread takes several elements
version 3: float4: 16 bytes a load; the last n % 4 elements are left to the first threads
version 4: version 1 in four pieces on four streams, so that copies and kernels of different pieces can overlap
*/

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    cudaError_t error_ = (call);                                                                        \
    if (error_ != cudaSuccess) {                                                                        \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));        \
      exit(EXIT_FAILURE);                                                                               \
    }                                                                                                   \
  } while (0)

// ---- CPU reference ----

void add_cpu(const float* a, const float* b, float* c, int n) {
  for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
}

// ---- kernels ----

__global__ void add1(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void add2(const float* a, const float* b, float* c, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) c[i] = a[i] + b[i];
}

__global__ void add3(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 4) {
    float4 x = reinterpret_cast<const float4*>(a)[i];
    float4 y = reinterpret_cast<const float4*>(b)[i];
    reinterpret_cast<float4*>(c)[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  }
  int last = n / 4 * 4 + i;
  if (last < n) c[last] = a[last] + b[last];
}

// ---- host ----

bool report(const char* name, const std::vector<float>& got, const std::vector<float>& expected) {
  int wrong = 0;
  double sum = 0;
  for (size_t i = 0; i < got.size(); i++) {
    wrong += got[i] != expected[i];
    sum += got[i];
  }
  printf("%-22s %s  sum %.1f\n", name, wrong ? "WRONG" : "ok", sum);
  return wrong == 0;
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 100003;
  if (n < 1) {
    fprintf(stderr, "usage: vector_add [n]\n");
    return 2;
  }
  std::vector<float> a(n), b(n), c(n), expected(n);
  for (int i = 0; i < n; i++) {
    a[i] = (i % 1000) * 0.5f;
    b[i] = (i % 77) - 38.0f;
  }
  add_cpu(a.data(), b.data(), expected.data(), n);

  size_t bytes = n * sizeof(float);
  float *d_a, *d_b, *d_c;
  CHECK(cudaMalloc(&d_a, bytes));
  CHECK(cudaMalloc(&d_b, bytes));
  CHECK(cudaMalloc(&d_c, bytes));
  CHECK(cudaMemcpy(d_a, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, b.data(), bytes, cudaMemcpyHostToDevice));

  printf("vector_add: %d elements\n", n);
  bool ok = true;
  const int block = 256;
  const char* names[] = {"one a thread", "grid-stride loop", "float4"};
  for (int version = 1; version <= 3; version++) {
    CHECK(cudaMemset(d_c, 0, bytes));
    if (version == 1) add1<<<(n + block - 1) / block, block>>>(d_a, d_b, d_c, n);
    if (version == 2) add2<<<32, block>>>(d_a, d_b, d_c, n);
    if (version == 3) add3<<<(n / 4 + block) / block, block>>>(d_a, d_b, d_c, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c.data(), d_c, bytes, cudaMemcpyDeviceToHost));
    ok &= report(names[version - 1], c, expected);
  }

  const int pieces = 4;
  cudaStream_t streams[pieces];
  float *h_a, *h_b, *h_c;      // copies can only overlap from and to pinned memory
  CHECK(cudaMallocHost(&h_a, bytes));
  CHECK(cudaMallocHost(&h_b, bytes));
  CHECK(cudaMallocHost(&h_c, bytes));
  std::copy(a.begin(), a.end(), h_a);
  std::copy(b.begin(), b.end(), h_b);
  for (int p = 0; p < pieces; p++) {
    CHECK(cudaStreamCreate(&streams[p]));
    int from = (long long)n * p / pieces, count = (long long)n * (p + 1) / pieces - from;
    if (count == 0) continue;
    CHECK(cudaMemcpyAsync(d_a + from, h_a + from, count * sizeof(float), cudaMemcpyHostToDevice, streams[p]));
    CHECK(cudaMemcpyAsync(d_b + from, h_b + from, count * sizeof(float), cudaMemcpyHostToDevice, streams[p]));
    add1<<<(count + block - 1) / block, block, 0, streams[p]>>>(d_a + from, d_b + from, d_c + from, count);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(h_c + from, d_c + from, count * sizeof(float), cudaMemcpyDeviceToHost, streams[p]));
  }
  CHECK(cudaDeviceSynchronize());
  ok &= report("four streams", std::vector<float>(h_c, h_c + n), expected);

  for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFreeHost(h_a));
  CHECK(cudaFreeHost(h_b));
  CHECK(cudaFreeHost(h_c));
  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  CHECK(cudaFree(d_c));
  return ok ? 0 : 1;
}
