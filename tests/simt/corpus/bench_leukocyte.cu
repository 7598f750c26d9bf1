// title: Cells in an image: gradient inverse coefficient of variation over circles, then dilation
// features: textures, constant_memory, linear_texture
// args: 80 60

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NPOINTS 36
#define MIN_RAD 5
#define NCIRCLES 4
#define STREL 5

__constant__ float c_sin_angle[NPOINTS], c_cos_angle[NPOINTS];
__constant__ int c_tX[NCIRCLES * NPOINTS], c_tY[NCIRCLES * NPOINTS];
__constant__ float c_strel[STREL * STREL];

static void check(cudaError_t e, int line) {
  if (e != cudaSuccess) {
    fprintf(stderr, "%d: %s\n", line, cudaGetErrorString(e));
    exit(1);
  }
}
#define CHECK(x) check(x, __LINE__)

/* For each pixel the largest mean^2 / variance of the gradient along the normals of circles about it. */
__global__ void gicov_kernel(int w, int h, float *gicov, cudaTextureObject_t grad_x, cudaTextureObject_t grad_y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y, edge = MIN_RAD + NCIRCLES + 2;
  if (i >= w) return;
  float best = 0.0f;
  if (i >= edge && i < w - edge && j >= edge && j < h - edge)
    for (int k = 0; k < NCIRCLES; k++) {
      float sum = 0.0f, M2 = 0.0f, mean = 0.0f;
      for (int n = 0; n < NPOINTS; n++) {
        int addr = (j + c_tY[k * NPOINTS + n]) * w + i + c_tX[k * NPOINTS + n];
        float p = tex1Dfetch<float>(grad_x, addr) * c_cos_angle[n] + tex1Dfetch<float>(grad_y, addr) * c_sin_angle[n];
        sum += p;
        float delta = p - mean; /* Welford */
        mean = mean + delta / (float)(n + 1);
        M2 = M2 + delta * (p - mean);
      }
      mean = sum / (float)NPOINTS;
      float var = M2 / (float)(NPOINTS - 1);
      if (var > 1e-6f && mean * mean / var > best) best = mean * mean / var;
    }
  gicov[j * w + i] = best;
}

__global__ void dilate_kernel(int w, int h, cudaTextureObject_t img, float *dilated) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= w * h) return;
  int i = t / w, j = t % w;
  float max = 0.0f;
  for (int el_i = 0; el_i < STREL; el_i++)
    for (int el_j = 0; el_j < STREL; el_j++) {
      int y = i - STREL / 2 + el_i, x = j - STREL / 2 + el_j;
      if (y >= 0 && x >= 0 && y < h && x < w && c_strel[el_i * STREL + el_j] != 0) {
        float temp = tex1Dfetch<float>(img, y * w + x);
        if (temp > max) max = temp;
      }
    }
  dilated[t] = max;
}

static cudaTextureObject_t bind(float *p, size_t bytes) {
  cudaResourceDesc r;
  cudaTextureDesc d;
  cudaTextureObject_t t;
  memset(&r, 0, sizeof r);
  memset(&d, 0, sizeof d);
  r.resType = cudaResourceTypeLinear;
  r.res.linear.devPtr = p;
  r.res.linear.desc = cudaCreateChannelDesc<float>();
  r.res.linear.sizeInBytes = bytes;
  d.readMode = cudaReadModeElementType;
  CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
  return t;
}

int main(int argc, char **argv) {
  const int w = argc > 1 ? atoi(argv[1]) : 80, h = argc > 2 ? atoi(argv[2]) : 60, size = w * h;
  const int cells[3][3] = {{22, 20, 6}, {55, 30, 7}, {30, 42, 5}};
  float sin_a[NPOINTS], cos_a[NPOINTS], strel[STREL * STREL];
  int tX[NCIRCLES * NPOINTS], tY[NCIRCLES * NPOINTS], i, j, k, n;
  for (n = 0; n < NPOINTS; n++) {
    double theta = n * 2.0 * M_PI / NPOINTS;
    sin_a[n] = (float)sin(theta);
    cos_a[n] = (float)cos(theta);
    for (k = 0; k < NCIRCLES; k++) {
      tX[k * NPOINTS + n] = (int)floor(cos(theta + 1e-9) * (MIN_RAD + k) + 0.5);
      tY[k * NPOINTS + n] = (int)floor(sin(theta + 1e-9) * (MIN_RAD + k) + 0.5);
    }
  }
  for (i = 0; i < STREL * STREL; i++) strel[i] = (i / STREL - 2) * (i / STREL - 2) + (i % STREL - 2) * (i % STREL - 2) <= 5;
  float *img = (float *)malloc(size * sizeof(float)), *gx = (float *)calloc(size, sizeof(float)), *gy = (float *)calloc(size, sizeof(float));
  float *gicov = (float *)malloc(size * sizeof(float)), *dil = (float *)malloc(size * sizeof(float));
  for (j = 0; j < h; j++)
    for (i = 0; i < w; i++) {
      img[j * w + i] = 50.0f + (i * 5 + j * 3) % 4;
      for (k = 0; k < 3; k++) {
        double d = sqrt(pow(i - cells[k][0], 2.0) + pow(j - cells[k][1], 2.0));
        img[j * w + i] += (float)(80 / (1 + exp(2 * (d - cells[k][2]))));
      }
    }
  for (j = 1; j < h - 1; j++)
    for (i = 1; i < w - 1; i++) {
      gx[j * w + i] = (img[j * w + i + 1] - img[j * w + i - 1]) / 2;
      gy[j * w + i] = (img[(j + 1) * w + i] - img[(j - 1) * w + i]) / 2;
    }
  CHECK(cudaMemcpyToSymbol(c_sin_angle, sin_a, sizeof sin_a));
  CHECK(cudaMemcpyToSymbol(c_cos_angle, cos_a, sizeof cos_a));
  CHECK(cudaMemcpyToSymbol(c_tX, tX, sizeof tX));
  CHECK(cudaMemcpyToSymbol(c_tY, tY, sizeof tY));
  CHECK(cudaMemcpyToSymbol(c_strel, strel, sizeof strel));
  float *d_gx, *d_gy, *d_gicov, *d_dil;
  CHECK(cudaMalloc((void **)&d_gx, size * sizeof(float)));
  CHECK(cudaMalloc((void **)&d_gy, size * sizeof(float)));
  CHECK(cudaMalloc((void **)&d_gicov, size * sizeof(float)));
  CHECK(cudaMalloc((void **)&d_dil, size * sizeof(float)));
  CHECK(cudaMemcpy(d_gx, gx, size * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_gy, gy, size * sizeof(float), cudaMemcpyHostToDevice));
  cudaTextureObject_t tx = bind(d_gx, size * sizeof(float)), ty = bind(d_gy, size * sizeof(float)), tg;
  gicov_kernel<<<dim3((w + 31) / 32, h), 32>>>(w, h, d_gicov, tx, ty);
  CHECK(cudaGetLastError());
  tg = bind(d_gicov, size * sizeof(float));
  dilate_kernel<<<(size + 127) / 128, 128>>>(w, h, tg, d_dil);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(gicov, d_gicov, size * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(dil, d_dil, size * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaDestroyTextureObject(tx));
  CHECK(cudaDestroyTextureObject(ty));
  CHECK(cudaDestroyTextureObject(tg));
  CHECK(cudaFree(d_gx)); CHECK(cudaFree(d_gy)); CHECK(cudaFree(d_gicov)); CHECK(cudaFree(d_dil));

  int bad = 0, peaks = 0;
  const int edge = MIN_RAD + NCIRCLES + 2;
  for (j = edge; j < h - edge; j++)
    for (i = edge; i < w - edge; i++) {
      double best = 0, top = 0;
      for (k = 0; k < NCIRCLES; k++) {
        double s = 0, s2 = 0, p[NPOINTS];
        for (n = 0; n < NPOINTS; n++) {
          int a = (j + tY[k * NPOINTS + n]) * w + i + tX[k * NPOINTS + n];
          p[n] = (double)gx[a] * cos_a[n] + (double)gy[a] * sin_a[n];
          s += p[n] / NPOINTS;
        }
        for (n = 0; n < NPOINTS; n++) s2 += (p[n] - s) * (p[n] - s) / (NPOINTS - 1);
        if (s2 > 1e-6) best = fmax(best, s * s / s2);
      }
      if (fabs(best - gicov[j * w + i]) > 1e-3 * (1 + best)) bad++;
      for (n = 0; n < STREL * STREL; n++)
        if (strel[n] != 0) top = fmax(top, gicov[(j + n / STREL - 2) * w + i + n % STREL - 2]);
      if (top != dil[j * w + i]) bad++;
      if (dil[j * w + i] == gicov[j * w + i] && gicov[j * w + i] > 10) {
        printf("a cell near (%d, %d)\n", i, j);
        peaks++;
      }
    }
  free(img); free(gx); free(gy); free(gicov); free(dil);
  puts(!bad && peaks >= 1 ? "PASSED" : "FAILED");
  return !bad && peaks >= 1 ? 0 : 1;
}
