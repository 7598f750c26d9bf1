// Histograms, prefix sums, compaction and a step of counting sort as students and textbooks write them.
// sizes: 14 24 (log2 of the elements)
#include "../micro/micro.h"

constexpr int BINS = 256, LETTER_BINS = 7, CHUNK = 64, ROW = 256;

// Brightnesses from 0 to 1 into bins in global memory.
__global__ void histogram_global(const float* x, unsigned int* bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int bin = (int)(x[i] * BINS);
    if (bin >= 0 && bin < BINS) atomicAdd(&bins[bin], 1);
  }
}

// Letters in bins of four. A thread has 64 letters in a row and adds to a block's bins when the bin changes.
__global__ void histogram_aggregated(const char* data, unsigned int length, unsigned int* histo) {
  __shared__ unsigned int histo_s[LETTER_BINS];
  for (unsigned int bin = threadIdx.x; bin < LETTER_BINS; bin += blockDim.x) histo_s[bin] = 0;
  __syncthreads();
  unsigned int accumulator = 0;
  int previous = -1;
  unsigned int tid = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned int i = tid * CHUNK; i < min((tid + 1) * CHUNK, length); ++i) {
    int position = data[i] - 'a';
    if (position >= 0 && position < 26) {
      int bin = position / 4;
      if (bin == previous) {
        ++accumulator;
      } else {
        if (accumulator > 0) atomicAdd(&histo_s[previous], accumulator);
        accumulator = 1;
        previous = bin;
      }
    }
  }
  if (accumulator > 0) atomicAdd(&histo_s[previous], accumulator);
  __syncthreads();
  for (unsigned int bin = threadIdx.x; bin < LETTER_BINS; bin += blockDim.x)
    if (histo_s[bin] > 0) atomicAdd(&histo[bin], histo_s[bin]);
}

// Hillis and Steele in one buffer, with two barriers a step.
__global__ void scan_hillis_steele(const int* X, int* Y, int n) {
  __shared__ int XY[512];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  XY[threadIdx.x] = i < n ? X[i] : 0;
  for (int stride = 1; stride < blockDim.x; stride *= 2) {
    __syncthreads();
    int temp = 0;
    if (threadIdx.x >= stride) temp = XY[threadIdx.x] + XY[threadIdx.x - stride];
    __syncthreads();
    if (threadIdx.x >= stride) XY[threadIdx.x] = temp;
  }
  if (i < n) Y[i] = XY[threadIdx.x];
}

// Blelloch: up and down a tree, two elements a thread, with padding against bank conflicts.
__global__ void scan_blelloch_padded(const int* g_idata, int* g_odata, int* sums, int n) {
  extern __shared__ int temp[];
  auto padded = [](int i) { return i + (i >> 5); };
  int thid = threadIdx.x, offset = 1, block = blockIdx.x * n;
  int ai = thid, bi = thid + n / 2;
  temp[padded(ai)] = g_idata[block + ai];
  temp[padded(bi)] = g_idata[block + bi];
  for (int d = n >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (thid < d) {
      int a = padded(offset * (2 * thid + 1) - 1), b = padded(offset * (2 * thid + 2) - 1);
      temp[b] += temp[a];
    }
    offset *= 2;
  }
  if (thid == 0) {
    sums[blockIdx.x] = temp[padded(n - 1)];
    temp[padded(n - 1)] = 0;
  }
  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (thid < d) {
      int a = padded(offset * (2 * thid + 1) - 1), b = padded(offset * (2 * thid + 2) - 1);
      int t = temp[a];
      temp[a] = temp[b];
      temp[b] += t;
    }
  }
  __syncthreads();
  g_odata[block + ai] = temp[padded(ai)];
  g_odata[block + bi] = temp[padded(bi)];
}

// Four elements a thread, warps by shuffles, the sums of the warps by the first warp.
__global__ void scan_warps_float4(const float4* __restrict__ x, float4* __restrict__ y) {
  __shared__ float warps[32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = x[i];
  v.y += v.x;
  v.z += v.y;
  v.w += v.z;
  float sum = v.w;
  for (int d = 1; d < 32; d *= 2) {
    const float before = __shfl_up_sync(0xffffffff, sum, d);
    if (lane >= d) sum += before;
  }
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    float total = lane < blockDim.x / 32 ? warps[lane] : 0.0f;
    for (int d = 1; d < 32; d *= 2) {
      const float before = __shfl_up_sync(0xffffffff, total, d);
      if (lane >= d) total += before;
    }
    warps[lane] = total;
  }
  __syncthreads();
  const float start = sum - v.w + (warp > 0 ? warps[warp - 1] : 0.0f);
  y[i] = make_float4(v.x + start, v.y + start, v.z + start, v.w + start);
}

// Every element of a row adds up all that come before it.
__global__ void scan_rows_naive(const float* x, float* y, int rows, int width) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || col >= width) return;
  float sum = 0.0f;
  for (int k = 0; k <= col; k++) sum += x[row * width + k];
  y[row * width + col] = sum;
}

// What is above a limit goes to the place that a counter gives; the counter goes on from launch to launch.
__global__ void compact_counter(const float* x, float* out, unsigned int* counter, float limit, unsigned int n) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > limit) {
    unsigned int at = atomicAdd(counter, 1u);
    out[at & (n - 1)] = x[i];
  }
}

// Keys to their sorted places: where their bin starts, and a counter of the bin, which begins anew when it is full.
__global__ void counting_sort_scatter(const unsigned char* keys, const unsigned int* starts, const unsigned int* counts,
                                      unsigned int* used, unsigned char* sorted, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned char key = keys[i];
  unsigned int at = starts[key] + atomicInc(&used[key], counts[key] - 1);
  sorted[at] = key;
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 14), few = n / 4;
  float *x = memory<float>(n), *y = memory<float>(n);
  int *a = memory<int>(n), *b = memory<int>(n), *sums = memory<int>(n / 512);
  char* text = memory<char>(n);
  unsigned char *keys = memory<unsigned char>(few), *sorted = memory<unsigned char>(few);
  unsigned *bins = memory<unsigned>(BINS), *starts = memory<unsigned>(BINS), *counts = memory<unsigned>(BINS);
  unsigned *used = memory<unsigned>(BINS), *counter = memory<unsigned>(1);
  std::vector<float> values(n);
  std::vector<int> numbers(n);
  std::vector<char> letters(n);
  std::vector<unsigned char> random(few);
  std::vector<unsigned> start(BINS, 0), count(BINS, 0);
  unsigned state = 28;
  for (int i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    values[i] = (state >> 8) / 16777216.0f;
    numbers[i] = state >> 29;
    letters[i] = 'a' + (state >> 16) % 26;
    if (i < few) count[random[i] = state >> 24]++;
  }
  for (int k = 1; k < BINS; k++) start[k] = start[k - 1] + count[k - 1];
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(a, numbers.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(text, letters.data(), n, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(keys, random.data(), few, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(starts, start.data(), BINS * sizeof(unsigned), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(counts, count.data(), BINS * sizeof(unsigned), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(bins, 0, BINS * sizeof(unsigned)));
  CHECK(cudaMemset(used, 0, BINS * sizeof(unsigned)));
  CHECK(cudaMemset(counter, 0, sizeof(unsigned)));
  measure("histogram, global", [&] { histogram_global<<<few / 256, 256>>>(x, bins, few); });
  measure("histogram of letters, aggregated", [&] { histogram_aggregated<<<n / CHUNK / 256, 256>>>(text, n, bins); });
  measure("scan, Hillis and Steele", [&] { scan_hillis_steele<<<n / 512, 512>>>(a, b, n); });
  measure("scan, Blelloch, padded",
          [&] { scan_blelloch_padded<<<n / 512, 256, (512 + 512 / 32) * sizeof(int)>>>(a, b, sums, 512); });
  measure("scan, warps, float4", [&] { scan_warps_float4<<<n / 4 / 512, 512>>>((float4*)x, (float4*)y); });
  measure("scan of rows, naive",
          [&] { scan_rows_naive<<<dim3(ROW / 64, n / ROW / 4), dim3(64, 4)>>>(x, y, n / ROW, ROW); });
  measure("compaction, a counter", [&] { compact_counter<<<n / 256, 256>>>(x, y, counter, 0.5f, n); });
  measure("counting sort, scatter",
          [&] { counting_sort_scatter<<<few / 256, 256>>>(keys, starts, counts, used, sorted, few); });
}
