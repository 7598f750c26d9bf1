// Pictures: Sobel's edges, blurs along rows and columns, equalised brightness, erosion, labels of areas, hues.
// sizes: 128 4096 (the side)
#include "../micro/micro.h"

using Byte = unsigned char;

constexpr int RADIUS = 8, STRIP = 64;

__constant__ float bell[2 * RADIUS + 1];

// A tile of bytes with a border of one in shared memory.
__global__ void sobel_tile(const Byte* in, Byte* out, int n) {
  __shared__ Byte tile[18][18];
  int tx = threadIdx.x, ty = threadIdx.y;
  for (int i = ty * 16 + tx; i < 18 * 18; i += 256) {
    int y = min(max((int)blockIdx.y * 16 + i / 18 - 1, 0), n - 1);
    int x = min(max((int)blockIdx.x * 16 + i % 18 - 1, 0), n - 1);
    tile[i / 18][i % 18] = in[y * n + x];
  }
  __syncthreads();
  int across = tile[ty][tx + 2] + 2 * tile[ty + 1][tx + 2] + tile[ty + 2][tx + 2] - tile[ty][tx] -
               2 * tile[ty + 1][tx] - tile[ty + 2][tx];
  int along = tile[ty + 2][tx] + 2 * tile[ty + 2][tx + 1] + tile[ty + 2][tx + 2] - tile[ty][tx] - 2 * tile[ty][tx + 1] -
              tile[ty][tx + 2];
  float length = sqrtf(across * across + along * along);
  out[(blockIdx.y * 16 + ty) * n + blockIdx.x * 16 + tx] = length > 255.0f ? 255 : (Byte)length;
}

// Along the rows: 128 pixels and eight on each side in shared memory, the weights in constant memory.
__global__ void blur_rows(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float line[128 + 2 * RADIUS];
  const int first = blockIdx.x * 128 - RADIUS, y = blockIdx.y;
  for (int i = threadIdx.x; i < 128 + 2 * RADIUS; i += 128)
    line[i] = first + i >= 0 && first + i < n ? in[y * n + first + i] : 0.0f;
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k <= 2 * RADIUS; k++) sum += line[threadIdx.x + k] * bell[k];
  out[y * n + blockIdx.x * 128 + threadIdx.x] = sum;
}

// Along the columns: a thread has 64 pixels below each other, and a sum that one joins and one leaves.
__global__ void blur_columns_running(const float* in, float* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, top = blockIdx.y * STRIP;
  if (x >= n) return;
  float sum = 0.0f;
  for (int y = top - RADIUS; y < top + RADIUS; y++)
    if (y >= 0 && y < n) sum += in[y * n + x];
  for (int y = top; y < top + STRIP; y++) {
    if (y + RADIUS < n) sum += in[(y + RADIUS) * n + x];
    out[y * n + x] = sum / (2 * RADIUS + 1);
    if (y - RADIUS >= 0) sum -= in[(y - RADIUS) * n + x];
  }
}

// How often each brightness is there: counted in shared memory, four pixels at a time.
__global__ void count_brightness(const uchar4* in, unsigned* counts, int n) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    uchar4 v = in[i];
    atomicAdd(&own[v.x], 1);
    atomicAdd(&own[v.y], 1);
    atomicAdd(&own[v.z], 1);
    atomicAdd(&own[v.w], 1);
  }
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

// What each brightness becomes: one block sums up the counts.
__global__ void equalising_table(const unsigned* counts, Byte* table) {
  __shared__ float sums[256];
  int tid = threadIdx.x;
  sums[tid] = counts[tid];
  __syncthreads();
  for (int offset = 1; offset < 256; offset *= 2) {
    float left = tid >= offset ? sums[tid - offset] : 0.0f;
    __syncthreads();
    sums[tid] += left;
    __syncthreads();
  }
  table[tid] = (Byte)(255.0f * sums[tid] / sums[255]);
}

// Each pixel through a table in global memory.
__global__ void equalise(Byte* in, Byte* table, Byte* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = table[in[i]];
}

// The darkest of those of 5 x 5 pixels that a disc covers.
__global__ void erode_disc(const Byte* in, Byte* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  Byte darkest = 255;
  for (int dy = -2; dy <= 2; dy++) {
    for (int dx = -2; dx <= 2; dx++) {
      if (dx * dx + dy * dy > 5) continue;
      if (x + dx < 0 || x + dx >= n || y + dy < 0 || y + dy >= n) continue;
      Byte v = in[(y + dy) * n + x + dx];
      if (v < darkest) darkest = v;
    }
  }
  out[y * n + x] = darkest;
}

// Areas of one colour: each pixel takes the smallest label of its neighbours of the same colour; is anything new?
__global__ void smallest_label(const Byte* __restrict__ colour, const int* __restrict__ label, int* __restrict__ next,
                               int* changed, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  const int at = y * n + x, own = label[at], side = colour[at] >> 7;
  int least = own;
  if (x > 0 && colour[at - 1] >> 7 == side) least = min(least, label[at - 1]);
  if (x < n - 1 && colour[at + 1] >> 7 == side) least = min(least, label[at + 1]);
  if (y > 0 && colour[at - n] >> 7 == side) least = min(least, label[at - n]);
  if (y < n - 1 && colour[at + n] >> 7 == side) least = min(least, label[at + n]);
  next[at] = least;
  if (__any_sync(__activemask(), least != own) && threadIdx.x % 32 == 0) atomicOr(changed, 1);
}

// Red, green and blue become hue, saturation and brightness; which of them is largest decides the way.
__global__ void hues(const float* rgb, float* hsv, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float r = rgb[3 * i], g = rgb[3 * i + 1], b = rgb[3 * i + 2];
  float high = fmaxf(r, fmaxf(g, b)), low = fminf(r, fminf(g, b)), range = high - low;
  float hue = 0.0f;
  if (range > 0.0f) {
    if (high == r)
      hue = fmodf((g - b) / range + 6.0f, 6.0f);
    else if (high == g)
      hue = (b - r) / range + 2.0f;
    else
      hue = (r - g) / range + 4.0f;
  }
  hsv[3 * i] = hue * 60.0f;
  hsv[3 * i + 1] = high > 0.0f ? range / high : 0.0f;
  hsv[3 * i + 2] = high;
}

int main(int argc, char** argv) {
  const int n = size_of_run(argc, argv, 128), pixels = n * n;
  float *x = memory<float>(pixels), *y = memory<float>(pixels);
  Byte *in = memory<Byte>(pixels), *out = memory<Byte>(pixels), *table = memory<Byte>(256);
  unsigned* counts = memory<unsigned>(256);
  CHECK(cudaMemset(counts, 0, 256 * sizeof(unsigned)));
  std::vector<float> values(pixels);
  std::vector<Byte> bytes(pixels);
  std::vector<int> labels(pixels);
  unsigned state = 17;
  for (int i = 0; i < pixels; i++) {
    state = state * 1664525u + 1013904223u;
    values[i] = (state >> 8) / 16777216.0f;
    bytes[i] = (i % n / 8 * 5 + i / n / 8 * 3 + (state >> 26)) & 255;  // slopes with some noise, as pictures have
    labels[i] = i;
  }
  int *label = memory<int>(pixels), *next = memory<int>(pixels), *changed = memory<int>(1);
  std::vector<float> weights(2 * RADIUS + 1);
  for (int k = 0; k <= 2 * RADIUS; k++) weights[k] = 1.0f / (1 + (k - RADIUS) * (k - RADIUS));
  CHECK(cudaMemcpy(x, values.data(), pixels * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(in, bytes.data(), pixels, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(label, labels.data(), pixels * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyToSymbol(bell, weights.data(), weights.size() * sizeof(float)));
  const dim3 sixteen(16, 16), by_16(n / 16, n / 16), wide(32, 8), by_wide(n / 32, n / 8);
  measure("Sobel, tile", [&] { sobel_tile<<<by_16, sixteen>>>(in, out, n); });
  measure("blur, rows", [&] { blur_rows<<<dim3(n / 128, n), 128>>>(x, y, n); });
  measure("blur, columns", [&] { blur_columns_running<<<dim3(n / 128, n / STRIP), 128>>>(x, y, n); });
  measure("brightness counted", [&] { count_brightness<<<264, 256>>>((uchar4*)in, counts, pixels / 4); });
  measure("table", [&] { equalising_table<<<1, 256>>>(counts, table); });
  measure("equalised", [&] { equalise<<<pixels / 256, 256>>>(in, table, out, pixels); });
  measure("erosion", [&] { erode_disc<<<by_16, sixteen>>>(in, out, n); });
  measure("smallest label", [&] { smallest_label<<<by_wide, wide>>>(in, label, next, changed, n); });
  measure("hues", [&] { hues<<<pixels / 3 / 128, 128>>>(x, y, pixels / 3 / 128 * 128); });
}
