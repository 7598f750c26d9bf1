// What makes kernels of beginners slow: bank conflicts, few blocks, needless barriers, values read again and again.
// sizes: 14 24 (log2 of the elements)
#include "../micro/micro.h"

// The products of the rows of a 32 x 32 tile with each other: the lanes read down a column.
__global__ void gram_conflicts(float* x, float* y) {
  __shared__ float tile[32][32];
  int tx = threadIdx.x, ty = threadIdx.y;
  int i = blockIdx.x * 1024 + ty * 32 + tx;
  tile[ty][tx] = x[i];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < 32; k++) sum += tile[tx][k] * tile[ty][k];
  y[i] = sum;
}

__global__ void few_blocks(float* x, float* y, float a, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

// Every thread uses only what it wrote itself.
__global__ void needless_barriers(float* x, float* y, int n) {
  __shared__ float mine[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  mine[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int k = 0; k < 16; k++) {
    mine[threadIdx.x] = mine[threadIdx.x] * 0.9f + 0.1f;
    __syncthreads();
  }
  if (i < n) y[i] = mine[threadIdx.x];
  __syncthreads();
}

// The sum grows in memory, and what is added is read from memory each time.
__global__ void read_again(float* x, float* weights, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = 0.0f;
  for (int k = 0; k < 12; k++) {
    y[i] += x[i] * weights[k];
    if (y[i] > 100.0f) y[i] = 100.0f;
  }
}

// The middle one of nine neighbours, by sorting them in an array of the thread's own.
__global__ void median_of_nine(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 4 || i >= n - 4) return;
  float window[9];
  for (int k = 0; k < 9; k++) {
    float v = x[i - 4 + k];
    int at = k;
    while (at > 0 && window[at - 1] > v) {
      window[at] = window[at - 1];
      at--;
    }
    window[at] = v;
  }
  y[i] = window[4];
}

// Every thread has 16 elements in a row.
__global__ void chunk_a_thread(float* x, float* y, int n) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * 16;
  for (int i = first; i < first + 16 && i < n; i++) y[i] = sqrtf(x[i]) + 1.0f;
}

// Numbers of three colours after one another, the way that cameras give them, become a grey one.
__global__ void grey(unsigned char* rgb, unsigned char* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 0.299 * rgb[3 * i] + 0.587 * rgb[3 * i + 1] + 0.114 * rgb[3 * i + 2];
}

// Each warp does four things, a lane in four each.
__global__ void four_ways(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  if (i % 4 == 0)
    for (int k = 0; k < 8; k++) v = sinf(v);
  else if (i % 4 == 1)
    for (int k = 0; k < 8; k++) v = expf(-v);
  else if (i % 4 == 2)
    for (int k = 0; k < 8; k++) v = sqrtf(v + 1.0f);
  else
    for (int k = 0; k < 8; k++) v = 1.0f / (v + 0.5f);
  y[i] = v;
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 14);
  float *x = memory<float>(n), *y = memory<float>(n), *weights = memory<float>(12);
  std::vector<float> host(std::min(n, 1 << 20));
  unsigned state = 5;
  for (float& v : host) {
    state = state * 1664525u + 1013904223u;
    v = (state >> 8) / 16777216.0f;
  }
  for (size_t i = 0; i < n; i += host.size())
    CHECK(cudaMemcpy(x + i, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  measure("bank conflicts", [&] { gram_conflicts<<<n / 1024, dim3(32, 32)>>>(x, y); });
  measure("few blocks", [&] { few_blocks<<<16, 256>>>(x, y, 1e-3f, n); });
  measure("needless barriers", [&] { needless_barriers<<<n / 256, 256>>>(x, y, n); });
  measure("read again", [&] { read_again<<<n / 256, 256>>>(x, weights, y, n); });
  measure("median of nine", [&] { median_of_nine<<<n / 128, 128>>>(x, y, n); });
  measure("chunk a thread", [&] { chunk_a_thread<<<n / 16 / 256, 256>>>(x, y, n); });
  measure("grey, in double", [&] { grey<<<n / 256, 256>>>((unsigned char*)x, (unsigned char*)y, n); });
  measure("four ways", [&] { four_ways<<<n / 128, 128>>>(x, y, n); });
}
