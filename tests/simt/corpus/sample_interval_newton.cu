// title: Interval arithmetic with directed rounding: all roots of a function by an interval Newton search
// features: rounding_intrinsics, templates, classes, recursion_on_a_stack

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

#define CHECKED_CALL(func)                                                                    \
  do {                                                                                        \
    cudaError_t err = (func);                                                                 \
    if (err != cudaSuccess) {                                                                 \
      printf("%s(%d): ERROR: %s returned %s\n", __FILE__, __LINE__, #func, cudaGetErrorString(err)); \
      exit(err);                                                                              \
    }                                                                                         \
  } while (0)

// lower bounds are rounded down, upper bounds up
struct interval {
  double lo, hi;
  __device__ interval(double a = 0) : lo(a), hi(a) {}
  __device__ interval(double a, double b) : lo(a), hi(b) {}
  __device__ bool contains_zero() const { return lo <= 0 && hi >= 0; }
  __device__ double width() const { return hi - lo; }
  __device__ double middle() const { return 0.5 * (lo + hi); }
};

__device__ interval operator+(interval a, interval b) { return interval(__dadd_rd(a.lo, b.lo), __dadd_ru(a.hi, b.hi)); }
__device__ interval operator-(interval a, interval b) { return interval(__dadd_rd(a.lo, -b.hi), __dadd_ru(a.hi, -b.lo)); }
__device__ interval operator*(interval a, interval b) {
  double l = fmin(fmin(__dmul_rd(a.lo, b.lo), __dmul_rd(a.lo, b.hi)), fmin(__dmul_rd(a.hi, b.lo), __dmul_rd(a.hi, b.hi)));
  double h = fmax(fmax(__dmul_ru(a.lo, b.lo), __dmul_ru(a.lo, b.hi)), fmax(__dmul_ru(a.hi, b.lo), __dmul_ru(a.hi, b.hi)));
  return interval(l, h);
}
__device__ interval operator/(interval a, interval b) {  // b without 0
  double l = fmin(fmin(__ddiv_rd(a.lo, b.lo), __ddiv_rd(a.lo, b.hi)), fmin(__ddiv_rd(a.hi, b.lo), __ddiv_rd(a.hi, b.hi)));
  double h = fmax(fmax(__ddiv_ru(a.lo, b.lo), __ddiv_ru(a.lo, b.hi)), fmax(__ddiv_ru(a.hi, b.lo), __ddiv_ru(a.hi, b.hi)));
  return interval(l, h);
}

template <class T, int thread>
struct small_stack {
  T item[thread];
  int count = 0;
  __device__ void push(const T& t) { item[count++] = t; }
  __device__ T pop() { return item[--count]; }
  __device__ bool empty() const { return count == 0; }
};

// f(x) = x^4 - 10 x^2 + 9 - a, with a of the thread: up to four roots
__device__ interval f(interval x, double a) {
  interval q = x * x;
  return q * q - interval(10) * q + interval(9 - a);
}
__device__ interval df(interval x) { return interval(4) * x * x * x - interval(20) * x; }

__global__ void solve(double2* roots, int* counts, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  double a = t * 0.25 - 10;
  int found = 0;
  small_stack<interval, 64> work;
  work.push(interval(-5.01, 5.013));
  while (!work.empty() && found < 4) {
    interval x = work.pop();
    if (!f(x, a).contains_zero()) continue;
    interval slope = df(x);
    if (slope.contains_zero()) {
      if (x.width() < 1e-7) continue;  // a multiple root cannot be isolated
      double m = x.middle();
      work.push(interval(m, x.hi));
      work.push(interval(x.lo, m));
      continue;
    }
    double m = x.middle();
    interval next = interval(m) - f(interval(m), a) / slope;
    next = interval(fmax(next.lo, x.lo), fmin(next.hi, x.hi));
    if (next.lo > next.hi) continue;  // no root in here
    if (next.width() < 1e-10 || next.width() > 0.9 * x.width()) {
      if (next.width() < 1e-8) {
        roots[4 * t + found++] = make_double2(next.lo, next.hi);
      } else {
        work.push(interval(next.middle(), next.hi));
        work.push(interval(next.lo, next.middle()));
      }
    } else {
      work.push(next);
    }
  }
  counts[t] = found;
}

int main() {
  const int n = 100;
  double2* d_roots;
  int* d_counts;
  std::vector<double2> roots(4 * n, make_double2(0, 0));
  std::vector<int> counts(n);
  CHECKED_CALL(cudaMalloc(&d_roots, 4 * n * sizeof(double2)));
  CHECKED_CALL(cudaMemset(d_roots, 0, 4 * n * sizeof(double2)));
  CHECKED_CALL(cudaMalloc(&d_counts, n * sizeof(int)));
  solve<<<(n + 31) / 32, 32>>>(d_roots, d_counts, n);
  CHECKED_CALL(cudaGetLastError());
  CHECKED_CALL(cudaMemcpy(roots.data(), d_roots, 4 * n * sizeof(double2), cudaMemcpyDeviceToHost));
  CHECKED_CALL(cudaMemcpy(counts.data(), d_counts, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECKED_CALL(cudaFree(d_roots));
  CHECKED_CALL(cudaFree(d_counts));
  int bad = 0, total = 0;
  double sum = 0;
  for (int t = 0; t < n; t++) {
    // x^2 = 5 +- sqrt(16 + a)
    double a = t * 0.25 - 10, s = std::sqrt(16 + a);
    std::vector<double> want;
    for (double q : {5 + s, 5 - s})
      if (q > 0) want.push_back(std::sqrt(q)), want.push_back(-std::sqrt(q));
    if (s == 5) continue;  // a double root at 0 cannot be isolated
    std::sort(want.begin(), want.end());
    if (counts[t] != (int)want.size()) bad++;
    for (int k = 0; k < std::min(counts[t], (int)want.size()); k++) {
      double2 r = roots[4 * t + k];
      if (!(r.x - 1e-14 <= want[k] && want[k] <= r.y + 1e-14)) bad++;
      sum += std::fabs(r.x);
    }
    total += counts[t];
  }
  std::cout << total << " roots enclosed, sum of their absolute values " << (long)(sum * 1e4) / 1e4 << std::endl;
  std::cout << (bad ? "FAILED" : "PASSED") << std::endl;
  return bad != 0;
}
