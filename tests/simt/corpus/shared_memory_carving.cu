// title: several arrays in one dynamic shared memory, declared in either order of words, and spaced launch brackets
// features: dynamic_shared_memory, function_attributes, templates, shared_word_order, spaced_launches, alignment

#include <stdio.h>
#include <stdlib.h>

// clang-format off
#define CU(x) do { cudaError_t e = (x); if (e != cudaSuccess) { \
  fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)

extern __shared__ int file_scope[];

__global__ void dynamicReverse(int *d, int n)
{
  __shared__ extern int s[];
  int t = threadIdx.x;
  int tr = n-t-1;
  s[t] = d[t];
  __syncthreads();
  d[t] = s[tr];
}

__global__ void staticReverse(int *d, int n)
{
  __shared__ int s[64];
  int t = threadIdx.x;
  int tr = n-t-1;
  s[t] = d[t];
  __syncthreads();
  d[t] = s[tr];
}

// ints, floats and chars, in this order, in one piece
__global__ void threeArrays(const int *in, float *out, int nI, int nF, int nC)
{
  extern __shared__ int s[];
  int *integerData = s;
  float *floatData = (float*)&integerData[nI];
  char *charData = (char*)&floatData[nF];
  for (int i = threadIdx.x; i < nI; i += blockDim.x) integerData[i] = in[i];
  for (int i = threadIdx.x; i < nF; i += blockDim.x) floatData[i] = 0.5f * in[i % nI];
  for (int i = threadIdx.x; i < nC; i += blockDim.x) charData[i] = (char)(in[i % nI] % 100);
  __syncthreads();
  int t = threadIdx.x;
  out[t] = integerData[nI - 1 - t % nI] + floatData[nF - 1 - t % nF] + charData[nC - 1 - t % nC];
}

// doubles first, since they need the strictest alignment
__global__ void aligned(const int *in, double *out)
{
  extern __shared__ __align__(16) unsigned char raw[];
  double *d = reinterpret_cast<double *>(raw);
  short *h = reinterpret_cast<short *>(d + blockDim.x);
  d[threadIdx.x] = in[threadIdx.x] / 4.0;
  h[threadIdx.x] = (short)in[threadIdx.x];
  __syncthreads();
  unsigned other = blockDim.x - 1 - threadIdx.x;
  out[threadIdx.x] = d[other] + h[other];
}

// An extern array of a template parameter's type needs one name per type.
template <class T> struct SharedMemory {
  __device__ inline operator T *() { extern __shared__ int __smem[]; return (T *)__smem; }
  __device__ inline operator const T *() const { extern __shared__ int __smem[]; return (T *)__smem; }
};

template <class T> __global__ void rotate(T *data)
{
  T *sdata = SharedMemory<T>();
  sdata[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = sdata[(threadIdx.x + 1) % blockDim.x];
}

__device__ void put(int value) { file_scope[threadIdx.x] = value; }
__global__ void through_functions(int *d) { put(d[threadIdx.x]); __syncthreads(); d[threadIdx.x] = file_scope[threadIdx.x ^ 1]; }

__global__ void large(int *out, int words)
{
  extern __shared__ int s[];
  for (int i = threadIdx.x; i < words; i += blockDim.x) s[i] = i;
  __syncthreads();
  int sum = 0;
  for (int i = threadIdx.x; i < words; i += blockDim.x) sum += s[words - 1 - i];
  atomicAdd(out, sum);
}

int main(void)
{
  const int n = 64;
  int a[n], r[n], d[n], wrong = 0;
  for (int i = 0; i < n; i++) a[i] = i * 3 % 64;
  for (int i = 0; i < n; i++) r[i] = a[n - i - 1];
  int *d_d; float *d_f; double *d_g;
  CU(cudaMalloc(&d_d, n * sizeof(int)));
  CU(cudaMalloc(&d_f, n * sizeof(float)));
  CU(cudaMalloc(&d_g, n * sizeof(double)));

  CU(cudaMemcpy(d_d, a, n*sizeof(int), cudaMemcpyHostToDevice));
  staticReverse << <1, n >> > (d_d, n);
  CU(cudaMemcpy(d, d_d, n*sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) wrong += d[i] != r[i];
  printf("static: %d wrong\n", wrong);

  CU(cudaMemcpy(d_d, a, n*sizeof(int), cudaMemcpyHostToDevice));
  dynamicReverse <<< 1, n, n*sizeof(int) >>> (d_d, n);
  CU(cudaMemcpy(d, d_d, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) wrong += d[i] != r[i];
  printf("dynamic: %d wrong\n", wrong);

  CU(cudaMemcpy(d_d, a, n*sizeof(int), cudaMemcpyHostToDevice));
  int nI = 24, nF = 17, nC = 9;
  threeArrays<<<dim3(1), dim3(n), nI * sizeof(int) + nF * sizeof(float) + nC * sizeof(char)>>>(d_d, d_f, nI, nF, nC);
  float f[n]; double g[n];
  CU(cudaMemcpy(f, d_f, sizeof(f), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i++)
    wrong += f[i] != a[nI - 1 - i % nI] + 0.5 * a[nF - 1 - i % nF] + a[nC - 1 - i % nC] % 100;
  printf("three arrays: %.1f %.1f, %d wrong\n", f[0], f[63], wrong);

  aligned << < 1, n, n * (sizeof(double) + sizeof(short)) >> >(d_d, d_g);
  CU(cudaMemcpy(g, d_g, sizeof(g), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) wrong += g[i] != 1.25 * r[i];
  printf("aligned: %.2f %.2f, %d wrong\n", g[0], g[1], wrong);

  rotate<double> <<<1, n, n * sizeof(double)>>>(d_g);
  rotate<int><<<1, n, n * sizeof(int)>>>(d_d);
  through_functions<<<1, n, n * sizeof(int)>>>(d_d);
  CU(cudaMemcpy(g, d_g, sizeof(g), cudaMemcpyDeviceToHost));
  CU(cudaMemcpy(d, d_d, sizeof(d), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) wrong += g[i] != 1.25 * r[(i + 1) % n] || d[i] != a[((i ^ 1) + 1) % n];
  printf("rotated: %.2f %d, %d wrong\n", g[0], d[0], wrong);

  // More than 48 KiB must be asked for.
  const int words = 15000;
  int *sum, zero = 0, got;
  CU(cudaMalloc(&sum, sizeof(int)));
  CU(cudaMemcpy(sum, &zero, sizeof(int), cudaMemcpyHostToDevice));
  large<<<1, 128, words * sizeof(int)>>>(sum, words);
  int refused = cudaGetLastError() != cudaSuccess;
  CU(cudaFuncSetAttribute(large, cudaFuncAttributeMaxDynamicSharedMemorySize, words * sizeof(int)));
  large<<<1, 128, words * sizeof(int)>>>(sum, words);
  CU(cudaGetLastError());
  CU(cudaMemcpy(&got, sum, sizeof(int), cudaMemcpyDeviceToHost));
  printf("60000 bytes: %s at first, then %d\n", refused ? "refused" : "accepted", got);
  wrong += !refused || got != words / 2 * (words - 1);

  CU(cudaFree(d_d)); CU(cudaFree(d_f)); CU(cudaFree(d_g)); CU(cudaFree(sum));
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
