// check: sound
// near: out_of_bounds
// what: a thread's own array, indexed at run time, with room for the longest number

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void is_palindrome(const unsigned* numbers, int* result, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned char digits[10];
  int length = 0;
  for (unsigned rest = numbers[i]; rest > 0; rest /= 10) digits[length++] = rest % 10;
  bool same = true;
  for (int k = 0; k < length / 2; k++) same = same && digits[k] == digits[length - 1 - k];
  result[i] = same;
}

int main() {
  const int n = 6;
  unsigned numbers[n] = {7, 1221, 1234, 12344321, 1234554321u, 4000000004u}, *d_numbers;
  int result[n], *d_result;
  CHECK(cudaMalloc(&d_numbers, sizeof(numbers)));
  CHECK(cudaMalloc(&d_result, sizeof(result)));
  CHECK(cudaMemcpy(d_numbers, numbers, sizeof(numbers), cudaMemcpyHostToDevice));
  is_palindrome<<<2, 4>>>(d_numbers, d_result, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(result, d_result, sizeof(result), cudaMemcpyDeviceToHost));
  for (int r : result) printf("%d ", r);
  printf("\n");
  CHECK(cudaFree(d_numbers));
  CHECK(cudaFree(d_result));
  return 0;
}
