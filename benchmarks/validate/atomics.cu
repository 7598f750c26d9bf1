// One warp's atomic operation at given addresses: what benchmarks/validate/atomics.py profiles. Arguments: a file of lines "operation
// offset0 … offset31", offsets in bytes, -1 for a lane that is not there.
#include <cstdio>

#include <cuda_runtime.h>

constexpr size_t BYTES = 64 << 20;

template <int OPERATION>
__global__ void operate(char* memory, const long* offset, float* result) {
  const long at = offset[threadIdx.x];
  if (at < 0) return;
  if (OPERATION == 0) atomicAdd((float*)(memory + at), 1.0f);
  if (OPERATION == 1) atomicMax((int*)(memory + at), (int)threadIdx.x);
  if (OPERATION == 2) atomicAdd((double*)(memory + at), 1.0);
  if (OPERATION == 3) result[threadIdx.x] = atomicAdd((float*)(memory + at), 1.0f);
}

int main(int argc, char** argv) {
  FILE* patterns = fopen(argc > 1 ? argv[1] : "", "r");
  if (!patterns) {
    fprintf(stderr, "no file of patterns\n");
    return 2;
  }
  char* memory;
  long *offset, lanes[32];
  float* result;
  if (cudaMalloc(&memory, BYTES) || cudaMalloc(&offset, sizeof lanes) || cudaMalloc(&result, 128) ||
      cudaMemset(memory, 0, BYTES))
    return 1;
  for (int operation; fscanf(patterns, "%d", &operation) == 1;) {
    for (long& lane : lanes)
      if (fscanf(patterns, "%ld", &lane) != 1) return 1;
    cudaMemcpy(offset, lanes, sizeof lanes, cudaMemcpyHostToDevice);
    if (operation == 0) operate<0><<<1, 32>>>(memory, offset, result);
    if (operation == 1) operate<1><<<1, 32>>>(memory, offset, result);
    if (operation == 2) operate<2><<<1, 32>>>(memory, offset, result);
    if (operation == 3) operate<3><<<1, 32>>>(memory, offset, result);
  }
  fclose(patterns);
  const cudaError_t error = cudaDeviceSynchronize();
  if (error) fprintf(stderr, "%s\n", cudaGetErrorString(error));
  return error != cudaSuccess;
}
