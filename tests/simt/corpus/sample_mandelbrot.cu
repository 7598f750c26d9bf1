// title: Mandelbrot set in fixed-point and floating-point numbers, blocks take rows from a queue
// features: atomics, templates, device_properties, device_variables
// args: 96 64

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

using namespace std;

#define CHECKED(call) \
  if ((call) != cudaSuccess) { cerr << "CUDA error in line " << __LINE__ << endl; exit(1); }

__device__ unsigned int nextRow;  // the queue

// 32-bit fixed point with 24 bits of fraction; products are rounded down.
struct Fixed {
  long long v;
  __host__ __device__ static Fixed from(double x) { return Fixed{(long long)(x * 16777216.0)}; }
  __host__ __device__ Fixed operator+(Fixed o) const { return Fixed{v + o.v}; }
  __host__ __device__ Fixed operator-(Fixed o) const { return Fixed{v - o.v}; }
  __host__ __device__ Fixed operator*(Fixed o) const { return Fixed{(v * o.v) >> 24}; }
  __host__ __device__ bool operator>(Fixed o) const { return v > o.v; }
};

template <class T>
__host__ __device__ inline T convert(double x) { return (T)x; }
template <>
__host__ __device__ inline Fixed convert<Fixed>(double x) { return Fixed::from(x); }

template <class T>
__host__ __device__ int escape(T cx, T cy, int limit) {
  T x = convert<T>(0), y = convert<T>(0), four = convert<T>(4);
  int n = 0;
  for (; n < limit; n++) {
    T xx = x * x, yy = y * y;
    if (xx + yy > four) break;
    T xy = x * y;
    y = xy + xy + cy;
    x = xx - yy + cx;
  }
  return n;
}

template <class T>
__global__ void mandelbrot(int* dst, int w, int h, int limit, double scale, double x0, double y0) {
  __shared__ unsigned int row;
  while (true) {
    if (threadIdx.x == 0) row = atomicAdd(&nextRow, 1);
    __syncthreads();
    const unsigned int y = row;
    __syncthreads();  // all have read the row before thread 0 takes the next one
    if (y >= h) return;
    for (int x = threadIdx.x; x < w; x += blockDim.x)
      dst[y * w + x] = escape<T>(convert<T>(x0 + x * scale), convert<T>(y0 + y * scale), limit);
  }
}

template <class T>
vector<int> draw(int w, int h, int limit, double scale, double x0, double y0) {
  int device, sms;
  CHECKED(cudaGetDevice(&device));
  CHECKED(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  const unsigned int zero = 0;
  CHECKED(cudaMemcpyToSymbol(nextRow, &zero, sizeof zero));
  int* d;
  vector<int> image(w * h);
  CHECKED(cudaMalloc(&d, image.size() * sizeof(int)));
  mandelbrot<T><<<sms < 16 ? sms : 16, 32>>>(d, w, h, limit, scale, x0, y0);
  CHECKED(cudaGetLastError());
  CHECKED(cudaMemcpy(image.data(), d, image.size() * sizeof(int), cudaMemcpyDeviceToHost));
  CHECKED(cudaFree(d));
  return image;
}

int main(int argc, char** argv) {
  const int w = argc > 1 ? atoi(argv[1]) : 96, h = argc > 2 ? atoi(argv[2]) : 64, limit = 64;
  const double scale = 3.0 / w, x0 = -2.2, y0 = -0.5 * h * scale;
  vector<int> fixed = draw<Fixed>(w, h, limit, scale, x0, y0), single = draw<float>(w, h, limit, scale, x0, y0);
  int bad = 0, far = 0;
  long total = 0, inside = 0;
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      double cx = x0 + x * scale, cy = y0 + y * scale;
      if (escape(Fixed::from(cx), Fixed::from(cy), limit) != fixed[y * w + x]) bad++;  // integers: exactly the same
      if (abs(escape(cx, cy, limit) - single[y * w + x]) > 1) far++;
      total += fixed[y * w + x];
      inside += fixed[y * w + x] == limit;
    }
  for (int y = 0; y < h; y += 8) {
    for (int x = 0; x < w; x += 4) putchar(" .:-=+*#%@"[fixed[y * w + x] * 9 / limit]);
    putchar('\n');
  }
  printf("%ld iterations, %ld pixels inside\n", total, inside);
  bool ok = bad == 0 && far < w * h / 100;
  cout << (ok ? "PASSED" : "FAILED") << endl;
  return ok ? 0 : 1;
}
