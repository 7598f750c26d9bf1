// title: Lennard-Jones forces with a neighbour list, in float and double by one template
// features: templates, vector_types, restrict
// args: 1000

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

#include <cuda_runtime.h>

#define CHECK_CUDA_ERROR()                                                              \
  {                                                                                     \
    cudaError_t err = cudaGetLastError();                                               \
    if (err != cudaSuccess) {                                                           \
      std::cout << "error=" << err << " name=" << cudaGetErrorString(err) << " at line " << __LINE__ << "\n"; \
      std::exit(1);                                                                     \
    }                                                                                   \
  }

using std::vector;

template <class T> struct vec;
template <> struct vec<float> { typedef float4 four; static __host__ __device__ float4 make(float x, float y, float z) { return make_float4(x, y, z, 0); } };
struct Double4 { double x, y, z, w; };
template <> struct vec<double> { typedef Double4 four; static __host__ __device__ Double4 make(double x, double y, double z) { return Double4{x, y, z, 0}; } };

const int kMaxNeighbours = 96;

template <class T>
__global__ void buildList(const typename vec<T>::four* __restrict__ position, int* list, int* count, int n, T cut2) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  typename vec<T>::four p = position[i];
  int found = 0;
  for (int j = 0; j < n; j++) {
    typename vec<T>::four q = position[j];
    T dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
    if (j != i && dx * dx + dy * dy + dz * dz < cut2 && found < kMaxNeighbours) list[found++ * n + i] = j;
  }
  count[i] = found;
}

template <class T>
__global__ void computeForce(typename vec<T>::four* force, const typename vec<T>::four* __restrict__ position, const int* __restrict__ list,
                             const int* __restrict__ count, T cut2, T lj1, T lj2, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  typename vec<T>::four p = position[i];
  T fx = 0, fy = 0, fz = 0;
  for (int k = 0; k < count[i]; k++) {
    typename vec<T>::four q = position[list[k * n + i]];
    T dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z, r2 = dx * dx + dy * dy + dz * dz;
    if (r2 < cut2) {
      T inv = T(1) / r2, inv6 = inv * inv * inv, f = inv * inv6 * (lj1 * inv6 - lj2);
      fx += dx * f, fy += dy * f, fz += dz * f;
    }
  }
  force[i] = vec<T>::make(fx, fy, fz);
}

template <class T>
bool runTest(const char* name, int n, double tolerance) {
  typedef typename vec<T>::four V;
  int side = 1;
  while (side * side * side < n) side++;
  vector<V> pos(n), force(n);
  unsigned s = 9;
  for (int i = 0; i < n; i++) {  // a disturbed lattice
    double d[3];
    for (double& v : d) v = (s = s * 1103515245u + 12345u, (s >> 16 & 1023) / 1024.0) * 0.3;
    pos[i] = vec<T>::make(T(i % side + d[0]), T(i / side % side + d[1]), T(i / side / side + d[2]));
  }
  const T cut2 = T(2.2 * 2.2), skin2 = T(2.5 * 2.5), lj1 = T(1.5), lj2 = T(2.0);
  V *d_pos, *d_force;
  int *d_list, *d_count;
  cudaMalloc(&d_pos, n * sizeof(V));
  cudaMalloc(&d_force, n * sizeof(V));
  cudaMalloc(&d_list, (size_t)n * kMaxNeighbours * sizeof(int));
  cudaMalloc(&d_count, n * sizeof(int));
  CHECK_CUDA_ERROR();
  cudaMemcpy(d_pos, pos.data(), n * sizeof(V), cudaMemcpyHostToDevice);
  buildList<T><<<(n + 127) / 128, 128>>>(d_pos, d_list, d_count, n, skin2);
  CHECK_CUDA_ERROR();
  computeForce<T><<<(n + 127) / 128, 128>>>(d_force, d_pos, d_list, d_count, cut2, lj1, lj2, n);
  CHECK_CUDA_ERROR();
  vector<int> count(n);
  cudaMemcpy(force.data(), d_force, n * sizeof(V), cudaMemcpyDeviceToHost);
  cudaMemcpy(count.data(), d_count, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(d_pos);
  cudaFree(d_force);
  cudaFree(d_list);
  cudaFree(d_count);
  CHECK_CUDA_ERROR();
  double worst = 0, scale = 0, total[3] = {0, 0, 0};
  long pairs = 0;
  for (int i = 0; i < n; i++) {
    double f[3] = {0, 0, 0};
    for (int j = 0; j < n; j++) {
      double dx = (double)pos[i].x - pos[j].x, dy = (double)pos[i].y - pos[j].y, dz = (double)pos[i].z - pos[j].z;
      double r2 = dx * dx + dy * dy + dz * dz;
      if (j == i || r2 >= cut2) continue;
      double i2 = 1 / r2, i6 = i2 * i2 * i2, c = i2 * i6 * (lj1 * i6 - lj2);
      f[0] += dx * c, f[1] += dy * c, f[2] += dz * c;
    }
    // a pair at the cut-off may count in one precision only: its force is small
    worst = fmax(worst, fmax(fabs(f[0] - force[i].x), fmax(fabs(f[1] - force[i].y), fabs(f[2] - force[i].z))));
    scale = fmax(scale, fabs(f[0]));
    total[0] += force[i].x, total[1] += force[i].y, total[2] += force[i].z;
    pairs += count[i];
  }
  printf("%-6s %d atoms, %ld neighbours, total force below 0.1: %s\n", name, n, pairs,
         fabs(total[0]) + fabs(total[1]) + fabs(total[2]) < 0.1 ? "yes" : "no");
  return worst < tolerance * fmax(1.0, scale);
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  bool ok = runTest<float>("float", n, 2e-4);
  ok = runTest<double>("double", n, 1e-11) && ok;
  std::cout << (ok ? "PASSED" : "FAILED") << std::endl;
  return ok ? 0 : 1;
}
