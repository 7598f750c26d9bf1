// title: Particles in a structure of arrays: zipped iterators, sorting by cell, compaction
// features: thrust, thrust_iterators
// args: 2000
// flags: -extended-lambda
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <vector>

#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/for_each.h>
#include <thrust/gather.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/partition.h>
#include <thrust/remove.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>

namespace sim {

constexpr int cells = 16;

using Particle = thrust::tuple<int, int, int>;  // position, velocity, age

struct Advance {
  int width;
  template <class T>
  __host__ __device__ void operator()(T p) const {
    int x = thrust::get<0>(p) + thrust::get<1>(p);
    if (x < 0 || x >= width) {
      thrust::get<1>(p) = -thrust::get<1>(p);
      x = x < 0 ? -x : 2 * (width - 1) - x;
    }
    thrust::get<0>(p) = x;
    thrust::get<2>(p) = thrust::get<2>(p) + 1 + (x % 7 == 0);
  }
};

struct CellOf {
  int width;
  __host__ __device__ int operator()(int x) const { return x * cells / width; }
};

struct IsOld {
  int limit;
  __host__ __device__ bool operator()(const Particle& p) const { return thrust::get<2>(p) > limit; }
};

struct State {
  std::vector<int> x, v, age;
};

State make(int n, int width) {
  State s;
  unsigned seed = 12345;
  auto next = [&seed](int m) {
    seed = seed * 1664525u + 1013904223u;
    return (int)(seed >> 16) % m;
  };
  for (int i = 0; i < n; ++i) {
    s.x.push_back(next(width));
    s.v.push_back(next(21) - 10);
    s.age.push_back(next(5));
  }
  return s;
}

}  // namespace sim

int main(int argc, char** argv) {
  using namespace sim;
  const int n = argc > 1 ? std::atoi(argv[1]) : 1000, width = 4096, steps = 8, limit = 12;
  const State start = make(n, width);
  thrust::device_vector<int> x(start.x.begin(), start.x.end()), v(start.v.begin(), start.v.end()),
      age(start.age.begin(), start.age.end());

  auto particles = thrust::make_zip_iterator(thrust::make_tuple(x.begin(), v.begin(), age.begin()));
  for (int step = 0; step < steps; ++step) thrust::for_each(particles, particles + n, Advance{width});

  // Those that are too old leave.
  auto end = thrust::remove_if(particles, particles + n, IsOld{limit});
  const int left = static_cast<int>(end - particles);

  // Order by cell; equal cells keep their order.
  thrust::device_vector<int> cell(left), order(left), sorted_x(left);
  thrust::transform(x.begin(), x.begin() + left, cell.begin(), CellOf{width});
  thrust::sequence(order.begin(), order.end());
  thrust::stable_sort_by_key(cell.begin(), cell.end(), order.begin());
  thrust::gather(order.begin(), order.end(), x.begin(), sorted_x.begin());

  // The sum of every velocity in the sorted order, weighted by the rank, without a copy of the velocities.
  auto in_order = thrust::make_permutation_iterator(v.begin(), order.begin());
  thrust::device_vector<long long> weighted(left);
  thrust::transform(in_order, in_order + left, thrust::counting_iterator<int>(1), weighted.begin(),
                    [] __host__ __device__(int velocity, int rank) { return (long long)velocity * rank; });
  const long long moment = thrust::reduce(weighted.begin(), weighted.end(), 0LL);

  std::vector<int> count(cells);
  for (int c = 0; c < cells; ++c) count[c] = (int)thrust::count(cell.begin(), cell.end(), c);

  // The same on the host, a particle at a time.
  std::vector<std::vector<int>> kept;
  for (int i = 0; i < n; ++i) {
    int px = start.x[i], pv = start.v[i], pa = start.age[i];
    for (int step = 0; step < steps; ++step) {
      px += pv;
      if (px < 0) px = -px, pv = -pv;
      else if (px >= width) px = 2 * (width - 1) - px, pv = -pv;
      pa += 1 + (px % 7 == 0);
    }
    if (pa <= limit) kept.push_back({px, pv, px * cells / width});
  }
  std::stable_sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a[2] < b[2]; });
  bool ok = (int)kept.size() == left;
  long long moment_ref = 0;
  std::vector<int> count_ref(cells);
  for (int i = 0; ok && i < left; ++i) {
    ok = sorted_x[i] == kept[i][0] && cell[i] == kept[i][2];
    moment_ref += (long long)kept[i][1] * (i + 1);
    ++count_ref[kept[i][2]];
  }
  ok = ok && moment == moment_ref && count == count_ref;

  std::cout << n << " particles, " << left << " left after " << steps << " steps\ncells:";
  for (int each : count) std::cout << ' ' << each;
  std::cout << "\nmoment " << moment << '\n' << (ok ? "PASSED" : "FAILED") << std::endl;
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
