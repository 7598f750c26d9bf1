// title: electrostatic potential map: direct summation by scatter and by gather, coarsened, and with a cutoff grid
// features: constant_memory, atomics, math_functions, thread_indexing

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHUNK_SIZE 100
#define COARSEN_FACTOR 4
#define GRID_X 64
#define GRID_Y 24

__constant__ float atoms[CHUNK_SIZE * 4];

#define CK(call)                                                               \
  do {                                                                         \
    cudaError_t e = (call);                                                    \
    if (e) {                                                                   \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorName(e)); \
      exit(EXIT_FAILURE);                                                      \
    }                                                                          \
  } while (0)

// A thread per atom; adds to all points of the slice.
__global__ void cenergy_scatter(float* energygrid, dim3 grid, float gridspacing, float z, const float4* all,
                                int numatoms) {
  int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= numatoms) return;
  float dz = z - all[n].z, charge = all[n].w;
  for (unsigned j = 0; j < grid.y; j++) {
    float dy = gridspacing * j - all[n].y;
    for (unsigned i = 0; i < grid.x; i++) {
      float dx = gridspacing * i - all[n].x;
      atomicAdd(&energygrid[grid.x * j + i], charge / sqrtf(dx * dx + dy * dy + dz * dz));
    }
  }
}

// A thread per point; reads all atoms from constant memory.
__global__ void cenergy_gather(float* energygrid, dim3 grid, float gridspacing, float z, int numatoms) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= grid.x || j >= grid.y) return;
  float y = gridspacing * (float)j, x = gridspacing * (float)i, energy = 0.0f;
  for (int n = 0; n < numatoms * 4; n += 4) {
    float dx = x - atoms[n], dy = y - atoms[n + 1], dz = z - atoms[n + 2];
    energy += atoms[n + 3] / sqrtf(dx * dx + dy * dy + dz * dz);
  }
  energygrid[grid.x * j + i] += energy;
}

// Four points per thread, a block's width apart: writes are coalesced.
__global__ void cenergy_coarsened(float* energygrid, dim3 grid, float gridspacing, float z, int numatoms) {
  unsigned i = blockIdx.x * (blockDim.x * COARSEN_FACTOR) + threadIdx.x;
  unsigned j = blockIdx.y * blockDim.y + threadIdx.y;
  if (j >= grid.y) return;
  float y = gridspacing * (float)j, x = gridspacing * (float)i;
  float energy[COARSEN_FACTOR] = {0.0f};
  for (int n = 0; n < numatoms * 4; n += 4) {
    float dx0 = x - atoms[n], dy = y - atoms[n + 1], dz = z - atoms[n + 2];
    float dysqdzsq = dy * dy + dz * dz, charge = atoms[n + 3];
#pragma unroll
    for (int c = 0; c < COARSEN_FACTOR; c++) {
      float dx = dx0 + c * blockDim.x * gridspacing;
      energy[c] += charge * rsqrtf(dx * dx + dysqdzsq);
    }
  }
  for (int c = 0; c < COARSEN_FACTOR; c++)
    if (i + c * blockDim.x < grid.x) energygrid[grid.x * j + i + c * blockDim.x] += energy[c];
}

struct Bins {
  int nx, ny, capacity;
  float length;
};

// Atoms are sorted into bins; a point looks at its bin and the neighbours only.
__global__ void cenergy_cutoff(float* energygrid, dim3 grid, float gridspacing, float z, const float4* binned,
                               const int* counts, Bins bins, float cutoff2) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= grid.x || j >= grid.y) return;
  float x = gridspacing * i, y = gridspacing * j, energy = 0;
  int bx = (int)(x / bins.length), by = (int)(y / bins.length);
  for (int v = max(by - 1, 0); v <= min(by + 1, bins.ny - 1); v++)
    for (int u = max(bx - 1, 0); u <= min(bx + 1, bins.nx - 1); u++) {
      int bin = v * bins.nx + u;
      for (int n = 0; n < counts[bin]; n++) {
        float4 a = binned[bin * bins.capacity + n];
        float r2 = (x - a.x) * (x - a.x) + (y - a.y) * (y - a.y) + (z - a.z) * (z - a.z);
        if (r2 < cutoff2) energy += a.w * rsqrtf(r2) * (1 - r2 / cutoff2);
      }
    }
  energygrid[grid.x * j + i] += energy;
}

int main() {
  const int numatoms = 230;
  const float spacing = 0.25f, z = 0.37f, cutoff = 3.0f;
  const dim3 grid(GRID_X, GRID_Y, 1);
  std::vector<float4> a(numatoms);
  for (int n = 0; n < numatoms; n++)
    a[n] = make_float4((n * 37 % 128) * 0.125f + 0.06f, (n * 53 % 48) * 0.125f + 0.04f, 1.0f + n % 5,
                       n % 2 ? 1.0f : -0.75f);

  const Bins bins = {6, 2, 64, cutoff};
  std::vector<int> counts(bins.nx * bins.ny, 0);
  std::vector<float4> binned(counts.size() * bins.capacity, make_float4(0, 0, 0, 0));
  for (const float4& atom : a) {
    int bin = (int)(atom.y / bins.length) * bins.nx + (int)(atom.x / bins.length);
    if (counts[bin] == bins.capacity) return 2;
    binned[bin * bins.capacity + counts[bin]++] = atom;
  }

  const size_t points = grid.x * grid.y;
  std::vector<double> direct(points, 0.0), within(points, 0.0);
  for (size_t p = 0; p < points; p++)
    for (const float4& atom : a) {
      double dx = (double)spacing * (p % grid.x) - atom.x, dy = (double)spacing * (p / grid.x) - atom.y,
             dz = z - atom.z;
      double r2 = dx * dx + dy * dy + dz * dz;
      direct[p] += atom.w / std::sqrt(r2);
      if (r2 < cutoff * cutoff) within[p] += atom.w / std::sqrt(r2) * (1 - r2 / (cutoff * cutoff));
    }

  float* d_energy;
  float4 *d_atoms, *d_binned;
  int* d_counts;
  CK(cudaMalloc(&d_energy, points * sizeof(float)));
  CK(cudaMalloc(&d_atoms, numatoms * sizeof(float4)));
  CK(cudaMalloc(&d_binned, binned.size() * sizeof(float4)));
  CK(cudaMalloc(&d_counts, counts.size() * sizeof(int)));
  CK(cudaMemcpy(d_atoms, a.data(), numatoms * sizeof(float4), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_binned, binned.data(), binned.size() * sizeof(float4), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_counts, counts.data(), counts.size() * sizeof(int), cudaMemcpyHostToDevice));

  const char* names[] = {"scatter", "gather", "coarsened", "cutoff"};
  std::vector<float> got(points);
  int failures = 0;
  for (int version = 0; version < 4; version++) {
    CK(cudaMemset(d_energy, 0, points * sizeof(float)));
    dim3 block(16, 8), blocks((grid.x + 15) / 16, (grid.y + 7) / 8);
    if (version == 0) cenergy_scatter<<<(numatoms + 31) / 32, 32>>>(d_energy, grid, spacing, z, d_atoms, numatoms);
    for (int first = 0; first < numatoms && (version == 1 || version == 2); first += CHUNK_SIZE) {
      int count = numatoms - first < CHUNK_SIZE ? numatoms - first : CHUNK_SIZE;
      CK(cudaMemcpyToSymbol(atoms, &a[first], count * sizeof(float4)));
      if (version == 1) cenergy_gather<<<blocks, block>>>(d_energy, grid, spacing, z, count);
      if (version == 2)
        cenergy_coarsened<<<dim3((grid.x + 63) / 64, blocks.y), block>>>(d_energy, grid, spacing, z, count);
    }
    if (version == 3)
      cenergy_cutoff<<<blocks, block>>>(d_energy, grid, spacing, z, d_binned, d_counts, bins, cutoff * cutoff);
    CK(cudaGetLastError());
    CK(cudaMemcpy(got.data(), d_energy, points * sizeof(float), cudaMemcpyDeviceToHost));
    double worst = 0, sum = 0;
    for (size_t p = 0; p < points; p++) {
      worst = std::fmax(worst, std::fabs(got[p] - (version == 3 ? within : direct)[p]));
      sum += got[p];
    }
    printf("%-9s  mean %.3f  %s\n", names[version], sum / points, worst < 1e-3 ? "ok" : "differs");
    failures += !(worst < 1e-3);
  }
  CK(cudaFree(d_energy));
  CK(cudaFree(d_atoms));
  CK(cudaFree(d_binned));
  CK(cudaFree(d_counts));
  puts(failures ? "FAILED" : "PASSED");
  return failures ? 1 : 0;
}
