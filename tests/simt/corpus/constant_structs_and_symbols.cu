// title: structs and arrays in constant and device memory: copies to and from symbols with offsets, sizes, addresses
// features: constant_memory, device_variables, symbols, managed_memory

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

namespace config {

struct Layer {
  int width, height;
  float weight[4];
};
struct Parameters {
  int count;
  Layer layers[3];
  double scale;
  char name[16];
};

__constant__ Parameters params;
__constant__ float table[64];
__constant__ int answer = 42;
__constant__ float3 axes[] = {{1.f, 0.f, 0.f}, {0.f, 2.f, 0.f}, {0.f, 0.f, 3.f}};

}  // namespace config

__device__ float devData = 1.5f;
__device__ int counters[8] = {1, 2, 3};
__device__ float* pointer;
__managed__ int managed_sum = 5;
__managed__ config::Layer managed_layer;
static __device__ unsigned long long file_static = 1ull << 40;

class Fatal {
 public:
  void operator=(cudaError_t e) const {
    if (e != cudaSuccess) {
      std::cerr << cudaGetErrorName(e) << std::endl;
      std::exit(1);
    }
  }
} static const cu;

__global__ void use_constants(double* out) {
  using namespace config;
  double sum = answer;
  for (int l = 0; l < params.count; l++) {
    const Layer& layer = params.layers[l];
    sum += layer.width * layer.height;
    for (float w : layer.weight) sum += w;
  }
  sum *= params.scale;
  sum += axes[threadIdx.x % 3].x + axes[threadIdx.x % 3].y + axes[threadIdx.x % 3].z;
  for (const char* c = params.name; *c; c++) sum += *c == 'a' ? 1000 : 0;
  out[threadIdx.x] = sum + table[threadIdx.x];
}

__global__ void checkGlobalVariable() {
  if (threadIdx.x == 0) devData += 2.0f;
  atomicAdd(&counters[threadIdx.x % 8], 1);
  if (threadIdx.x == 0) {
    file_static += 7;
    pointer[3] = devData;
  }
}

__global__ void use_managed(int n) {
  atomicAdd(&managed_sum, threadIdx.x);
  if (threadIdx.x < 4) managed_layer.weight[threadIdx.x] = managed_layer.width * n + threadIdx.x;
}

int main() {
  int bad = 0;
  config::Parameters p = {};
  p.count = 3;
  for (int l = 0; l < 3; l++) p.layers[l] = {l + 2, 10 * l, {0.5f * l, 1, 2, 3}};
  p.scale = 0.25;
  std::snprintf(p.name, sizeof(p.name), "banana");
  cu = cudaMemcpyToSymbol(config::params, &p, sizeof(p));

  // Half of the table now, half at an offset, one element more in between
  std::array<float, 64> table;
  for (int i = 0; i < 64; i++) table[i] = i * 0.125f;
  cu = cudaMemcpyToSymbol(config::table, table.data(), 32 * sizeof(float));
  cu = cudaMemcpyToSymbol(config::table, table.data() + 32, 32 * sizeof(float), 32 * sizeof(float),
                          cudaMemcpyHostToDevice);
  table[10] = 99.0f;
  cu = cudaMemcpyToSymbolAsync(config::table, &table[10], sizeof(float), 10 * sizeof(float), cudaMemcpyHostToDevice, 0);

  double* out;
  cu = cudaMallocManaged(&out, 64 * sizeof(double));
  use_constants<<<1, 64>>>(out);
  cu = cudaDeviceSynchronize();
  double base = 42;
  for (auto& layer : p.layers) base += layer.width * layer.height + layer.weight[0] + 6;
  base *= 0.25;
  for (int i = 0; i < 64; i++) bad += out[i] != base + (i % 3 + 1) + 3000 + table[i];
  std::cout << "constants: " << out[0] << ' ' << out[10] << ' ' << out[63] << '\n';

  // Only a part of the struct is changed.
  double new_scale = 2.0;
  cu = cudaMemcpyToSymbol(config::params, &new_scale, sizeof(double), offsetof(config::Parameters, scale));
  config::Parameters back;
  cu = cudaMemcpyFromSymbol(&back, config::params, sizeof(back));
  bad += back.scale != 2.0 || back.layers[2].width != 4 || std::string(back.name) != "banana";
  int answer = 0;
  cu = cudaMemcpyFromSymbol(&answer, config::answer, sizeof(int));
  bad += answer != 42;

  float value = 0, *address = nullptr;
  size_t size = 0;
  cu = cudaMemcpyToSymbol(pointer, &(address = nullptr), sizeof(float*));
  cu = cudaMalloc(&address, 4 * sizeof(float));
  cu = cudaMemcpyToSymbol(pointer, &address, sizeof(address));
  checkGlobalVariable<<<1, 20>>>();
  cu = cudaMemcpyFromSymbol(&value, devData, sizeof(float));
  float through = 0;
  cu = cudaMemcpy(&through, address + 3, sizeof(float), cudaMemcpyDeviceToHost);
  cu = cudaFree(address);
  bad += value != 3.5f || through != 3.5f;

  void* symbol;
  cu = cudaGetSymbolAddress(&symbol, counters);
  cu = cudaGetSymbolSize(&size, counters);
  cu = cudaMemset(static_cast<int*>(symbol) + 7, 0, sizeof(int));
  std::array<int, 8> counts;
  cu = cudaMemcpyFromSymbol(counts.data(), counters, size);
  const std::array<int, 8> expected = {4, 5, 6, 3, 2, 2, 2, 0};
  bad += size != sizeof(counts) || counts != expected;
  unsigned long long wide;
  cu = cudaMemcpyFromSymbol(&wide, file_static, sizeof(wide));
  bad += wide != (1ull << 40) + 7;
  std::ostringstream line;
  for (int c : counts) line << c << ' ';
  std::cout << "device variables: " << value << ", " << line.str() << wide << '\n';

  managed_layer.width = 3;
  use_managed<<<1, 10>>>(100);
  cu = cudaDeviceSynchronize();
  bad += managed_sum != 50;
  for (int i = 0; i < 4; i++) bad += managed_layer.weight[i] != 300.0f + i;
  managed_sum = 1;  // the host writes, the device reads
  use_managed<<<1, 3>>>(0);
  cu = cudaDeviceSynchronize();
  bad += managed_sum != 4;
  std::cout << "managed: " << managed_sum << ", " << managed_layer.weight[2] << '\n';

  cu = cudaFree(out);
  std::cout << (bad ? "FAILED" : "PASSED") << std::endl;
  return bad ? 1 : 0;
}
