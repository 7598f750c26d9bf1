// title: Particle potentials in boxes: each block a home box, its neighbours one by one through shared memory
// features: structs, shared_memory, double_precision, namespaces
// args: 3 24

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace md {

struct Four {
  double v, x, y, z;
};

struct Neighbour {
  int number;
  long offset;
};

struct Box {
  int x, y, z, number;
  long offset;
  int neighbours;
  Neighbour near[26];
};

constexpr int kMaxParticles = 64;

struct Parameters {
  double alpha;
  int perBox;
};

__global__ void potentials(Parameters par, const Box* boxes, const Four* rv, const double* qv, Four* fv) {
  __shared__ Four homeRv[kMaxParticles], nearRv[kMaxParticles];
  __shared__ double nearQv[kMaxParticles];
  const Box& home = boxes[blockIdx.x];
  const double a2 = 2.0 * par.alpha * par.alpha;
  for (int i = threadIdx.x; i < par.perBox; i += blockDim.x) homeRv[i] = rv[home.offset + i];
  __syncthreads();
  for (int k = 0; k < 1 + home.neighbours; k++) {
    const long offset = k == 0 ? home.offset : home.near[k - 1].offset;
    for (int j = threadIdx.x; j < par.perBox; j += blockDim.x) {
      nearRv[j] = rv[offset + j];
      nearQv[j] = qv[offset + j];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < par.perBox; i += blockDim.x) {
      Four sum = fv[home.offset + i];
      for (int j = 0; j < par.perBox; j++) {
        const Four &p = homeRv[i], &q = nearRv[j];
        double r2 = p.v + q.v - (p.x * q.x + p.y * q.y + p.z * q.z);
        double vij = exp(-a2 * r2), fs = 2 * vij;
        sum.v += nearQv[j] * vij;
        sum.x += nearQv[j] * fs * (p.x - q.x);
        sum.y += nearQv[j] * fs * (p.y - q.y);
        sum.z += nearQv[j] * fs * (p.z - q.z);
      }
      fv[home.offset + i] = sum;
    }
    __syncthreads();
  }
}

}  // namespace md

#define TRY(call)                                                                    \
  if (cudaError_t e = (call); e != cudaSuccess) {                                    \
    std::fprintf(stderr, "%s failed: %s\n", #call, cudaGetErrorString(e));           \
    return EXIT_FAILURE;                                                             \
  }

int main(int argc, char** argv) {
  using namespace md;
  const int side = argc > 1 ? std::atoi(argv[1]) : 3, perBox = argc > 2 ? std::atoi(argv[2]) : 24;
  const int count = side * side * side, n = count * perBox;
  if (perBox > kMaxParticles) return 2;
  std::vector<Box> boxes(count);
  for (int b = 0; b < count; b++) {
    Box& box = boxes[b];
    box.x = b % side, box.y = b / side % side, box.z = b / side / side;
    box.number = b, box.offset = (long)b * perBox, box.neighbours = 0;
    for (int dz = -1; dz <= 1; dz++)
      for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
          int x = box.x + dx, y = box.y + dy, z = box.z + dz;
          if ((!dx && !dy && !dz) || x < 0 || y < 0 || z < 0 || x >= side || y >= side || z >= side) continue;
          int other = (z * side + y) * side + x;
          box.near[box.neighbours++] = {other, (long)other * perBox};
        }
  }
  std::vector<Four> rv(n), fv(n, Four{0, 0, 0, 0});
  std::vector<double> qv(n);
  for (int i = 0; i < n; i++) {
    rv[i].x = ((i * 7 + 3) % 10 + 1) / 10.0;
    rv[i].y = ((i * 11 + 5) % 10 + 1) / 10.0;
    rv[i].z = ((i / 10 * 13) % 10 + 1) / 10.0;
    rv[i].v = ((i * 3) % 10 + 1) / 10.0;
    qv[i] = ((i * 17) % 10 + 1) / 10.0;
  }
  Parameters par{0.5, perBox};
  Box* dBoxes;
  Four *dRv, *dFv;
  double* dQv;
  TRY(cudaMalloc(&dBoxes, count * sizeof(Box)));
  TRY(cudaMalloc(&dRv, n * sizeof(Four)));
  TRY(cudaMalloc(&dFv, n * sizeof(Four)));
  TRY(cudaMalloc(&dQv, n * sizeof(double)));
  TRY(cudaMemcpy(dBoxes, boxes.data(), count * sizeof(Box), cudaMemcpyHostToDevice));
  TRY(cudaMemcpy(dRv, rv.data(), n * sizeof(Four), cudaMemcpyHostToDevice));
  TRY(cudaMemcpy(dQv, qv.data(), n * sizeof(double), cudaMemcpyHostToDevice));
  TRY(cudaMemset(dFv, 0, n * sizeof(Four)));
  potentials<<<count, 32>>>(par, dBoxes, dRv, dQv, dFv);
  TRY(cudaGetLastError());
  TRY(cudaMemcpy(fv.data(), dFv, n * sizeof(Four), cudaMemcpyDeviceToHost));
  TRY(cudaFree(dBoxes));
  TRY(cudaFree(dRv));
  TRY(cudaFree(dFv));
  TRY(cudaFree(dQv));

  double worst = 0, total = 0;
  for (int i = 0; i < n; i++) {
    const Box& home = boxes[i / perBox];
    double v = 0, x = 0;
    for (int j = 0; j < n; j++) {
      const Box& other = boxes[j / perBox];
      if (std::abs(home.x - other.x) > 1 || std::abs(home.y - other.y) > 1 || std::abs(home.z - other.z) > 1) continue;
      double r2 = rv[i].v + rv[j].v - rv[i].x * rv[j].x - rv[i].y * rv[j].y - rv[i].z * rv[j].z;
      double w = std::exp(-2 * par.alpha * par.alpha * r2);
      v += qv[j] * w;
      x += qv[j] * 2 * w * (rv[i].x - rv[j].x);
    }
    worst = std::fmax(worst, std::fabs(v - fv[i].v) + std::fabs(x - fv[i].x));
    total += fv[i].v;
  }
  std::printf("%d boxes, %d particles, potential %.2f\n", count, n, total);
  std::puts(worst < 1e-9 ? "PASSED" : "FAILED");
  return worst < 1e-9 ? 0 : 1;
}
