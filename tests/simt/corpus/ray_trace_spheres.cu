// title: ray tracer of spheres in constant memory, timed with events
// features: constant_memory, device_structs, events

#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define INF 2e10f
#define SPHERES 12
#define DIM 96
#define rnd(x) (x * next_random() / 32768.0f)

#define HANDLE_ERROR(err)                                                                  \
  do {                                                                                     \
    cudaError_t e = err;                                                                   \
    if (e != cudaSuccess) {                                                                \
      fprintf(stderr, "%s in %s at line %d\n", cudaGetErrorString(e), __FILE__, __LINE__); \
      exit(EXIT_FAILURE);                                                                  \
    }                                                                                      \
  } while (0)

static int next_random() {
  static unsigned state = 7;
  state = state * 1103515245u + 12345u;
  return (int)(state >> 16 & 0x7fff);
}

struct Sphere {
  float r, b, g;
  float radius;
  float x, y, z;
  __device__ float hit(float ox, float oy, float *n) const {
    float dx = ox - x;
    float dy = oy - y;
    if (dx * dx + dy * dy < radius * radius) {
      float dz = sqrtf(radius * radius - dx * dx - dy * dy);
      *n = dz / sqrtf(radius * radius);
      return dz + z;
    }
    return -INF;
  }
};

__constant__ Sphere s[SPHERES];

__device__ void trace(const Sphere *spheres, unsigned char *ptr) {
  int x = threadIdx.x + blockIdx.x * blockDim.x;
  int y = threadIdx.y + blockIdx.y * blockDim.y;
  int offset = x + y * blockDim.x * gridDim.x;
  float ox = (x - DIM / 2);
  float oy = (y - DIM / 2);

  float r = 0, g = 0, b = 0;
  float maxz = -INF;
  for (int i = 0; i < SPHERES; i++) {
    float n;
    float t = spheres[i].hit(ox, oy, &n);
    if (t > maxz) {
      float fscale = n;
      r = spheres[i].r * fscale;
      g = spheres[i].g * fscale;
      b = spheres[i].b * fscale;
      maxz = t;
    }
  }
  ptr[offset * 4 + 0] = (int)(r * 255);
  ptr[offset * 4 + 1] = (int)(g * 255);
  ptr[offset * 4 + 2] = (int)(b * 255);
  ptr[offset * 4 + 3] = 255;
}

__global__ void kernel_constant(unsigned char *ptr) { trace(s, ptr); }
__global__ void kernel_global(const Sphere *spheres, unsigned char *ptr) { trace(spheres, ptr); }

static void reference(const Sphere *spheres, int x, int y, double rgb[3]) {
  double nearest = -INF;
  rgb[0] = rgb[1] = rgb[2] = 0;
  for (int i = 0; i < SPHERES; i++) {
    double dx = x - DIM / 2 - spheres[i].x, dy = y - DIM / 2 - spheres[i].y, radius = spheres[i].radius;
    double below = radius * radius - dx * dx - dy * dy;
    if (below <= 0 || sqrt(below) + spheres[i].z <= nearest) continue;
    nearest = sqrt(below) + spheres[i].z;
    rgb[0] = spheres[i].r * sqrt(below) / radius * 255;
    rgb[1] = spheres[i].g * sqrt(below) / radius * 255;
    rgb[2] = spheres[i].b * sqrt(below) / radius * 255;
  }
}

int main(void) {
  cudaEvent_t start, stop;
  HANDLE_ERROR(cudaEventCreate(&start));
  HANDLE_ERROR(cudaEventCreateWithFlags(&stop, cudaEventBlockingSync));
  HANDLE_ERROR(cudaEventRecord(start, 0));

  const int size = DIM * DIM * 4;
  unsigned char *bitmap = (unsigned char *)malloc(size), *dev_bitmap;
  HANDLE_ERROR(cudaMalloc((void **)&dev_bitmap, size));

  Sphere *temp_s = (Sphere *)malloc(sizeof(Sphere) * SPHERES);
  for (int i = 0; i < SPHERES; i++) {
    temp_s[i].r = rnd(1.0f);
    temp_s[i].g = rnd(1.0f);
    temp_s[i].b = rnd(1.0f);
    temp_s[i].x = rnd(80.0f) - 40;
    temp_s[i].y = rnd(80.0f) - 40;
    temp_s[i].z = rnd(80.0f) - 40;
    temp_s[i].radius = rnd(12.0f) + 6;
  }
  HANDLE_ERROR(cudaMemcpyToSymbol(s, temp_s, sizeof(Sphere) * SPHERES));
  Sphere *dev_s;
  HANDLE_ERROR(cudaMalloc((void **)&dev_s, sizeof(Sphere) * SPHERES));
  HANDLE_ERROR(cudaMemcpy(dev_s, temp_s, sizeof(Sphere) * SPHERES, cudaMemcpyHostToDevice));

  int failures = 0;
  for (int version = 0; version < 2; version++) {
    dim3 grids(DIM / 16, DIM / 16);
    dim3 threads(16, 16);
    HANDLE_ERROR(cudaMemset(dev_bitmap, 0, size));
    if (version == 0)
      kernel_constant<<<grids, threads>>>(dev_bitmap);
    else
      kernel_global<<<grids, threads>>>(dev_s, dev_bitmap);
    HANDLE_ERROR(cudaGetLastError());
    HANDLE_ERROR(cudaMemcpy(bitmap, dev_bitmap, size, cudaMemcpyDeviceToHost));

    // Where two spheres meet, rounding may choose the other one: a few pixels may differ.
    int differ = 0, lit = 0;
    for (int y = 0; y < DIM; y++)
      for (int x = 0; x < DIM; x++) {
        double rgb[3];
        reference(temp_s, x, y, rgb);
        const unsigned char *pixel = bitmap + 4 * (y * DIM + x);
        int far = pixel[3] != 255;
        for (int c = 0; c < 3; c++) far |= fabs(pixel[c] - rgb[c]) > 1.5;
        differ += far;
        lit += pixel[0] + pixel[1] + pixel[2] > 0;
      }
    printf("%s memory: about %d %% of the picture is lit, %s\n", version ? "global" : "constant",
           (int)(lit * 100.0 / (DIM * DIM) + 0.5), differ <= 5 ? "as expected" : "WRONG");
    failures += differ > 5;
  }
  float elapsedTime;
  HANDLE_ERROR(cudaEventRecord(stop, 0));
  HANDLE_ERROR(cudaEventSynchronize(stop));
  HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
  fprintf(stderr, "Time to generate:  %3.1f ms\n", elapsedTime);
  failures += !(elapsedTime >= 0);

  HANDLE_ERROR(cudaEventDestroy(start));
  HANDLE_ERROR(cudaEventDestroy(stop));
  HANDLE_ERROR(cudaFree(dev_bitmap));
  HANDLE_ERROR(cudaFree(dev_s));
  free(bitmap);
  free(temp_s);
  puts(failures ? "FAILED" : "PASSED");
  return failures ? 1 : 0;
}
