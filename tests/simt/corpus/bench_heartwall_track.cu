// title: Tracking of points in frames by normalised correlation of templates, as in a heart-wall tracker
// features: structs_of_pointers, constant_memory, shared_memory, dynamic_indexing
// args: 6 4

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define TPL 9      // side of a template
#define SEARCH 5   // shifts in each direction
#define SPAN (2 * SEARCH + 1)
#define MAX_POINTS 32

#define cudaCheck(e)                                                                       \
  {                                                                                        \
    cudaError_t err = (e);                                                                 \
    if (err != cudaSuccess) {                                                              \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err));         \
      exit(1);                                                                             \
    }                                                                                      \
  }

struct PerPoint {
  float* tpl;  // device memory, TPL * TPL
  int* track;  // device memory: x and y in each frame
};

struct Common {
  int width, height, frames, points;
};

__constant__ Common d_common;
__constant__ PerPoint d_unique[MAX_POINTS];

__global__ void takeTemplates(const float* frame, const int2* start) {
  const PerPoint p = d_unique[blockIdx.x];
  int2 at = start[blockIdx.x];
  for (int i = threadIdx.x; i < TPL * TPL; i += blockDim.x)
    p.tpl[i] = frame[(at.y + i / TPL - TPL / 2) * d_common.width + at.x + i % TPL - TPL / 2];
  if (threadIdx.x == 0) {
    p.track[0] = at.x;
    p.track[1] = at.y;
  }
}

// A block a point: all shifts are compared, the one of the highest correlation wins, the first one if several do.
__global__ void track(const float* frame, int number) {
  __shared__ float tpl[TPL * TPL], score[SPAN * SPAN];
  __shared__ int which[SPAN * SPAN];
  const PerPoint p = d_unique[blockIdx.x];
  const int x0 = p.track[2 * (number - 1)], y0 = p.track[2 * (number - 1) + 1];
  for (int i = threadIdx.x; i < TPL * TPL; i += blockDim.x) tpl[i] = p.tpl[i];
  __syncthreads();
  float mean = 0, norm = 0;
  for (int i = 0; i < TPL * TPL; i++) mean += tpl[i];
  mean /= TPL * TPL;
  for (int i = 0; i < TPL * TPL; i++) norm += (tpl[i] - mean) * (tpl[i] - mean);
  for (int s = threadIdx.x; s < SPAN * SPAN; s += blockDim.x) {
    int cx = x0 + s % SPAN - SEARCH, cy = y0 + s / SPAN - SEARCH;
    float sum = 0, squares = 0, cross = 0;
    for (int i = 0; i < TPL * TPL; i++) {
      int x = min(max(cx + i % TPL - TPL / 2, 0), d_common.width - 1), y = min(max(cy + i / TPL - TPL / 2, 0), d_common.height - 1);
      float v = frame[y * d_common.width + x];
      sum += v, squares += v * v, cross += v * (tpl[i] - mean);
    }
    float variance = squares - sum * sum / (TPL * TPL);
    score[s] = variance > 1e-3f ? cross * rsqrtf(variance * norm) : 0.0f;
    which[s] = s;
  }
  __syncthreads();
  for (int width = 128; width > 0; width /= 2) {
    for (int s = threadIdx.x; s < width; s += blockDim.x)
      if (s + width < SPAN * SPAN &&
          (score[s + width] > score[s] || (score[s + width] == score[s] && which[s + width] < which[s]))) {
        score[s] = score[s + width];
        which[s] = which[s + width];
      }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    p.track[2 * number] = x0 + which[0] % SPAN - SEARCH;
    p.track[2 * number + 1] = y0 + which[0] / SPAN - SEARCH;
  }
}

// A wall that beats: points on a circle whose radius changes, each with its own pattern.
static int2 truth(int point, int points, int frame) {
  double r = 30 + 6 * sin(frame * 0.7), a = 2 * M_PI * point / points;
  return make_int2((int)lround(60 + r * cos(a)), (int)lround(50 + r * sin(a)));
}

static void draw(std::vector<float>& img, int w, int h, int points, int frame) {
  for (int i = 0; i < w * h; i++) img[i] = 10.0f + (i * 7 + i / w * 3) % 5;
  for (int p = 0; p < points; p++) {
    int2 c = truth(p, points, frame);
    for (int dy = -3; dy <= 3; dy++)
      for (int dx = -3; dx <= 3; dx++) img[(c.y + dy) * w + c.x + dx] = 100.0f + ((dx * dx + 3 * dy + p * dx * dy) % 7) * 12;
  }
}

int main(int argc, char** argv) {
  Common c = {120, 100, argc > 2 ? atoi(argv[2]) : 4, argc > 1 ? atoi(argv[1]) : 6};
  if (c.points > MAX_POINTS) c.points = MAX_POINTS;
  PerPoint unique[MAX_POINTS];
  memset(unique, 0, sizeof unique);
  for (int i = 0; i < c.points; i++) {
    cudaCheck(cudaMalloc((void**)&unique[i].tpl, TPL * TPL * sizeof(float)));
    cudaCheck(cudaMalloc((void**)&unique[i].track, 2 * c.frames * sizeof(int)));
  }
  cudaCheck(cudaMemcpyToSymbol(d_common, &c, sizeof c));
  cudaCheck(cudaMemcpyToSymbol(d_unique, unique, c.points * sizeof(PerPoint)));
  std::vector<float> img(c.width * c.height);
  std::vector<int2> start(c.points);
  float* d_frame;
  int2* d_start;
  cudaCheck(cudaMalloc(&d_frame, img.size() * sizeof(float)));
  cudaCheck(cudaMalloc(&d_start, c.points * sizeof(int2)));
  for (int f = 0; f < c.frames; f++) {
    draw(img, c.width, c.height, c.points, f);
    cudaCheck(cudaMemcpy(d_frame, img.data(), img.size() * sizeof(float), cudaMemcpyHostToDevice));
    if (f == 0) {
      for (int p = 0; p < c.points; p++) start[p] = truth(p, c.points, 0);
      cudaCheck(cudaMemcpy(d_start, start.data(), c.points * sizeof(int2), cudaMemcpyHostToDevice));
      takeTemplates<<<c.points, 64>>>(d_frame, d_start);
    } else {
      track<<<c.points, 64>>>(d_frame, f);
    }
    cudaCheck(cudaGetLastError());
  }
  int wrong = 0;
  for (int p = 0; p < c.points; p++) {
    std::vector<int> got(2 * c.frames);
    cudaCheck(cudaMemcpy(got.data(), unique[p].track, got.size() * sizeof(int), cudaMemcpyDeviceToHost));
    for (int f = 0; f < c.frames; f++) {
      int2 t = truth(p, c.points, f);
      wrong += got[2 * f] != t.x || got[2 * f + 1] != t.y;
    }
    printf("point %d ends at (%d, %d)\n", p, got[2 * c.frames - 2], got[2 * c.frames - 1]);
    cudaCheck(cudaFree(unique[p].tpl));
    cudaCheck(cudaFree(unique[p].track));
  }
  cudaCheck(cudaFree(d_frame));
  cudaCheck(cudaFree(d_start));
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
