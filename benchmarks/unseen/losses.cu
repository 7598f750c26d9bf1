// Losses: binary cross entropy, Kullback-Leibler, cosines, triplets, hinges, focal; and logarithms of sums.
// sizes: 64 16384 (rows)
#include "../micro/micro.h"

constexpr int WIDTH = 1024;

// One number for all elements: sums of warps, added up by atomics.
__global__ void bce_with_logits(const float* x, const float* target, float* loss, int n) {
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += fmaxf(x[i], 0.0f) - x[i] * target[i] + log1pf(expf(-fabsf(x[i])));
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(loss, sum / n);
}

// A block a row; the last warp adds up what the others found.
__global__ void kl_divergence(const float* __restrict__ log_p, const float* __restrict__ q, float* __restrict__ loss) {
  __shared__ float warps[32];
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const size_t i = (size_t)blockIdx.x * WIDTH + tid;
  const float share = q[i];
  float v = share > 0.0f ? share * (logf(share) - log_p[i]) : 0.0f;
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffff, v, offset);
  if (lane == 0) warps[warp] = v;
  __syncthreads();
  if (warp == 0) {
    v = warps[lane];
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffff, v, offset);
    if (lane == 0) loss[blockIdx.x] = v;
  }
}

// A warp a pair of rows.
__global__ void cosine_similarity(const float* a, const float* b, float* y, int rows) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float dot = 0.0f, squares_a = 0.0f, squares_b = 0.0f;
  for (int i = threadIdx.x; i < WIDTH; i += 32) {
    float u = a[row * WIDTH + i], v = b[row * WIDTH + i];
    dot += u * v;
    squares_a += u * u;
    squares_b += v * v;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    dot += __shfl_down_sync(0xffffffff, dot, offset);
    squares_a += __shfl_down_sync(0xffffffff, squares_a, offset);
    squares_b += __shfl_down_sync(0xffffffff, squares_b, offset);
  }
  if (threadIdx.x == 0) y[row] = dot / fmaxf(sqrtf(squares_a) * sqrtf(squares_b), 1e-8f);
}

// A thread a row of 64 elements, of which it reads four at a time.
__global__ void triplet_margin(const float4* anchor, const float4* positive, const float4* negative, float* loss,
                               float margin, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float near = 0.0f, far = 0.0f;
  for (int i = row * 16; i < row * 16 + 16; i++) {
    float4 a = anchor[i], p = positive[i], n = negative[i];
    near +=
        (a.x - p.x) * (a.x - p.x) + (a.y - p.y) * (a.y - p.y) + (a.z - p.z) * (a.z - p.z) + (a.w - p.w) * (a.w - p.w);
    far +=
        (a.x - n.x) * (a.x - n.x) + (a.y - n.y) * (a.y - n.y) + (a.z - n.z) * (a.z - n.z) + (a.w - n.w) * (a.w - n.w);
  }
  loss[row] = fmaxf(sqrtf(near) - sqrtf(far) + margin, 0.0f);
}

// Against the right class of each row, every other class may come within a margin of one: a thread a class.
__global__ void multi_margin(float* x, int* label, float* gradient, int width, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int row = i / width, column = i % width;
  int right = label[row];
  float gap = 1.0f - x[row * width + right] + x[i];
  gradient[i] = column != right && gap > 0.0f ? 1.0f / width : 0.0f;
}

// Powers and logarithms of double precision, as they come without an f.
__global__ void focal(const float* probability, const float* target, float* loss, float gamma, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double p = target[i] > 0.5 ? probability[i] : 1.0 - probability[i];
  loss[i] = -pow(1.0 - p, (double)gamma) * log(p + 1e-8);
}

// The logarithm of the sum of exponentials over the middle of three dimensions: a thread for each of the others.
__global__ void logsumexp_middle(const float* x, float* y, int middle, int inner, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const float* from = x + i / inner * middle * inner + i % inner;
  float largest = from[0], sum = 0.0f;
  for (int k = 1; k < middle; k++) largest = fmaxf(largest, from[k * inner]);
  for (int k = 0; k < middle; k++) sum += expf(from[k * inner] - largest);
  y[i] = largest + logf(sum);
}

// Over the last dimension, in one pass: a warp a row.
__global__ void logsumexp_last(const float* __restrict__ x, float* __restrict__ y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float largest = -INFINITY, sum = 0.0f;
  for (int i = lane; i < WIDTH; i += 32) {
    const float v = x[(size_t)row * WIDTH + i];
    const float larger = fmaxf(largest, v);
    sum = sum * __expf(largest - larger) + __expf(v - larger);
    largest = larger;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffff, largest, offset);
    const float other_sum = __shfl_xor_sync(0xffffffff, sum, offset);
    const float larger = fmaxf(largest, other);
    sum = sum * __expf(largest - larger) + other_sum * __expf(other - larger);
    largest = larger;
  }
  if (lane == 0) y[row] = largest + __logf(sum);
}

int main(int argc, char** argv) {
  const int rows = size_of_run(argc, argv, 64), n = rows * WIDTH;
  float *x = memory<float>(n), *target = memory<float>(n), *y = memory<float>(n), *few = memory<float>(n / 64);
  std::vector<int> classes(rows);
  for (int i = 0; i < rows; i++) classes[i] = i * 37 % WIDTH;
  int* labels = memory<int>(rows);
  CHECK(cudaMemcpy(labels, classes.data(), rows * sizeof(int), cudaMemcpyHostToDevice));
  measure("binary cross entropy", [&] { bce_with_logits<<<528, 256>>>(x, target, few, n); });
  measure("Kullback-Leibler", [&] { kl_divergence<<<rows, WIDTH>>>(x, target, few); });
  measure("cosine similarity", [&] { cosine_similarity<<<rows / 4, dim3(32, 4)>>>(x, target, few, rows); });
  measure("triplet margin",
          [&] { triplet_margin<<<n / 64 / 128, 128>>>((float4*)x, (float4*)target, (float4*)y, few, 1.0f, n / 64); });
  measure("multi-class margin", [&] { multi_margin<<<n / 256, 256>>>(x, labels, y, WIDTH, n); });
  measure("focal in double", [&] { focal<<<n / 256, 256>>>(x, target, y, 2.0f, n); });
  measure("log-sum-exp, middle", [&] { logsumexp_middle<<<n / 64 / 64, 64>>>(x, few, 64, 128, n / 64); });
  measure("log-sum-exp, last", [&] { logsumexp_last<<<rows / 8, 256>>>(x, few, rows); });
}
