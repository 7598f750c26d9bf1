// title: F^H d of an iterative MRI reconstruction, with samples of k-space in constant memory, chunk by chunk
// features: constant_memory, math_functions, device_structs

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define PI 3.1415926535897932384626433832795029f
#define PIx2 6.2831853071795864769252867665590058f
#define CHUNK_SIZE 64
#define FHD_THREADS_PER_BLOCK 96

#define cutilSafeCall(x)                                                             \
  if ((x) != cudaSuccess) {                                                          \
    fprintf(stderr, "%s, %d: %s\n", __FILE__, __LINE__, cudaGetErrorString(x));      \
    exit(1);                                                                         \
  }

struct kdata {
  float x, y, z;
};

__constant__ kdata k_c[CHUNK_SIZE];
__constant__ float2 mu_c[CHUNK_SIZE];

__global__ void cmpMu(int M, const float *rPhi, const float *iPhi, const float *rD, const float *iD, float2 *mu) {
  int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m >= M) return;
  mu[m] = make_float2(rPhi[m] * rD[m] + iPhi[m] * iD[m], rPhi[m] * iD[m] - iPhi[m] * rD[m]);
}

__global__ void cmpFhD(const float *x, const float *y, const float *z, float *rFhD, float *iFhD, int count, int N) {
  int n = blockIdx.x * FHD_THREADS_PER_BLOCK + threadIdx.x;
  if (n >= N) return;
  float xn_r = x[n], yn_r = y[n], zn_r = z[n];
  float rFhDn_r = rFhD[n], iFhDn_r = iFhD[n];
  for (int m = 0; m < count; m++) {
    float expFhD = PIx2 * (k_c[m].x * xn_r + k_c[m].y * yn_r + k_c[m].z * zn_r);
    float cArg, sArg;
    sincosf(expFhD, &sArg, &cArg);
    rFhDn_r += mu_c[m].x * cArg - mu_c[m].y * sArg;
    iFhDn_r += mu_c[m].y * cArg + mu_c[m].x * sArg;
  }
  rFhD[n] = rFhDn_r;
  iFhD[n] = iFhDn_r;
}

static float unit(unsigned i, unsigned salt) {
  unsigned h = (i + 1) * 2654435761u ^ salt * 40503u;
  h ^= h >> 15;
  h *= 2246822519u;
  return (float)(h >> 16) / 65536.0f - 0.5f;
}

static float *array(int n, unsigned salt, float scale) {
  float *p = (float *)malloc(n * sizeof(float));
  for (int i = 0; i < n; i++) p[i] = scale * unit(i, salt);
  return p;
}

static float *to_device(const float *h, int n) {
  float *d;
  cutilSafeCall(cudaMalloc(&d, n * sizeof(float)));
  cutilSafeCall(cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice));
  return d;
}

int main(int argc, char **argv) {
  const int M = argc > 1 ? atoi(argv[1]) : 150, N = argc > 2 ? atoi(argv[2]) : 500;
  float *rPhi = array(M, 1, 2), *iPhi = array(M, 2, 2), *rD = array(M, 3, 1), *iD = array(M, 4, 1);
  float *kx = array(M, 5, 4), *ky = array(M, 6, 4), *kz = array(M, 7, 4);
  float *x = array(N, 8, 1), *y = array(N, 9, 1), *z = array(N, 10, 1);

  float *d_rPhi = to_device(rPhi, M), *d_iPhi = to_device(iPhi, M), *d_rD = to_device(rD, M), *d_iD = to_device(iD, M);
  float *d_x = to_device(x, N), *d_y = to_device(y, N), *d_z = to_device(z, N), *d_r, *d_i;
  float2 *d_mu;
  cutilSafeCall(cudaMalloc(&d_mu, M * sizeof(float2)));
  cutilSafeCall(cudaMalloc(&d_r, N * sizeof(float)));
  cutilSafeCall(cudaMalloc(&d_i, N * sizeof(float)));
  cutilSafeCall(cudaMemset(d_r, 0, N * sizeof(float)));
  cutilSafeCall(cudaMemset(d_i, 0, N * sizeof(float)));

  cmpMu<<<(M + 63) / 64, 64>>>(M, d_rPhi, d_iPhi, d_rD, d_iD, d_mu);
  cutilSafeCall(cudaGetLastError());
  for (int first = 0; first < M; first += CHUNK_SIZE) {
    int count = M - first < CHUNK_SIZE ? M - first : CHUNK_SIZE;
    kdata chunk[CHUNK_SIZE];
    for (int m = 0; m < count; m++) chunk[m] = {kx[first + m], ky[first + m], kz[first + m]};
    cutilSafeCall(cudaMemcpyToSymbol(k_c, chunk, count * sizeof(kdata)));
    cutilSafeCall(cudaMemcpyToSymbol(mu_c, d_mu + first, count * sizeof(float2), 0, cudaMemcpyDeviceToDevice));
    cmpFhD<<<(N + FHD_THREADS_PER_BLOCK - 1) / FHD_THREADS_PER_BLOCK, FHD_THREADS_PER_BLOCK>>>(d_x, d_y, d_z, d_r, d_i,
                                                                                           count, N);
    cutilSafeCall(cudaGetLastError());
  }
  float *r = (float *)malloc(N * sizeof(float)), *i = (float *)malloc(N * sizeof(float));
  cutilSafeCall(cudaMemcpy(r, d_r, N * sizeof(float), cudaMemcpyDeviceToHost));
  cutilSafeCall(cudaMemcpy(i, d_i, N * sizeof(float), cudaMemcpyDeviceToHost));

  double worst = 0, energy = 0;
  for (int n = 0; n < N; n++) {
    double re = 0, im = 0;
    for (int m = 0; m < M; m++) {
      double angle = 2 * M_PI * ((double)kx[m] * x[n] + (double)ky[m] * y[n] + (double)kz[m] * z[n]);
      double mr = (double)rPhi[m] * rD[m] + (double)iPhi[m] * iD[m];
      double mi = (double)rPhi[m] * iD[m] - (double)iPhi[m] * rD[m];
      re += mr * cos(angle) - mi * sin(angle);
      im += mi * cos(angle) + mr * sin(angle);
    }
    worst = fmax(worst, fmax(fabs(re - r[n]), fabs(im - i[n])));
    energy += (double)r[n] * r[n] + (double)i[n] * i[n];
  }
  printf("%d samples, %d voxels, energy %.3g\n", M, N, energy);
  int bad = !(worst < 1e-3) || !(energy > 1);
  for (float *p : {d_rPhi, d_iPhi, d_rD, d_iD, d_x, d_y, d_z, d_r, d_i}) cudaFree(p);
  cudaFree(d_mu);
  for (float *p : {rPhi, iPhi, rD, iD, kx, ky, kz, x, y, z, r, i}) free(p);
  puts(bad ? "FAILED" : "PASSED");
  return bad;
}
