// title: Fast Walsh transform and dyadic convolution: large strides in global memory, small ones in shared memory
// features: dynamic_shared_memory, cooperative_groups
// args: 12

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

#define CHECKED(f) \
  { cudaError_t r = (f); if (r != cudaSuccess) { fprintf(stderr, "%s: %s\n", #f, cudaGetErrorString(r)); exit(EXIT_FAILURE); } }

#define ELEMENTARY_LOG2 9

__global__ void fwtShared(float *out, const float *in, int log2n) {
  cg::thread_block cta = cg::this_thread_block();
  extern __shared__ float s[];
  const int n = 1 << log2n, base = blockIdx.x << log2n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = in[base + i];
  for (int stride = n / 4; stride > 0; stride >>= 2) {  // radix 4
    int lo = threadIdx.x & (stride - 1), i0 = ((threadIdx.x - lo) << 2) + lo;
    cg::sync(cta);
    float d0 = s[i0], d1 = s[i0 + stride], d2 = s[i0 + 2 * stride], d3 = s[i0 + 3 * stride], t;
    t = d0, d0 = d0 + d2, d2 = t - d2;
    t = d1, d1 = d1 + d3, d3 = t - d3;
    t = d0, s[i0] = d0 + d1, s[i0 + stride] = t - d1;
    t = d2, s[i0 + 2 * stride] = d2 + d3, s[i0 + 3 * stride] = t - d3;
  }
  if (log2n & 1) {  // one stage of radix 2 is left
    cg::sync(cta);
    for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
      float a = s[2 * i], b = s[2 * i + 1];
      s[2 * i] = a + b;
      s[2 * i + 1] = a - b;
    }
  }
  cg::sync(cta);
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[base + i] = s[i];
}

__global__ void fwtGlobal(float *out, const float *in, int stride) {
  int pos = blockIdx.x * blockDim.x + threadIdx.x;
  int lo = pos & (stride - 1), i0 = ((pos - lo) << 2) + lo;
  float d0 = in[i0], d1 = in[i0 + stride], d2 = in[i0 + 2 * stride], d3 = in[i0 + 3 * stride], t;
  t = d0, d0 += d2, d2 = t - d2;
  t = d1, d1 += d3, d3 = t - d3;
  t = d0, out[i0] = d0 + d1, out[i0 + stride] = t - d1;
  t = d2, out[i0 + 2 * stride] = d2 + d3, out[i0 + 3 * stride] = t - d3;
}

__global__ void modulate(float *a, const float *b, int n) {
  float scale = 1.0f / n;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) a[i] *= b[i] * scale;
}

static void fwt(float *d, int log2n) {
  int n = 1 << log2n, m = log2n;
  for (; m > ELEMENTARY_LOG2; m -= 2) {
    fwtGlobal<<<n / 4 / 128, 128>>>(d, d, 1 << (m - 2));
    CHECKED(cudaGetLastError());
  }
  fwtShared<<<n >> m, (1 << m) / 4, (1 << m) * sizeof(float)>>>(d, d, m);
  CHECKED(cudaGetLastError());
}

int main(int argc, char **argv) {
  int log2n = argc > 1 ? atoi(argv[1]) : 12;
  if (log2n < 10) log2n = 10;
  const int n = 1 << log2n, kernelLog2 = 6;
  float *data = (float *)malloc(n * sizeof(float)), *filter = (float *)calloc(n, sizeof(float));
  float *got = (float *)malloc(n * sizeof(float)), *d_data, *d_filter;
  for (int i = 0; i < n; i++) data[i] = (float)((i * 193 + i / 7) % 16) - 8;
  for (int i = 0; i < (1 << kernelLog2); i++) filter[i] = (float)(i % 5) - 2;
  CHECKED(cudaMalloc((void **)&d_data, n * sizeof(float)));
  CHECKED(cudaMalloc((void **)&d_filter, n * sizeof(float)));
  CHECKED(cudaMemcpy(d_data, data, n * sizeof(float), cudaMemcpyHostToDevice));
  CHECKED(cudaMemcpy(d_filter, filter, n * sizeof(float), cudaMemcpyHostToDevice));
  fwt(d_data, log2n);
  CHECKED(cudaMemcpy(got, d_data, n * sizeof(float), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int k = 0; k < n; k += 97) {  // some coefficients from the definition: the sign is the parity of i & k
    double sum = 0;
    for (int i = 0; i < n; i++) sum += __builtin_parity(i & k) ? -data[i] : data[i];
    wrong += sum != got[k];
  }
  printf("coefficient 97: %.0f, wrong coefficients: %d\n", got[97], wrong);
  fwt(d_filter, log2n);
  modulate<<<8, 128>>>(d_data, d_filter, n);
  fwt(d_data, log2n);
  CHECKED(cudaMemcpy(got, d_data, n * sizeof(float), cudaMemcpyDeviceToHost));
  double worst = 0, sum = 0;
  for (int i = 0; i < n; i++) {
    double want = 0;
    for (int j = 0; j < (1 << kernelLog2); j++) want += (double)data[i ^ j] * filter[j];
    worst = fmax(worst, fabs(want - got[i]));
    sum += got[i] * (i % 3);
  }
  printf("dyadic convolution: weighted sum %.0f\n", sum);
  CHECKED(cudaFree(d_data));
  CHECKED(cudaFree(d_filter));
  free(data);
  free(filter);
  free(got);
  int ok = wrong == 0 && worst < 1e-2;
  puts(ok ? "PASSED" : "FAILED");
  return !ok;
}
