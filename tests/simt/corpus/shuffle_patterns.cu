// title: shuffles: broadcast, shifts, wrapping shift, butterfly, arrays in registers, and a transpose between lanes
// features: warp_shuffles, device_functions, templates

#include <stdio.h>
#include <cuda_runtime.h>

#define BDIMX 16
#define SEGM 4

#define CHECK(call)                                                                                     \
  {                                                                                                     \
    const cudaError_t error = call;                                                                     \
    if (error != cudaSuccess) {                                                                         \
      printf("Error: %s:%d, %s\n", __FILE__, __LINE__, cudaGetErrorString(error));                      \
      return 1;                                                                                         \
    }                                                                                                   \
  }

static void printData(const char *name, const int *in, int size) {
  printf("%-18s", name);
  for (int i = 0; i < size; i++) printf("%2d ", in[i]);
  printf("\n");
}

#define MASK 0xffffu

__global__ void test_shfl_broadcast(int *d_out, int *d_in, int const srcLane) {
  int value = d_in[threadIdx.x];
  value = __shfl_sync(MASK, value, srcLane, BDIMX);
  d_out[threadIdx.x] = value;
}
__global__ void test_shfl_up(int *d_out, int *d_in, unsigned int const delta) {
  d_out[threadIdx.x] = __shfl_up_sync(MASK, d_in[threadIdx.x], delta, BDIMX);
}
__global__ void test_shfl_down(int *d_out, int *d_in, unsigned int const delta) {
  d_out[threadIdx.x] = __shfl_down_sync(MASK, d_in[threadIdx.x], delta, BDIMX);
}
__global__ void test_shfl_wrap(int *d_out, int *d_in, int const offset) {
  d_out[threadIdx.x] = __shfl_sync(MASK, d_in[threadIdx.x], threadIdx.x + offset, BDIMX);
}
__global__ void test_shfl_xor(int *d_out, int *d_in, int const mask) {
  d_out[threadIdx.x] = __shfl_xor_sync(MASK, d_in[threadIdx.x], mask, BDIMX);
}

__global__ void test_shfl_xor_array(int *d_out, int *d_in, int const mask) {
  int idx = threadIdx.x * SEGM;
  int value[SEGM];
  for (int i = 0; i < SEGM; i++) value[i] = d_in[idx + i];
  value[0] = __shfl_xor_sync(0xf, value[0], mask, BDIMX);
  value[1] = __shfl_xor_sync(0xf, value[1], mask, BDIMX);
  value[2] = __shfl_xor_sync(0xf, value[2], mask, BDIMX);
  value[3] = __shfl_xor_sync(0xf, value[3], mask, BDIMX);
  for (int i = 0; i < SEGM; i++) d_out[idx + i] = value[i];
}

__inline__ __device__ void swap(int *value, int laneIdx, int mask, int firstIdx, int secondIdx) {
  bool pred = ((laneIdx / mask + 1) == 1);
  if (pred) {
    int tmp = value[firstIdx];
    value[firstIdx] = value[secondIdx];
    value[secondIdx] = tmp;
  }
  value[secondIdx] = __shfl_xor_sync(0xf, value[secondIdx], mask, BDIMX);
  if (pred) {
    int tmp = value[firstIdx];
    value[firstIdx] = value[secondIdx];
    value[secondIdx] = tmp;
  }
}

__global__ void test_shfl_swap(int *d_out, int *d_in, int const mask, int firstIdx, int secondIdx) {
  int idx = threadIdx.x * SEGM;
  int value[SEGM];
  for (int i = 0; i < SEGM; i++) value[i] = d_in[idx + i];
  swap(value, threadIdx.x, mask, firstIdx, secondIdx);
  for (int i = 0; i < SEGM; i++) d_out[idx + i] = value[i];
}

// 32 x 32 values, a column in the registers of each lane: exchange of halves, quarters, ...
template <typename T>
__global__ void transpose_in_registers(T *data) {
  T column[32];
  const int lane = threadIdx.x;
#pragma unroll
  for (int r = 0; r < 32; r++) column[r] = data[r * 32 + lane];
#pragma unroll
  for (int half = 16; half > 0; half /= 2)
#pragma unroll
    for (int r = 0; r < 32; r++)
      if ((r & half) == 0) {
        const bool upper = lane & half;
        T give = upper ? column[r] : column[r + half];
        T got = __shfl_xor_sync(0xffffffffu, give, half);
        if (upper)
          column[r] = got;
        else
          column[r + half] = got;
      }
#pragma unroll
  for (int r = 0; r < 32; r++) data[r * 32 + lane] = column[r];
}

template <typename T>
static int testTranspose(const char *type) {
  T h[1024], *d;
  for (int i = 0; i < 1024; i++) h[i] = T(i) * 3;
  CHECK(cudaMalloc(&d, sizeof(h)));
  CHECK(cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice));
  transpose_in_registers<<<1, 32>>>(d);
  CHECK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(d));
  int wrong = 0;
  for (int i = 0; i < 1024; i++) wrong += h[i] != T(i % 32 * 32 + i / 32) * 3;
  printf("transpose of %s: %d wrong\n", type, wrong);
  return wrong;
}

int main(int argc, char **argv) {
  const int nElem = BDIMX;
  int h_inData[BDIMX], h_outData[BDIMX], wrong = 0;
  for (int i = 0; i < nElem; i++) h_inData[i] = i;
  printData("initialData", h_inData, nElem);
  size_t nBytes = nElem * sizeof(int);
  int *d_inData, *d_outData;
  CHECK(cudaMalloc((int **)&d_inData, nBytes));
  CHECK(cudaMalloc((int **)&d_outData, nBytes));
  CHECK(cudaMemcpy(d_inData, h_inData, nBytes, cudaMemcpyHostToDevice));

#define TEST(name, grid_block, expected_of_i, ...)                                    \
  do {                                                                                \
    name<<<1, grid_block>>>(d_outData, d_inData, __VA_ARGS__);                        \
    CHECK(cudaGetLastError());                                                        \
    CHECK(cudaMemcpy(h_outData, d_outData, nBytes, cudaMemcpyDeviceToHost));          \
    printData(#name + 5, h_outData, nElem);                                           \
    for (int i = 0; i < nElem; i++) wrong += h_outData[i] != (expected_of_i);         \
  } while (0)

  TEST(test_shfl_broadcast, BDIMX, 2, 2);
  TEST(test_shfl_up, BDIMX, i < 2 ? i : i - 2, 2);
  TEST(test_shfl_down, BDIMX, i > 13 ? i : i + 2, 2);
  TEST(test_shfl_wrap, BDIMX, (i + 2) % 16, 2);
  TEST(test_shfl_wrap, BDIMX, (i + 14) % 16, -2);
  TEST(test_shfl_xor, BDIMX, i ^ 1, 1);
  TEST(test_shfl_xor_array, BDIMX / SEGM, i ^ 4, 1);
  // Element 0 of the lower lane changes places with element 3 of the upper.
  TEST(test_shfl_swap, BDIMX / SEGM, i == 0 ? 7 : i == 7 ? 0 : i == 11 ? 15 : i == 15 ? 11 : i, 1, 0, 3);

  wrong += testTranspose<int>("int") + testTranspose<float>("float") + testTranspose<double>("double");
  CHECK(cudaFree(d_inData));
  CHECK(cudaFree(d_outData));
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
