// title: Histograms of an image: equal bins, given bins, and three of four channels
// features: cub_device
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define gpuErrchk(ans) \
  { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line) {
  if (code != cudaSuccess) {
    fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
    exit(code);
  }
}

const int width = 64, height = 48, pixels = width * height;

// Brightness after equalization: what is darker than a value, as a part of 255.
__global__ void equalize(const float *gray, const int *below, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pixels) return;
  int bin = (int)(gray[i] * 16.0f);
  out[i] = 255.0f * below[bin] / pixels;
}

int main(void) {
  uchar4 *image = (uchar4 *)malloc(pixels * sizeof(uchar4));
  float *gray = (float *)malloc(pixels * sizeof(float)), *equal = (float *)malloc(pixels * sizeof(float));
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      int i = y * width + x;
      image[i] = make_uchar4(4 * x, 5 * y, (x * y) & 255, 255);
      gray[i] = (float)((x * 13 + y * y * 7) % 256) / 256.0f;
    }
  uchar4 *d_image;
  float *d_gray, *d_equal, *d_levels;
  int *d_hist[3], *d_even, *d_below, *d_range;
  gpuErrchk(cudaMalloc(&d_image, pixels * sizeof(uchar4)));
  gpuErrchk(cudaMalloc(&d_gray, pixels * sizeof(float)));
  gpuErrchk(cudaMalloc(&d_equal, pixels * sizeof(float)));
  for (int c = 0; c < 3; c++) gpuErrchk(cudaMalloc(&d_hist[c], 256 * sizeof(int)));
  gpuErrchk(cudaMalloc(&d_even, 16 * sizeof(int)));
  gpuErrchk(cudaMalloc(&d_below, 16 * sizeof(int)));
  gpuErrchk(cudaMalloc(&d_range, 4 * sizeof(int)));
  const float levels[5] = {0.0f, 0.1f, 0.25f, 0.5f, 0.75f};
  gpuErrchk(cudaMalloc(&d_levels, sizeof(levels)));
  gpuErrchk(cudaMemcpy(d_levels, levels, sizeof(levels), cudaMemcpyHostToDevice));
  gpuErrchk(cudaMemcpy(d_image, image, pixels * sizeof(uchar4), cudaMemcpyHostToDevice));
  gpuErrchk(cudaMemcpy(d_gray, gray, pixels * sizeof(float), cudaMemcpyHostToDevice));

  void *temp = NULL;
  size_t bytes = 0;
  int num_levels[3] = {257, 257, 257}, lower[3] = {0, 0, 0}, upper[3] = {256, 256, 256};
  gpuErrchk((cub::DeviceHistogram::MultiHistogramEven<4, 3>(temp, bytes, (unsigned char *)d_image, d_hist, num_levels,
                                                            lower, upper, pixels)));
  gpuErrchk(cudaMalloc(&temp, bytes));
  gpuErrchk((cub::DeviceHistogram::MultiHistogramEven<4, 3>(temp, bytes, (unsigned char *)d_image, d_hist, num_levels,
                                                            lower, upper, pixels)));
  gpuErrchk(cudaFree(temp));

  temp = NULL;
  gpuErrchk(cub::DeviceHistogram::HistogramEven(temp, bytes, d_gray, d_even, 17, 0.0f, 1.0f, pixels));
  gpuErrchk(cudaMalloc(&temp, bytes));
  gpuErrchk(cub::DeviceHistogram::HistogramEven(temp, bytes, d_gray, d_even, 17, 0.0f, 1.0f, pixels));
  gpuErrchk(cudaFree(temp));

  temp = NULL;
  gpuErrchk(cub::DeviceHistogram::HistogramRange(temp, bytes, d_gray, d_range, 5, d_levels, pixels));
  gpuErrchk(cudaMalloc(&temp, bytes));
  gpuErrchk(cub::DeviceHistogram::HistogramRange(temp, bytes, d_gray, d_range, 5, d_levels, pixels));
  gpuErrchk(cudaFree(temp));

  temp = NULL;
  gpuErrchk(cub::DeviceScan::InclusiveSum(temp, bytes, d_even, d_below, 16));
  gpuErrchk(cudaMalloc(&temp, bytes));
  gpuErrchk(cub::DeviceScan::InclusiveSum(temp, bytes, d_even, d_below, 16));
  equalize<<<(pixels + 191) / 192, 192>>>(d_gray, d_below, d_equal);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaMemcpy(equal, d_equal, pixels * sizeof(float), cudaMemcpyDeviceToHost));

  int got[3][256], even[16], range[4], expected[3][256], even_ref[16], range_ref[4], wrong = 0;
  memset(expected, 0, sizeof(expected));
  memset(even_ref, 0, sizeof(even_ref));
  memset(range_ref, 0, sizeof(range_ref));
  for (int c = 0; c < 3; c++) gpuErrchk(cudaMemcpy(got[c], d_hist[c], sizeof(got[c]), cudaMemcpyDeviceToHost));
  gpuErrchk(cudaMemcpy(even, d_even, sizeof(even), cudaMemcpyDeviceToHost));
  gpuErrchk(cudaMemcpy(range, d_range, sizeof(range), cudaMemcpyDeviceToHost));
  for (int i = 0; i < pixels; i++) {
    expected[0][image[i].x]++;
    expected[1][image[i].y]++;
    expected[2][image[i].z]++;
    even_ref[(int)(gray[i] * 16)]++;
    for (int k = 0; k < 4; k++)
      if (gray[i] >= levels[k] && gray[i] < levels[k + 1]) range_ref[k]++;
  }
  wrong += memcmp(got, expected, sizeof(got)) != 0;
  wrong += memcmp(even, even_ref, sizeof(even)) != 0;
  wrong += memcmp(range, range_ref, sizeof(range)) != 0;
  for (int i = 0; i < pixels; i++) {
    int below = 0;
    for (int k = 0; k <= (int)(gray[i] * 16); k++) below += even_ref[k];
    if (equal[i] != 255.0f * below / pixels) wrong++;
  }
  printf("even: ");
  for (int k = 0; k < 16; k++) printf("%d ", even[k]);
  printf("\nranges: %d %d %d %d\nred 0: %d, green 255: %d, blue 0: %d\n", range[0], range[1], range[2], range[3],
         got[0][0], got[1][255], got[2][0]);

  cudaFree(temp);
  cudaFree(d_image);
  cudaFree(d_gray);
  cudaFree(d_equal);
  cudaFree(d_levels);
  for (int c = 0; c < 3; c++) cudaFree(d_hist[c]);
  cudaFree(d_even);
  cudaFree(d_below);
  cudaFree(d_range);
  free(image);
  free(gray);
  free(equal);
  printf(wrong ? "FAILED\n" : "PASSED\n");
  return wrong != 0;
}
