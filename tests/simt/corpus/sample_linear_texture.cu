// title: Textures on linear and pitched memory: gathers of a sparse product, and a flipped image
// features: textures, pitched_memory, read_only_cache, linear_texture

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cuda_runtime.h>

static void fail(const char *msg, cudaError_t e) {
  fprintf(stderr, "%s: %s\n", msg, cudaGetErrorString(e));
  exit(1);
}
#define TRY(e) { cudaError_t err__ = e; if (err__ != cudaSuccess) fail(#e, err__); }

__global__ void spmv_tex(int rows, const int *ptr, const int *col, const float *val, cudaTextureObject_t x, float *y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float dot = 0;
    for (int j = __ldg(&ptr[row]); j < __ldg(&ptr[row + 1]); j++) dot += __ldg(&val[j]) * tex1Dfetch<float>(x, __ldg(col + j));
    y[row] = dot;
  }
}

__global__ void flip(cudaTextureObject_t src, unsigned char *dst, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) dst[y * w + x] = tex2D<unsigned char>(src, w - 1 - x, h - 1 - y);
}

int sparse_product(void) {
  const int n = 700, per_row = 9;
  int *ptr = (int *)malloc((n + 1) * sizeof(int)), *col = (int *)malloc(n * per_row * sizeof(int));
  float *val = (float *)malloc(n * per_row * sizeof(float)), *x = (float *)malloc(n * sizeof(float));
  float *y = (float *)malloc(n * sizeof(float));
  int nnz = 0, bad = 0;
  for (int i = 0; i < n; i++) {
    ptr[i] = nnz;
    x[i] = (float)(i % 17) / 4;
    for (int k = 0; k < i % (per_row + 1); k++) {
      col[nnz] = (i * 31 + k * 101) % n;
      val[nnz++] = (float)((i + k) % 5) - 2;
    }
  }
  ptr[n] = nnz;
  int *dptr, *dcol;
  float *dval, *dx, *dy;
  TRY(cudaMalloc((void **)&dptr, (n + 1) * sizeof(int)));
  TRY(cudaMalloc((void **)&dcol, nnz * sizeof(int)));
  TRY(cudaMalloc((void **)&dval, nnz * sizeof(float)));
  TRY(cudaMalloc((void **)&dx, n * sizeof(float)));
  TRY(cudaMalloc((void **)&dy, n * sizeof(float)));
  TRY(cudaMemcpy(dptr, ptr, (n + 1) * sizeof(int), cudaMemcpyHostToDevice));
  TRY(cudaMemcpy(dcol, col, nnz * sizeof(int), cudaMemcpyHostToDevice));
  TRY(cudaMemcpy(dval, val, nnz * sizeof(float), cudaMemcpyHostToDevice));
  TRY(cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice));

  cudaResourceDesc res;
  memset(&res, 0, sizeof res);
  res.resType = cudaResourceTypeLinear;
  res.res.linear.devPtr = dx;
  res.res.linear.desc = cudaCreateChannelDesc<float>();
  res.res.linear.sizeInBytes = n * sizeof(float);
  cudaTextureDesc td;
  memset(&td, 0, sizeof td);
  td.readMode = cudaReadModeElementType;
  cudaTextureObject_t tx;
  TRY(cudaCreateTextureObject(&tx, &res, &td, NULL));
  spmv_tex<<<(n + 127) / 128, 128>>>(n, dptr, dcol, dval, tx, dy);
  TRY(cudaGetLastError());
  TRY(cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (int i = 0; i < n; i++) {
    double want = 0;
    for (int j = ptr[i]; j < ptr[i + 1]; j++) want += (double)val[j] * x[col[j]];
    if (fabs(want - y[i]) > 1e-4) bad++;
    sum += y[i];
  }
  printf("product of %d rows and %d values: sum %.2f\n", n, nnz, sum);
  TRY(cudaDestroyTextureObject(tx));
  TRY(cudaFree(dptr)); TRY(cudaFree(dcol)); TRY(cudaFree(dval)); TRY(cudaFree(dx)); TRY(cudaFree(dy));
  free(ptr); free(col); free(val); free(x); free(y);
  return bad;
}

int flip_image(void) {
  const int w = 50, h = 33;
  unsigned char *img = (unsigned char *)malloc(w * h), *back = (unsigned char *)malloc(w * h);
  int bad = 0, i;
  for (i = 0; i < w * h; i++) img[i] = (unsigned char)(i * i % 253);
  unsigned char *d_img, *d_out;
  size_t pitch;
  TRY(cudaMallocPitch((void **)&d_img, &pitch, w, h));
  TRY(cudaMalloc((void **)&d_out, w * h));
  TRY(cudaMemcpy2D(d_img, pitch, img, w, w, h, cudaMemcpyHostToDevice));
  cudaResourceDesc res;
  memset(&res, 0, sizeof res);
  res.resType = cudaResourceTypePitch2D;
  res.res.pitch2D.devPtr = d_img;
  res.res.pitch2D.desc = cudaCreateChannelDesc<unsigned char>();
  res.res.pitch2D.width = w;
  res.res.pitch2D.height = h;
  res.res.pitch2D.pitchInBytes = pitch;
  cudaTextureDesc td;
  memset(&td, 0, sizeof td);
  td.addressMode[0] = td.addressMode[1] = cudaAddressModeClamp;
  cudaTextureObject_t t;
  TRY(cudaCreateTextureObject(&t, &res, &td, NULL));
  flip<<<dim3((w + 31) / 32, (h + 7) / 8), dim3(32, 8)>>>(t, d_out, w, h);
  TRY(cudaGetLastError());
  TRY(cudaMemcpy(back, d_out, w * h, cudaMemcpyDeviceToHost));
  for (i = 0; i < w * h; i++) bad += back[i] != img[w * h - 1 - i];
  printf("flipped %d pixels, first %d, last %d\n", w * h, back[0], back[w * h - 1]);
  TRY(cudaDestroyTextureObject(t));
  TRY(cudaFree(d_img));
  TRY(cudaFree(d_out));
  free(img);
  free(back);
  return bad;
}

int main(void) {
  int bad = sparse_product() + flip_image();
  puts(bad ? "FAILED" : "PASSED");
  return bad ? 1 : 0;
}
