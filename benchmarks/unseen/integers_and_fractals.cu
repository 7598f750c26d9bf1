// Loops whose length depends on the thread: Mandelbrot, Collatz, trial division, greatest common divisors, digits.
// sizes: 12 22 (log2 of the threads)
#include "../micro/micro.h"

__global__ void mandelbrot(int* counts, int side) {
  int px = blockIdx.x * blockDim.x + threadIdx.x;
  int py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= side || py >= side) return;
  float cx = -2.0f + 3.0f * px / side, cy = -1.5f + 3.0f * py / side;
  float x = 0.0f, y = 0.0f;
  int count = 0;
  while (x * x + y * y <= 4.0f && count < 200) {
    float next = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = next;
    count++;
  }
  counts[py * side + px] = count;
}

__global__ void collatz(int* steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long v = i + 1;
  int count = 0;
  while (v != 1) {
    if (v % 2 == 0)
      v = v / 2;
    else
      v = 3 * v + 1;
    count++;
  }
  steps[i] = count;
}

__global__ void trial_division(int* prime, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = 2 * i + 3;
  int is_prime = 1;
  for (int d = 3; d * d <= v; d += 2) {
    if (v % d == 0) {
      is_prime = 0;
      break;
    }
  }
  prime[i] = is_prime;
}

__global__ void common_divisor(unsigned* x, unsigned* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned a = x[i], b = i * 2654435761u;
  while (b != 0) {
    unsigned rest = a % b;
    a = b;
    b = rest;
  }
  y[i] = a;
}

// How often the most frequent digit occurs; the counts are an array of the thread's own.
__global__ void digits(int* most, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int count[10];
  for (int d = 0; d < 10; d++) count[d] = 0;
  unsigned v = i * 2654435761u;
  do {
    count[v % 10]++;
    v /= 10;
  } while (v > 0);
  int largest = 0;
  for (int d = 0; d < 10; d++) largest = max(largest, count[d]);
  most[i] = largest;
}

int main(int argc, char** argv) {
  const long size = size_of_run(argc, argv, 12);
  const int n = 1 << size, side = 1 << size / 2;
  int *x = memory<int>(n), *y = memory<int>(n);
  measure("mandelbrot", [&] { mandelbrot<<<dim3(side / 16, side / 16), dim3(16, 16)>>>(y, side); });
  measure("collatz", [&] { collatz<<<n / 256, 256>>>(y, n); });
  measure("trial division", [&] { trial_division<<<n / 128, 128>>>(y, n); });
  measure("common divisor", [&] { common_divisor<<<n / 256, 256>>>((unsigned*)x, (unsigned*)y, n); });
  measure("digits", [&] { digits<<<n / 64, 64>>>(y, n); });
}
