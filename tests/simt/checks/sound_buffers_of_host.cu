// check: sound
// near: out_of_bounds
// what: copies to and from all of a buffer, and parts of it, that the host has from malloc, new, realloc and libraries

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>

struct Record {
  float values[16];
  static int made;
  void* operator new(size_t bytes) { return ++made, malloc(bytes); }
  void operator delete(void* record) { free(record); }
};
int Record::made = 0;

__global__ void square(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= x[i];
}

int main() {
  const int n = 1000;
  const size_t bytes = n * sizeof(float);
  float* d_x;
  CHECK(cudaMalloc(&d_x, bytes));
  CHECK(cudaMemset(d_x, 0, bytes));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([] {
      std::map<int, std::string> texts;
      for (int i = 0; i < 20000; ++i) texts[i % 90] = std::string(i % 700, 'x');
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<float> grown;
  for (int i = 0; i < n; ++i) grown.push_back(i);
  CHECK(cudaMemcpy(d_x, grown.data(), bytes, cudaMemcpyHostToDevice));
  square<<<(n + 127) / 128, 128>>>(d_x, n);
  CHECK(cudaGetLastError());
  auto own = std::make_unique<float[]>(n);
  CHECK(cudaMemcpy(own.get() + n / 2, d_x + n / 2, bytes / 2, cudaMemcpyDeviceToHost));
  float* moved = (float*)realloc(malloc(16), bytes);
  CHECK(cudaMemcpy(moved, d_x, bytes, cudaMemcpyDeviceToHost));
  void* aligned = nullptr;
  if (posix_memalign(&aligned, 256, bytes) != 0) return 1;
  CHECK(cudaMemcpy(aligned, d_x, bytes, cudaMemcpyDefault));
  auto* const record = new Record;
  CHECK(cudaMemcpy(record, d_x, sizeof *record, cudaMemcpyDeviceToHost));
  char* line = (char*)malloc(8);
  size_t room = 8;
  FILE* file = fopen(__FILE__, "r");
  if (!file) file = fopen("/proc/self/maps", "r");
  while (getline(&line, &room, file) > 0) {}
  fclose(file);
  CHECK(cudaMemcpy(d_x, line, room < bytes ? room : bytes, cudaMemcpyHostToDevice));
  char* const copy = strdup(std::string(200, 'y').c_str());
  CHECK(cudaMemcpy(d_x, copy, 201, cudaMemcpyHostToDevice));
  printf("%g %d\n", own[n / 2], Record::made);
  free(line);
  free(copy);
  free(moved);
  free(aligned);
  delete record;
  CHECK(cudaFree(d_x));
  return 0;
}
