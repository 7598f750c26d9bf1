// check: sound
// near: out_of_bounds
// what: an odd-even sort swaps whole records in shared memory, up to the last one of the array

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Entry {
  unsigned key;
  double weight;
  unsigned char tag[12];
};

__device__ void swap(Entry& a, Entry& b) {
  Entry kept = a;
  a = b;
  b = kept;
}

__global__ void sort(Entry* entries) {
  __shared__ Entry line[33];
  int t = threadIdx.x;
  if (t < 33) line[t] = entries[t];
  __syncthreads();
  for (int pass = 0; pass < 33; pass++) {
    int left = 2 * t + pass % 2;
    if (left + 1 < 33 && line[left].key > line[left + 1].key) swap(line[left], line[left + 1]);
    __syncthreads();
  }
  if (t < 33) entries[t] = line[t];
}

int main() {
  std::vector<Entry> host(33);
  for (int i = 0; i < 33; i++) host[i].key = i * 17 % 33;
  Entry* entries;
  CHECK(cudaMalloc(&entries, 33 * sizeof(Entry)));
  CHECK(cudaMemcpy(entries, host.data(), 33 * sizeof(Entry), cudaMemcpyHostToDevice));
  sort<<<1, 64>>>(entries);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), entries, 33 * sizeof(Entry), cudaMemcpyDeviceToHost));
  for (auto& e : host) printf("%u ", e.key);
  CHECK(cudaFree(entries));
}
