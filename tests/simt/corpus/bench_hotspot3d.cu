// title: Temperatures in three dimensions, each thread a column, three planes in registers
// features: restrict, read_only_cache, pointer_swap
// args: 32 6 12

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <vector>

static void die(const char* what, cudaError_t e) {
  std::cerr << what << ": " << cudaGetErrorString(e) << "\n";
  std::exit(1);
}
#define DO(x) if (cudaError_t e_ = x) die(#x, e_)

struct Coefficients { float ce, cw, cn, cs, ct, cb, cc, step, ambient; };

__global__ void hotspotOpt1(const float* __restrict__ p, const float* __restrict__ tIn, float* __restrict__ tOut, int nx, int ny, int nz,
                            const Coefficients k) {
  const float amb = k.step * k.ct * k.ambient;
  const int i = blockDim.x * blockIdx.x + threadIdx.x, j = blockDim.y * blockIdx.y + threadIdx.y;
  if (i >= nx || j >= ny) return;
  int c = i + j * nx;
  const int xy = nx * ny;
  const int W = i == 0 ? c : c - 1, E = i == nx - 1 ? c : c + 1, N = j == 0 ? c : c - nx, S = j == ny - 1 ? c : c + nx;
  const int dW = W - c, dE = E - c, dN = N - c, dS = S - c;
  float below = __ldg(tIn + c), here = below, above = nz > 1 ? __ldg(tIn + c + xy) : here;
  for (int z = 0; z < nz; z++) {
    tOut[c] = k.cc * here + k.cw * tIn[c + dW] + k.ce * tIn[c + dE] + k.cs * tIn[c + dS] + k.cn * tIn[c + dN] + k.cb * below + k.ct * above +
              k.step * p[c] + amb;
    c += xy;
    below = here;
    here = above;
    above = z + 2 < nz ? __ldg(tIn + c + xy) : here;
  }
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 32, layers = argc > 2 ? atoi(argv[2]) : 6, iterations = argc > 3 ? atoi(argv[3]) : 12;
  const int size = n * n * layers;
  std::vector<float> power(size), temp(size), got(size);
  for (int i = 0; i < size; i++) {
    power[i] = (float)(i * 37 % 101) / 100;
    temp[i] = 320 + (float)(i * 53 % 89) / 8;
  }
  Coefficients k;
  k.step = 0.01f, k.ambient = 80;
  k.ce = k.cw = 0.08f, k.cn = k.cs = 0.06f, k.ct = k.cb = 0.05f;
  k.cc = 1.0f - (2 * k.ce + 2 * k.cn + 2 * k.ct + k.step * k.ct);
  float *dp, *a, *b;
  DO(cudaMalloc(&dp, size * sizeof(float)));
  DO(cudaMalloc(&a, size * sizeof(float)));
  DO(cudaMalloc(&b, size * sizeof(float)));
  DO(cudaMemcpy(dp, power.data(), size * sizeof(float), cudaMemcpyHostToDevice));
  DO(cudaMemcpy(a, temp.data(), size * sizeof(float), cudaMemcpyHostToDevice));
  DO(cudaFuncSetCacheConfig(hotspotOpt1, cudaFuncCachePreferL1));
  dim3 block(32, 4), grid((n + 31) / 32, (n + 3) / 4);
  for (int t = 0; t < iterations; t++) {
    hotspotOpt1<<<grid, block>>>(dp, a, b, n, n, layers, k);
    DO(cudaGetLastError());
    std::swap(a, b);
  }
  DO(cudaMemcpy(got.data(), a, size * sizeof(float), cudaMemcpyDeviceToHost));
  DO(cudaFree(dp));
  DO(cudaFree(a));
  DO(cudaFree(b));
  std::vector<double> u(temp.begin(), temp.end()), v(size);
  auto at = [&](int x, int y, int z) {
    return u[(std::clamp(z, 0, layers - 1) * n + std::clamp(y, 0, n - 1)) * n + std::clamp(x, 0, n - 1)];
  };
  for (int t = 0; t < iterations; t++) {
    for (int z = 0, i = 0; z < layers; z++)
      for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++, i++)
          v[i] = k.cc * at(x, y, z) + k.cw * at(x - 1, y, z) + k.ce * at(x + 1, y, z) + k.cs * at(x, y + 1, z) + k.cn * at(x, y - 1, z) +
                 k.cb * at(x, y, z - 1) + k.ct * at(x, y, z + 1) + (double)k.step * power[i] + (double)k.step * k.ct * k.ambient;
    u = v;
  }
  double error = 0, mean = 0;
  for (int i = 0; i < size; i++) error += (got[i] - u[i]) * (got[i] - u[i]) / size, mean += got[i] / size;
  std::cout.precision(5);
  std::cout << "mean temperature " << mean << ", accuracy better than 1e-3: " << (std::sqrt(error) < 1e-3 ? "yes" : "no") << "\n";
  bool ok = std::sqrt(error) < 1e-3;
  std::cout << (ok ? "PASSED" : "FAILED") << "\n";
  return ok ? 0 : 1;
}
