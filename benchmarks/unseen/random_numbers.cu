// Chance, from generators of the kernels' own: dropout, points in a circle, walks, waiting, magnets; and an integral.
// sizes: 14 24 (log2 of the elements)
#include "../micro/micro.h"

__device__ unsigned scramble(unsigned v) {
  v ^= v >> 16;
  v *= 0x7feb352du;
  v ^= v >> 15;
  v *= 0x846ca68bu;
  v ^= v >> 16;
  return v;
}

__device__ float uniform(unsigned& state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return (state >> 8) * (1.0f / 16777216.0f);
}

// An element's number decides whether it stays.
__global__ void dropout(float* x, float* y, unsigned char* mask, float rate, unsigned seed, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bool stays = (scramble(i ^ seed) >> 8) * (1.0f / 16777216.0f) >= rate;
  mask[i] = stays;
  y[i] = stays ? x[i] / (1.0f - rate) : 0.0f;
}

// How many of a thread's points lie within the circle.
__global__ void points_in_circle(unsigned long long* hits, int points) {
  unsigned state = scramble(blockIdx.x * blockDim.x + threadIdx.x + 1);
  unsigned inside = 0;
  for (int k = 0; k < points; k++) {
    state = state * 1664525u + 1013904223u;
    float x = (state >> 8) * (1.0f / 16777216.0f);
    state = state * 1664525u + 1013904223u;
    float y = (state >> 8) * (1.0f / 16777216.0f);
    if (x * x + y * y < 1.0f) inside++;
  }
  for (int offset = 16; offset > 0; offset /= 2) inside += __shfl_down_sync(0xffffffff, inside, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(hits, (unsigned long long)inside);
}

// A walk of each thread in the plane; the four directions are branches.
__global__ void walk(int2* ends, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned state = scramble(i + 1) | 1;
  int x = 0, y = 0;
  for (int k = 0; k < steps; k++) {
    float r = uniform(state);
    if (r < 0.25f)
      x++;
    else if (r < 0.5f)
      x--;
    else if (r < 0.75f)
      y++;
    else
      y--;
  }
  ends[i] = make_int2(x, y);
}

// Poisson's distribution: numbers are multiplied until the product is small, sooner here and later there.
__global__ void poisson(const float* mean, int* counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned state = scramble(i + 77) | 1;
  float limit = __expf(-mean[i]), product = uniform(state);
  int k = 0;
  while (product > limit) {
    product *= uniform(state);
    k++;
  }
  counts[i] = k;
}

// Magnets on a chessboard: those of one colour turn, depending on their neighbours, which are of the other.
__global__ void magnets(signed char* spins, int side, int colour, unsigned seed, float cold) {
  int x = (blockIdx.x * blockDim.x + threadIdx.x) * 2, y = blockIdx.y * blockDim.y + threadIdx.y;
  x += (y + colour) % 2;
  if (x >= side || y >= side) return;
  int left = (x + side - 1) % side, right = (x + 1) % side, above = (y + side - 1) % side, below = (y + 1) % side;
  int around = spins[y * side + left] + spins[y * side + right] + spins[above * side + x] + spins[below * side + x];
  unsigned state = scramble(y * side + x + seed) | 1;
  int spin = spins[y * side + x];
  float costs = 2.0f * spin * around;
  if (costs <= 0.0f || uniform(state) < expf(-costs * cold)) spins[y * side + x] = -spin;
}

// The area under a quarter of a circle, in doubles: a block a part of it.
__global__ void quarter_circle(double* areas, int slices) {
  __shared__ double part[128];
  double width = 1.0 / ((double)gridDim.x * blockDim.x * slices), sum = 0.0;
  long first = (blockIdx.x * (long)blockDim.x + threadIdx.x) * slices;
  for (int k = 0; k < slices; k++) {
    double x = (first + k + 0.5) * width;
    sum += sqrt(1.0 - x * x);
  }
  part[threadIdx.x] = sum * width;
  __syncthreads();
  for (int s = 64; s > 0; s /= 2) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) areas[blockIdx.x] = part[0];
}

// A price that goes up and down many times, and what an option on its average is worth: a thread a path.
__global__ void asian_option(float* __restrict__ payoffs, float start, float strike, float drift, float spread,
                             int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned state = scramble(i + 12345) | 1;
  float price = start, sum = 0.0f;
  for (int t = 0; t < steps; t++) {
    float normal = -6.0f;
#pragma unroll
    for (int k = 0; k < 12; k++) normal += uniform(state);  // nearly normal: twelve evenly distributed numbers
    price *= __expf(drift + spread * normal);
    sum += price;
  }
  payoffs[i] = fmaxf(sum / steps - strike, 0.0f);
}

int main(int argc, char** argv) {
  const int log = size_of_run(argc, argv, 14), n = 1 << log, side = 1 << (log / 2);
  float *x = memory<float>(n), *y = memory<float>(n);
  auto* mask = memory<unsigned char>(n);
  auto* spins = memory<signed char>(n);
  std::vector<signed char> up_and_down(n);
  std::vector<float> means(n);
  unsigned random = 21;
  for (int i = 0; i < n; i++) {
    random = random * 1664525u + 1013904223u;
    up_and_down[i] = random >> 31 ? 1 : -1;
    means[i] = (random >> 16 & 255) / 32.0f;
  }
  CHECK(cudaMemcpy(spins, up_and_down.data(), n, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(x, means.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  auto* hits = memory<unsigned long long>(1);
  measure("dropout", [&] { dropout<<<n / 256, 256>>>(x, y, mask, 0.1f, 99, n); });
  measure("points in a circle", [&] { points_in_circle<<<n / 64 / 256, 256>>>(hits, 1000); });
  measure("walk", [&] { walk<<<n / 64 / 128, 128>>>((int2*)y, 500); });
  measure("Poisson", [&] { poisson<<<n / 4 / 128, 128>>>(x, (int*)y, n / 4); });
  measure("magnets", [&] { magnets<<<dim3(side / 2 / 32, side / 8), dim3(32, 8)>>>(spins, side, 0, 5, 0.44f); });
  measure("quarter of a circle", [&] { quarter_circle<<<n / 128 / 128, 128>>>((double*)y, 400); });
  measure("option on an average", [&] { asian_option<<<n / 64 / 64, 64>>>(y, 100.0f, 100.0f, 1e-4f, 0.01f, 64); });
}
