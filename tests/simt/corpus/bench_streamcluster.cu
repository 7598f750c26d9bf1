// title: Online clustering: what opening a centre would gain, one thread a point, one block row of savings
// features: dynamic_shared_memory, structs, atomics
// args: 500 4

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <cuda_runtime.h>

#define CUDA_OR_DIE(x)                                                             \
  do {                                                                             \
    cudaError_t status = (x);                                                      \
    if (status != cudaSuccess) {                                                   \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(status)); \
      std::exit(1);                                                                \
    }                                                                              \
  } while (0)

struct Point {
  int weight;
  long long cost;  // weighted distance to its centre
  int assign;
};

// All distances are whole numbers, so gains are exact.
__global__ void computeCost(int num, int dim, long long x, const Point* p, const int* coord, const int* centreTable, long long* lower,
                            unsigned char* switches, long long* gain) {
  extern __shared__ int coordX[];
  for (int i = threadIdx.x; i < dim; i += blockDim.x) coordX[i] = coord[i * num + x];
  __syncthreads();
  int tid = blockIdx.x * blockDim.x + threadIdx.x;
  if (tid >= num) return;
  long long cost = 0;
  for (int i = 0; i < dim; i++) {
    long long d = coord[i * num + tid] - coordX[i];
    cost += d * d;
  }
  cost *= p[tid].weight;
  if (cost < p[tid].cost) {
    switches[tid] = 1;
    atomicAdd((unsigned long long*)gain, (unsigned long long)(cost - p[tid].cost));
  } else {  // its centre would have to keep it: what closing that centre costs
    switches[tid] = 0;
    atomicAdd((unsigned long long*)&lower[centreTable[p[tid].assign]], (unsigned long long)(p[tid].cost - cost));
  }
}

struct Solver {
  int num, dim;
  long long price;
  std::vector<int> coord;
  std::vector<Point> points;
  std::vector<char> centre;

  long long distance(int a, int b) const {
    long long sum = 0;
    for (int i = 0; i < dim; i++) {
      long long d = coord[i * num + a] - coord[i * num + b];
      sum += d * d;
    }
    return sum;
  }
  long long total() const {
    long long sum = 0;
    for (int i = 0; i < num; i++) sum += points[i].cost + (centre[i] ? price : 0);
    return sum;
  }
};

int main(int argc, char** argv) {
  Solver s;
  s.num = argc > 1 ? std::atoi(argv[1]) : 500;
  s.dim = argc > 2 ? std::atoi(argv[2]) : 4;
  s.price = 40000;
  s.coord.resize(s.num * s.dim);
  s.points.resize(s.num);
  s.centre.assign(s.num, 0);
  unsigned state = 5;
  for (int i = 0; i < s.num; i++)
    for (int d = 0; d < s.dim; d++) {
      state = state * 1664525u + 1013904223u;
      s.coord[d * s.num + i] = 200 * ((i % 6 * (d + 3)) % 5) + (int)(state >> 26);
    }
  s.centre[0] = 1;
  for (int i = 0; i < s.num; i++) {
    s.points[i].weight = 1 + i % 3;
    s.points[i].assign = 0;
    s.points[i].cost = s.distance(i, 0) * s.points[i].weight;
  }
  int *dCoord, *dTable;
  Point* dPoints;
  long long *dLower, *dGain;
  unsigned char* dSwitch;
  CUDA_OR_DIE(cudaMalloc(&dCoord, s.coord.size() * sizeof(int)));
  CUDA_OR_DIE(cudaMalloc(&dTable, s.num * sizeof(int)));
  CUDA_OR_DIE(cudaMalloc(&dPoints, s.num * sizeof(Point)));
  CUDA_OR_DIE(cudaMalloc(&dLower, s.num * sizeof(long long)));
  CUDA_OR_DIE(cudaMalloc(&dGain, sizeof(long long)));
  CUDA_OR_DIE(cudaMalloc(&dSwitch, s.num));
  CUDA_OR_DIE(cudaMemcpy(dCoord, s.coord.data(), s.coord.size() * sizeof(int), cudaMemcpyHostToDevice));
  std::vector<int> table(s.num);
  std::vector<long long> lower(s.num);
  std::vector<unsigned char> switches(s.num);
  int opened = 0, wrong = 0;
  for (int trial = 0; trial < 25; trial++) {
    const int x = (trial * 83 + 7) % s.num;
    if (s.centre[x]) continue;
    int k = 0;
    for (int i = 0; i < s.num; i++) table[i] = s.centre[i] ? k++ : -1;
    long long gain = 0;
    CUDA_OR_DIE(cudaMemcpy(dTable, table.data(), s.num * sizeof(int), cudaMemcpyHostToDevice));
    CUDA_OR_DIE(cudaMemcpy(dPoints, s.points.data(), s.num * sizeof(Point), cudaMemcpyHostToDevice));
    CUDA_OR_DIE(cudaMemset(dLower, 0, s.num * sizeof(long long)));
    CUDA_OR_DIE(cudaMemset(dGain, 0, sizeof(long long)));
    computeCost<<<(s.num + 127) / 128, 128, s.dim * sizeof(int)>>>(s.num, s.dim, x, dPoints, dCoord, dTable, dLower, dSwitch, dGain);
    CUDA_OR_DIE(cudaGetLastError());
    CUDA_OR_DIE(cudaMemcpy(lower.data(), dLower, k * sizeof(long long), cudaMemcpyDeviceToHost));
    CUDA_OR_DIE(cudaMemcpy(switches.data(), dSwitch, s.num, cudaMemcpyDeviceToHost));
    CUDA_OR_DIE(cudaMemcpy(&gain, dGain, sizeof(long long), cudaMemcpyDeviceToHost));

    std::vector<char> closes(s.num, 0);  // centres that are no longer worth their price
    long long change = gain + s.price;
    for (int i = 0; i < s.num; i++)
      if (s.centre[i] && -lower[table[i]] < s.price) {
        closes[i] = 1;
        change -= s.price + lower[table[i]];
      }
    if (change >= 0) continue;
    const long long before = s.total();
    for (int i = 0; i < s.num; i++)
      if (switches[i] || closes[s.points[i].assign]) {
        s.points[i].assign = x;
        s.points[i].cost = s.distance(i, x) * s.points[i].weight;
      }
    for (int i = 0; i < s.num; i++)
      if (closes[i]) s.centre[i] = 0;
    s.centre[x] = 1;
    opened++;
    wrong += s.total() - before != change;  // the predicted change is the real one
  }
  CUDA_OR_DIE(cudaFree(dCoord));
  CUDA_OR_DIE(cudaFree(dTable));
  CUDA_OR_DIE(cudaFree(dPoints));
  CUDA_OR_DIE(cudaFree(dLower));
  CUDA_OR_DIE(cudaFree(dGain));
  CUDA_OR_DIE(cudaFree(dSwitch));
  int centres = std::accumulate(s.centre.begin(), s.centre.end(), 0);
  for (int i = 0; i < s.num; i++) wrong += !s.centre[s.points[i].assign] || s.points[i].cost != s.distance(i, s.points[i].assign) * s.points[i].weight;
  std::printf("%d centres opened, %d left, total cost %lld\n", opened, centres, s.total());
  bool ok = wrong == 0 && opened > 1;
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
