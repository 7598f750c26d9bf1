// title: SAXPY, dot product and vector norms with thrust
// features: thrust
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <thrust/device_vector.h>
#include <thrust/equal.h>
#include <thrust/extrema.h>
#include <thrust/fill.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>

struct saxpy_functor {
  const float a;
  saxpy_functor(float a) : a(a) {}
  __host__ __device__ float operator()(const float& x, const float& y) const { return a * x + y; }
};

struct square_functor {
  __host__ __device__ double operator()(float x) const { return (double)x * x; }
};

struct absolute {
  __host__ __device__ float operator()(float x) const { return x < 0 ? -x : x; }
};

// One pass with a temporary for a * x, and one fused pass: the same numbers, since every value is small.
void saxpy_slow(float a, const thrust::device_vector<float>& x, thrust::device_vector<float>& y) {
  thrust::device_vector<float> temp(x.size());
  thrust::fill(temp.begin(), temp.end(), a);
  thrust::transform(x.begin(), x.end(), temp.begin(), temp.begin(), thrust::multiplies<float>());
  thrust::transform(temp.begin(), temp.end(), y.begin(), y.begin(), thrust::plus<float>());
}

void saxpy_fast(float a, const thrust::device_vector<float>& x, thrust::device_vector<float>& y) {
  thrust::transform(x.begin(), x.end(), y.begin(), y.begin(), saxpy_functor(a));
}

// A kernel beside thrust: works on the vector's memory through a raw pointer.
__global__ void clamp_kernel(float* data, int n, float low, float high) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = fminf(fmaxf(data[i], low), high);
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 3000;
  thrust::host_vector<float> x(n), y(n);
  for (int i = 0; i < n; i++) {
    x[i] = (float)((i * 37) % 101) - 50.0f;
    y[i] = (float)((i * 11) % 29) * 0.5f;
  }
  const float a = 2.0f;

  thrust::device_vector<float> d_x = x, slow = y, fast = y;
  saxpy_slow(a, d_x, slow);
  saxpy_fast(a, d_x, fast);
  const bool same = thrust::equal(slow.begin(), slow.end(), fast.begin());

  double dot = thrust::inner_product(d_x.begin(), d_x.end(), fast.begin(), 0.0);
  double sum_squares = thrust::transform_reduce(fast.begin(), fast.end(), square_functor(), 0.0, thrust::plus<double>());
  float largest = thrust::transform_reduce(fast.begin(), fast.end(), absolute(), 0.0f, thrust::maximum<float>());

  clamp_kernel<<<(n + 127) / 128, 128>>>(thrust::raw_pointer_cast(fast.data()), n, -20.0f, 20.0f);
  if (cudaGetLastError() != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return 1;
  double clamped = thrust::reduce(fast.begin(), fast.end(), 0.0, thrust::plus<double>());
  thrust::host_vector<float> result = fast;

  double dot_ref = 0, squares_ref = 0, clamped_ref = 0;
  float largest_ref = 0;
  int wrong = 0;
  for (int i = 0; i < n; i++) {
    const float v = a * x[i] + y[i];
    dot_ref += (double)x[i] * v;
    squares_ref += (double)v * v;
    largest_ref = std::fmax(largest_ref, std::fabs(v));
    const float c = std::fmin(std::fmax(v, -20.0f), 20.0f);
    clamped_ref += c;
    if (result[i] != c) wrong++;
  }
  printf("n = %d\n", n);
  printf("slow and fast agree: %s\n", same ? "yes" : "no");
  printf("dot     %.2f\n", dot);
  printf("norm    %.4f\n", std::sqrt(sum_squares));
  printf("largest %.2f\n", largest);
  printf("clamped %.2f, %d wrong\n", clamped, wrong);
  const bool ok = same && wrong == 0 && std::fabs(dot - dot_ref) < 1e-6 * std::fabs(dot_ref) + 1e-6 &&
                  std::fabs(sum_squares - squares_ref) < 1e-9 * squares_ref && largest == largest_ref &&
                  std::fabs(clamped - clamped_ref) < 1e-6;
  printf("%s\n", ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
