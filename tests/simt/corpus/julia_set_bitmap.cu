// title: Julia set with a class of complex numbers on the device, drawn as characters
// features: device_classes, operator_overloading, thread_indexing
// args: 72

#include <stdio.h>
#include <stdlib.h>

#define DIM_MAX 200
#define STEPS 60

/* Fixed-point numbers with 20 bits after the point, so that every processor rounds in the same way */
typedef long long fixed;
#define ONE (1 << 20)

struct cuComplexFixed {
  fixed r;
  fixed i;
  __host__ __device__ cuComplexFixed(fixed a, fixed b) : r(a), i(b) {}
  __host__ __device__ fixed magnitude2(void) const { return (r * r + i * i) / ONE; }
  __host__ __device__ cuComplexFixed operator*(const cuComplexFixed& a) const {
    return cuComplexFixed((r * a.r - i * a.i) / ONE, (i * a.r + r * a.i) / ONE);
  }
  __host__ __device__ cuComplexFixed operator+(const cuComplexFixed& a) const {
    return cuComplexFixed(r + a.r, i + a.i);
  }
};

class CPUBitmap {
 public:
  unsigned char* pixels;
  int x, y;
  CPUBitmap(int width, int height) {
    pixels = new unsigned char[width * height * 4];
    x = width;
    y = height;
  }
  ~CPUBitmap() { delete[] pixels; }
  unsigned char* get_ptr(void) const { return pixels; }
  long image_size(void) const { return x * y * 4; }
  void display_and_exit() const {
    for (int row = 0; row < y; row += 4) {
      for (int col = 0; col < x; col += 2) {
        int level = pixels[4 * (row * x + col)];
        putchar(level == 255 ? '#' : level > 60 ? '+' : level > 25 ? '.' : ' ');
      }
      putchar('\n');
    }
  }
};

__device__ int julia(int x, int y, int dim) {
  const fixed scale = ONE * 3 / 2;
  fixed jx = scale * (dim / 2 - x) / (dim / 2);
  fixed jy = scale * (dim / 2 - y) / (dim / 2);
  cuComplexFixed c((fixed)(-0.8 * ONE), (fixed)(0.156 * ONE));
  cuComplexFixed a(jx, jy);
  int i = 0;
  for (i = 0; i < STEPS; i++) {
    a = a * a + c;
    if (a.magnitude2() > 1000ll * ONE) return i;
  }
  return STEPS;
}

__global__ void kernel(unsigned char* ptr) {
  // map from blockIdx to pixel position
  int x = blockIdx.x;
  int y = blockIdx.y;
  int offset = x + y * gridDim.x;
  int steps = julia(x, y, gridDim.x);
  ptr[offset * 4 + 0] = steps == STEPS ? 255 : steps * 4;
  ptr[offset * 4 + 1] = 0;
  ptr[offset * 4 + 2] = steps;
  ptr[offset * 4 + 3] = 255;
}

// The same with many threads per block, and one 4-byte store per pixel
__global__ void kernel_uchar4(uchar4* ptr, int dim) {
  int x = threadIdx.x + blockIdx.x * blockDim.x;
  int y = threadIdx.y + blockIdx.y * blockDim.y;
  if (x >= dim || y >= dim) return;
  int steps = julia(x, y, dim);
  ptr[x + y * dim] = make_uchar4(steps == STEPS ? 255 : steps * 4, 0, steps, 255);
}

// globals needed by the update routine
struct DataBlock {
  unsigned char* dev_bitmap;
};

int main(int argc, char** argv) {
  int dim = argc > 1 ? atoi(argv[1]) : 72;
  if (dim < 2 || dim > DIM_MAX) {
    fprintf(stderr, "usage: %s [size up to %d]\n", argv[0], DIM_MAX);
    return 1;
  }
  DataBlock data;
  CPUBitmap bitmap(dim, dim), second(dim, dim);
  if (cudaMalloc((void**)&data.dev_bitmap, bitmap.image_size()) != cudaSuccess) return 1;

  dim3 grid(dim, dim);
  kernel<<<grid, 1>>>(data.dev_bitmap);
  cudaMemcpy(bitmap.get_ptr(), data.dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost);
  cudaMemset(data.dev_bitmap, 0, bitmap.image_size());
  kernel_uchar4<<<dim3((dim + 15) / 16, (dim + 7) / 8), dim3(16, 8)>>>((uchar4*)data.dev_bitmap, dim);
  cudaMemcpy(second.get_ptr(), data.dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost);
  if (cudaGetLastError() != cudaSuccess) return 1;
  cudaFree(data.dev_bitmap);

  bitmap.display_and_exit();
  int wrong = 0, inside = 0;
  for (int y = 0; y < dim; y++)
    for (int x = 0; x < dim; x++) {
      long long re = (long long)ONE * 3 / 2 * (dim / 2 - x) / (dim / 2),
                im = (long long)ONE * 3 / 2 * (dim / 2 - y) / (dim / 2);
      int n = 0;
      for (; n < STEPS; n++) {
        long long next = (re * re - im * im) / ONE + (long long)(-0.8 * ONE);
        im = 2 * re * im / ONE + (long long)(0.156 * ONE);
        re = next;
        if ((re * re + im * im) / ONE > 1000ll * ONE) break;
      }
      int at = 4 * (y * dim + x);
      inside += n == STEPS;
      wrong += bitmap.pixels[at + 2] != n || bitmap.pixels[at] != (n == STEPS ? 255 : 4 * n);
      for (int c = 0; c < 4; c++) wrong += bitmap.pixels[at + c] != second.pixels[at + c];
    }
  printf("%d of %d pixels in the set, %d wrong\n", inside, dim * dim, wrong);
  printf(wrong ? "FAILED\n" : "PASSED\n");
  return wrong ? 1 : 0;
}
