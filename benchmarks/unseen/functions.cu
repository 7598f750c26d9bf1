// Kernels that are mostly arithmetic: powers, sines, a polynomial, the price of an option, random normal numbers.
// sizes: 12 23 (log2 of the elements)
#include "../micro/micro.h"

__global__ void gamma_curve(float* x, float* y, float gamma, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] <= 0.0031308f ? 12.92f * x[i] : 1.055f * powf(x[i], 1.0f / gamma) - 0.055f;
}

__global__ void waves(float* y, float time, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float t = 0.001f * i, sum = 0.0f;
  for (int k = 1; k <= 8; k++) sum += sinf(k * t + time) * cosf(0.5f * k * t) / k;
  y[i] = sum;
}

__global__ void polynomial(float* x, float* coefficients, float* y, int degree, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = coefficients[degree];
    for (int k = degree - 1; k >= 0; k--) sum = sum * x[i] + coefficients[k];
    y[i] = sum;
  }
}

__device__ float normal_below(float x) { return 0.5f * erfcf(-x * 0.70710678f); }

__global__ void option_price(const float* __restrict__ price, const float* __restrict__ strike,
                             const float* __restrict__ years, float* __restrict__ call, float* __restrict__ put,
                             float rate, float volatility, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float root = volatility * sqrtf(years[i]);
  float d1 = (logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / root;
  float d2 = d1 - root;
  float discounted = strike[i] * expf(-rate * years[i]);
  call[i] = price[i] * normal_below(d1) - discounted * normal_below(d2);
  put[i] = discounted * normal_below(-d2) - price[i] * normal_below(-d1);
}

__global__ void normal_numbers(float* y, unsigned seed, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned state = i * 747796405u + seed;
  for (int k = i; k < n; k += gridDim.x * blockDim.x) {
    state = state * 1664525u + 1013904223u;
    float u = ((state >> 8) + 1) / 16777217.0f;
    state = state * 1664525u + 1013904223u;
    float v = (state >> 8) / 16777216.0f;
    y[k] = sqrtf(-2.0f * logf(u)) * cosf(6.2831853f * v);
  }
}

// The literals make it double precision.
__global__ void bell_curve(float* x, float* y, float mean, float deviation, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float d = (x[i] - mean) / deviation;
    y[i] = 1.0 / (deviation * sqrt(2.0 * 3.14159265358979)) * exp(-0.5 * d * d);
  }
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 12);
  float *x = memory<float>(n), *y = memory<float>(n), *z = memory<float>(n), *coefficients = memory<float>(64);
  measure("gamma curve", [&] { gamma_curve<<<n / 256, 256>>>(x, y, 2.4f, n); });
  measure("waves", [&] { waves<<<n / 256, 256>>>(y, 1.5f, n); });
  measure("polynomial", [&] { polynomial<<<n / 512, 512>>>(x, coefficients, y, 40, n); });
  measure("option price", [&] { option_price<<<n / 128, 128>>>(x, x, x, y, z, 0.02f, 0.3f, n); });
  measure("normal numbers", [&] { normal_numbers<<<528, 256>>>(y, 42u, n); });
  measure("bell curve in double", [&] { bell_curve<<<n / 256, 256>>>(x, y, 0.5f, 1.5f, n); });
}
