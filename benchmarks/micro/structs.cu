// Four numbers a thread as an array of structures, aligned and not, and as four arrays; and three numbers a thread.
// sizes: 12 25 (log2 of the threads)
#include "micro.h"

struct Four {
  float x, y, z, w;
};
struct alignas(16) Aligned {
  float x, y, z, w;
};
struct Three {
  float x, y, z;
};

template <class T>
__global__ void structures(const T* in, float* out) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  const T v = in[i];
  out[i] = v.x + v.y + v.z + v.w;
}

__global__ void threes(const Three* in, float* out) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  const Three v = in[i];
  out[i] = v.x + v.y + v.z;
}

__global__ void one_of_four(const Four* in, float* out) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  out[i] = in[i].z;
}

__global__ void arrays(const float* in, float* out, size_t n) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  out[i] = in[i] + in[n + i] + in[2 * n + i] + in[3 * n + i];
}

int main(int argc, char** argv) {
  const size_t n = size_t(1) << size_of_run(argc, argv, 12);
  const unsigned blocks = n / 256;
  float *in = memory<float>(4 * n), *out = memory<float>(n);
  measure("structures of 4", [&] { structures<<<blocks, 256>>>((Four*)in, out); });
  measure("aligned structures of 4", [&] { structures<<<blocks, 256>>>((Aligned*)in, out); });
  measure("structures of 3", [&] { threes<<<blocks, 256>>>((Three*)in, out); });
  measure("one member of 4", [&] { one_of_four<<<blocks, 256>>>((Four*)in, out); });
  measure("four arrays", [&] { arrays<<<blocks, 256>>>(in, out, n); });
}
