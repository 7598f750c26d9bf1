// title: ripples on a bitmap, frame by frame, through a callback to an animation class
// features: thread_indexing, host_callbacks_of_programs, math_functions

#include <cmath>
#include <cstdio>
#include <cstdlib>

#define DIM 64

// A stand-in for a window: calls back for each frame.
struct CPUAnimBitmap {
  unsigned char *pixels;
  int width, height;
  void *dataBlock;
  void (*animExit)(void *);

  CPUAnimBitmap(int w, int h, void *d) : width(w), height(h), dataBlock(d), animExit(NULL) {
    pixels = new unsigned char[width * height * 4]();
  }
  ~CPUAnimBitmap() { delete[] pixels; }
  unsigned char *get_ptr(void) const { return pixels; }
  long image_size(void) const { return width * height * 4; }

  void anim_and_exit(void (*f)(void *, int), void (*e)(void *), int frames) {
    animExit = e;
    for (int ticks = 0; ticks < frames; ticks++) f(dataBlock, ticks);
    animExit(dataBlock);
  }
};

struct DataBlock {
  unsigned char *dev_bitmap;
  CPUAnimBitmap *bitmap;
  int wrong;
  double brightness;
};

__global__ void kernel(unsigned char *ptr, int ticks) {
  // map from threadIdx/BlockIdx to pixel position
  int x = threadIdx.x + blockIdx.x * blockDim.x;
  int y = threadIdx.y + blockIdx.y * blockDim.y;
  int offset = x + y * blockDim.x * gridDim.x;

  // now calculate the value at that position
  float fx = x - DIM / 2;
  float fy = y - DIM / 2;
  float d = sqrtf(fx * fx + fy * fy);
  unsigned char grey = (unsigned char)(128.0f + 127.0f * cos(d / 10.0f - ticks / 7.0f) / (d / 10.0f + 1.0f));
  ptr[offset * 4 + 0] = grey;
  ptr[offset * 4 + 1] = grey;
  ptr[offset * 4 + 2] = grey;
  ptr[offset * 4 + 3] = 255;
}

void generate_frame(void *data, int ticks) {
  DataBlock *d = (DataBlock *)data;
  dim3 blocks(DIM / 16, DIM / 16);
  dim3 threads(16, 16);
  kernel<<<blocks, threads>>>(d->dev_bitmap, ticks);
  if (cudaMemcpy(d->bitmap->get_ptr(), d->dev_bitmap, d->bitmap->image_size(), cudaMemcpyDeviceToHost) != cudaSuccess)
    exit(1);
  const unsigned char *p = d->bitmap->get_ptr();
  double sum = 0;
  for (int i = 0; i < DIM * DIM; i++, p += 4) {
    double r = hypot(i % DIM - DIM / 2, i / DIM - DIM / 2) / 10;
    double expected = 128 + 127 * cos(r - ticks / 7.0) / (r + 1);
    if (fabs(p[0] - (expected - 0.5)) > 0.51 || p[1] != p[0] || p[2] != p[0] || p[3] != 255) d->wrong++;
    sum += p[0];
  }
  d->brightness = sum / (DIM * DIM);
  printf("frame %2d: brightness %.1f, middle is %s\n", ticks, d->brightness,
         d->bitmap->get_ptr()[4 * (DIM / 2 * DIM + DIM / 2)] > 128 ? "bright" : "dark");
}

// clean up memory allocated on the GPU
void cleanup(void *data) {
  DataBlock *d = (DataBlock *)data;
  cudaFree(d->dev_bitmap);
}

int main(void) {
  DataBlock data = {};
  CPUAnimBitmap bitmap(DIM, DIM, &data);
  data.bitmap = &bitmap;
  if (cudaMalloc((void **)&data.dev_bitmap, bitmap.image_size()) != cudaSuccess) return 1;
  bitmap.anim_and_exit(generate_frame, cleanup, 8);
  printf("%s\n", data.wrong ? "FAILED" : "PASSED");
  return data.wrong ? 1 : 0;
}
