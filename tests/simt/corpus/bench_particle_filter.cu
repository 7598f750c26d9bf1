// title: Particle filter: an object in noisy frames, with its own random numbers, weights, a scan and resampling
// features: double_precision, shared_memory, own_random_numbers
// args: 400 6

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#define BLOCK 128
#define check(e)                                                              \
  if ((e) != cudaSuccess) {                                                   \
    printf("error in line %d\n", __LINE__);                                   \
    exit(1);                                                                  \
  }

// One linear congruential generator a particle; the host has the same.
__host__ __device__ double randu(int* seed, int index) {
  const int M = 2147483647, A = 16807;
  long long num = (long long)A * seed[index];
  seed[index] = (int)(num % M);
  return seed[index] / (double)M;
}

__host__ __device__ double randn(int* seed, int index) {
  double u = randu(seed, index), v = randu(seed, index);
  return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

__host__ __device__ double likelihood(const unsigned char* frame, int w, int h, double x, double y) {
  double sum = 0;
  int n = 0;
  for (int dy = -4; dy <= 4; dy++)
    for (int dx = -4; dx <= 4; dx++) {
      if (dx * dx + dy * dy > 16) continue;
      int px = (int)floor(x + 0.5) + dx, py = (int)floor(y + 0.5) + dy;
      int v = px >= 0 && py >= 0 && px < w && py < h ? frame[py * w + px] : 100;
      sum += ((v - 100) * (v - 100) - (v - 228) * (v - 228)) / 50.0;
      n++;
    }
  return sum / n;
}

__global__ void move(double* x, double* y, int* seed, double* like, const unsigned char* frame, int w, int h, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  x[i] += 1 + 3 * randn(seed, i);
  y[i] += 1 + 3 * randn(seed, i);
  like[i] = likelihood(frame, w, h, x[i], y[i]);
}

// One block: the largest likelihood, the weights and their running sums.
__global__ void weigh(const double* like, double* weights, double* cdf, int n) {
  __shared__ double s[BLOCK];
  const int per = (n + BLOCK - 1) / BLOCK, t = threadIdx.x, first = t * per, last = min(first + per, n);
  double top = -1e300;
  for (int i = first; i < last; i++) top = fmax(top, like[i]);
  s[t] = top;
  __syncthreads();
  for (int d = BLOCK / 2; d; d /= 2) {
    if (t < d) s[t] = fmax(s[t], s[t + d]);
    __syncthreads();
  }
  top = s[0];
  __syncthreads();
  double sum = 0;
  for (int i = first; i < last; i++) sum += weights[i] = exp((like[i] - top) / 20);
  s[t] = sum;
  __syncthreads();
  double before = 0, total = 0;
  for (int k = 0; k < BLOCK; k++) {
    if (k < t) before += s[k];
    total += s[k];
  }
  for (int i = first; i < last; i++) {
    weights[i] /= total;
    before += weights[i] * total;
    cdf[i] = before / total;
  }
}

__global__ void resample(const double* x, const double* y, const double* cdf, double u0, double* nx, double* ny, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double u = (u0 + i) / n;
  int lo = 0, hi = n - 1;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (cdf[mid] < u)
      lo = mid + 1;
    else
      hi = mid;
  }
  nx[i] = x[lo];
  ny[i] = y[lo];
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 400, frames = argc > 2 ? atoi(argv[2]) : 6, w = 64, h = 64;
  std::vector<unsigned char> frame(w * h);
  std::vector<int> seed(n);
  std::vector<double> x(n, 20.0), y(n, 20.0), weights(n), before(n), like(n);
  for (int i = 0; i < n; i++) seed[i] = 1000 + 7919 * i;
  unsigned char* d_frame;
  int* d_seed;
  double* d[7];  // x y nx ny like weights cdf
  check(cudaMalloc(&d_frame, w * h));
  check(cudaMalloc(&d_seed, n * sizeof(int)));
  for (int k = 0; k < 7; k++) check(cudaMalloc(&d[k], n * sizeof(double)));
  check(cudaMemcpy(d_seed, seed.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  check(cudaMemcpy(d[0], x.data(), n * sizeof(double), cudaMemcpyHostToDevice));
  check(cudaMemcpy(d[1], y.data(), n * sizeof(double), cudaMemcpyHostToDevice));
  const int blocks = (n + BLOCK - 1) / BLOCK;
  double worst = 0, off = 0;
  unsigned noise = 1;
  for (int f = 1; f <= frames; f++) {
    const double ox = 20 + 2 * f, oy = 20 + f;
    for (int i = 0; i < w * h; i++) {
      noise = noise * 1664525u + 1013904223u;
      double dx = i % w - ox, dy = i / w - oy;
      frame[i] = (unsigned char)((dx * dx + dy * dy <= 20 ? 228 : 100) + (int)(noise >> 28) - 8);
    }
    check(cudaMemcpy(d_frame, frame.data(), w * h, cudaMemcpyHostToDevice));
    move<<<blocks, BLOCK>>>(d[0], d[1], d_seed, d[4], d_frame, w, h, n);
    weigh<<<1, BLOCK>>>(d[4], d[5], d[6], n);
    check(cudaGetLastError());
    check(cudaMemcpy(weights.data(), d[5], n * sizeof(double), cudaMemcpyDeviceToHost));
    check(cudaMemcpy(x.data(), d[0], n * sizeof(double), cudaMemcpyDeviceToHost));
    check(cudaMemcpy(y.data(), d[1], n * sizeof(double), cudaMemcpyDeviceToHost));
    double ex = 0, ey = 0, sum = 0, top = -1e300, total = 0;
    for (int i = 0; i < n; i++) top = fmax(top, like[i] = likelihood(frame.data(), w, h, x[i], y[i]));
    for (int i = 0; i < n; i++) total += exp((like[i] - top) / 20);
    for (int i = 0; i < n; i++) {
      worst = fmax(worst, fabs(weights[i] - exp((like[i] - top) / 20) / total));
      ex += x[i] * weights[i], ey += y[i] * weights[i], sum += weights[i];
    }
    worst = fmax(worst, fabs(sum - 1));
    off = fmax(off, hypot(ex - ox, ey - oy));
    if (f == 1) {  // the positions of the first frame, with the host's random numbers
      for (int i = 0; i < n; i++) {
        double hx = 20 + 1 + 3 * randn(seed.data(), i), hy = 20 + 1 + 3 * randn(seed.data(), i);
        worst = fmax(worst, fabs(hx - x[i]) + fabs(hy - y[i]));
      }
    }
    printf("frame %d: object at (%.0f, %.0f), found within 2 pixels: %s\n", f, ox, oy, hypot(ex - ox, ey - oy) < 2 ? "yes" : "no");
    resample<<<blocks, BLOCK>>>(d[0], d[1], d[6], 0.5, d[2], d[3], n);
    check(cudaGetLastError());
    std::swap(d[0], d[2]);
    std::swap(d[1], d[3]);
  }
  check(cudaFree(d_frame));
  check(cudaFree(d_seed));
  for (int k = 0; k < 7; k++) check(cudaFree(d[k]));
  bool ok = worst < 1e-9 && off < 2;
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
