// title: A nine-point stencil with tiles, a triad in pieces, and a reduction and a scan of the results
// features: shared_memory, templates, streams, pinned_memory, warp_shuffles
// args: 96 80 5

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace std;

#define SAFE_CALL(x)                                              \
  {                                                               \
    cudaError_t err = x;                                          \
    if (err != cudaSuccess) {                                     \
      printf("%s in line %d\n", cudaGetErrorString(err), __LINE__); \
      exit(1);                                                    \
    }                                                             \
  }

template <class T, int LROWS, int LCOLS>
__global__ void stencil9(const T* data, T* out, int rows, int cols, T center, T cardinal, T diagonal) {
  __shared__ T tile[LROWS + 2][LCOLS + 2];
  const int r0 = blockIdx.y * LROWS, c0 = blockIdx.x * LCOLS;
  for (int k = threadIdx.y * LCOLS + threadIdx.x; k < (LROWS + 2) * (LCOLS + 2); k += LROWS * LCOLS) {
    int r = r0 + k / (LCOLS + 2), c = c0 + k % (LCOLS + 2);  // the array has a halo of one cell
    tile[k / (LCOLS + 2)][k % (LCOLS + 2)] = r < rows + 2 && c < cols + 2 ? data[r * (cols + 2) + c] : T(0);
  }
  __syncthreads();
  int r = r0 + threadIdx.y, c = c0 + threadIdx.x, i = threadIdx.y + 1, j = threadIdx.x + 1;
  if (r >= rows || c >= cols) return;
  T plus = tile[i - 1][j] + tile[i + 1][j] + tile[i][j - 1] + tile[i][j + 1];
  T times = tile[i - 1][j - 1] + tile[i - 1][j + 1] + tile[i + 1][j - 1] + tile[i + 1][j + 1];
  out[(r + 1) * (cols + 2) + c + 1] = center * tile[i][j] + cardinal * plus + diagonal * times;
}

template <class T>
bool stencil(const char* name, int rows, int cols, int iterations, double tolerance) {
  const size_t size = (size_t)(rows + 2) * (cols + 2);
  vector<T> a(size), got(size);
  for (size_t i = 0; i < size; i++) a[i] = T((i * 29) % 64) / 64;
  T *d1, *d2;
  SAFE_CALL(cudaMalloc(&d1, size * sizeof(T)));
  SAFE_CALL(cudaMalloc(&d2, size * sizeof(T)));
  SAFE_CALL(cudaMemcpy(d1, a.data(), size * sizeof(T), cudaMemcpyHostToDevice));
  SAFE_CALL(cudaMemcpy(d2, d1, size * sizeof(T), cudaMemcpyDeviceToDevice));
  for (int t = 0; t < iterations; t++) {
    stencil9<T, 8, 32><<<dim3((cols + 31) / 32, (rows + 7) / 8), dim3(32, 8)>>>(d1, d2, rows, cols, T(0.25), T(0.15), T(0.0375));
    SAFE_CALL(cudaGetLastError());
    swap(d1, d2);
  }
  SAFE_CALL(cudaMemcpy(got.data(), d1, size * sizeof(T), cudaMemcpyDeviceToHost));
  SAFE_CALL(cudaFree(d1));
  SAFE_CALL(cudaFree(d2));
  vector<double> u(a.begin(), a.end()), v(u);
  for (int t = 0; t < iterations; t++) {
    for (int r = 1; r <= rows; r++)
      for (int c = 1; c <= cols; c++) {
        const double* p = &u[(size_t)r * (cols + 2) + c];
        const double *n = p - (cols + 2), *s = p + (cols + 2);
        v[(size_t)r * (cols + 2) + c] = (double)T(0.25) * p[0] + (double)T(0.15) * (n[0] + s[0] + p[-1] + p[1]) +
                                        (double)T(0.0375) * (n[-1] + n[1] + s[-1] + s[1]);
      }
    swap(u, v);
  }
  double worst = 0, sum = 0;
  for (size_t i = 0; i < size; i++) worst = fmax(worst, fabs(u[i] - got[i])), sum += got[i];
  printf("stencil %-6s sum %.2f\n", name, sum);
  return worst < tolerance;
}

__global__ void triad(const float* A, const float* B, float* C, float s, int n) {
  int g = threadIdx.x + blockIdx.x * blockDim.x;
  if (g < n) C[g] = A[g] + s * B[g];
}

__device__ float scanWarp(float v) {
  for (int d = 1; d < 32; d *= 2) {
    float o = __shfl_up_sync(0xffffffff, v, d);
    if ((threadIdx.x & 31) >= d) v += o;
  }
  return v;
}

// Inclusive sums within each block of 256.
__global__ void scanBlocks(const float* x, float* out, int n) {
  __shared__ float warps[8];
  int i = blockIdx.x * 256 + threadIdx.x, w = threadIdx.x / 32;
  float v = scanWarp(i < n ? x[i] : 0);
  if (threadIdx.x % 32 == 31) warps[w] = v;
  __syncthreads();
  if (w == 0) {
    float t = scanWarp(threadIdx.x < 8 ? warps[threadIdx.x] : 0);
    if (threadIdx.x < 8) warps[threadIdx.x] = t;
  }
  __syncthreads();
  if (i < n) out[i] = v + (w ? warps[w - 1] : 0);
}

bool triadInPieces(int n, int piece) {
  float *h[3], *d[2][3], *sums;
  cudaStream_t streams[2];
  for (auto& p : h) SAFE_CALL(cudaMallocHost(&p, n * sizeof(float)));
  for (int i = 0; i < n; i++) h[0][i] = (float)(i % 16) / 4, h[1][i] = (float)(i % 5), h[2][i] = -1;
  for (int s = 0; s < 2; s++) {
    SAFE_CALL(cudaStreamCreate(&streams[s]));
    for (auto& p : d[s]) SAFE_CALL(cudaMalloc(&p, piece * sizeof(float)));
  }
  for (int first = 0, s = 0; first < n; first += piece, s ^= 1) {
    int m = n - first < piece ? n - first : piece;
    SAFE_CALL(cudaMemcpyAsync(d[s][0], h[0] + first, m * sizeof(float), cudaMemcpyHostToDevice, streams[s]));
    SAFE_CALL(cudaMemcpyAsync(d[s][1], h[1] + first, m * sizeof(float), cudaMemcpyHostToDevice, streams[s]));
    triad<<<(m + 127) / 128, 128, 0, streams[s]>>>(d[s][0], d[s][1], d[s][2], 1.75f, m);
    SAFE_CALL(cudaGetLastError());
    SAFE_CALL(cudaMemcpyAsync(h[2] + first, d[s][2], m * sizeof(float), cudaMemcpyDeviceToHost, streams[s]));
  }
  SAFE_CALL(cudaDeviceSynchronize());
  float* x;
  vector<float> scanned(n);
  SAFE_CALL(cudaMalloc(&x, n * sizeof(float)));
  SAFE_CALL(cudaMalloc(&sums, n * sizeof(float)));
  SAFE_CALL(cudaMemcpy(x, h[2], n * sizeof(float), cudaMemcpyHostToDevice));
  scanBlocks<<<(n + 255) / 256, 256>>>(x, sums, n);
  SAFE_CALL(cudaGetLastError());
  SAFE_CALL(cudaMemcpy(scanned.data(), sums, n * sizeof(float), cudaMemcpyDeviceToHost));
  int wrong = 0;
  float running = 0;  // multiples of 1/4: exact
  for (int i = 0; i < n; i++) {
    float want = (i % 16) / 4.0f + 1.75f * (i % 5);
    running = i % 256 ? running + want : want;
    wrong += h[2][i] != want || scanned[i] != running;
  }
  printf("triad of %d in pieces of %d: last sum %.2f\n", n, piece, running);
  for (auto& p : h) SAFE_CALL(cudaFreeHost(p));
  for (int s = 0; s < 2; s++) {
    SAFE_CALL(cudaStreamDestroy(streams[s]));
    for (auto& p : d[s]) SAFE_CALL(cudaFree(p));
  }
  SAFE_CALL(cudaFree(x));
  SAFE_CALL(cudaFree(sums));
  return wrong == 0;
}

int main(int argc, char** argv) {
  int cols = argc > 1 ? atoi(argv[1]) : 96, rows = argc > 2 ? atoi(argv[2]) : 80, iterations = argc > 3 ? atoi(argv[3]) : 5;
  bool ok = stencil<float>("float", rows, cols, iterations, 1e-5);
  ok &= stencil<double>("double", rows, cols, iterations, 1e-12);
  ok &= triadInPieces(5000, 1024);
  printf("%s\n", ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
