// Attention in other ways: slopes, windows, capped scores, a new token against a store, linear; tokens with sines.
// sizes: 64 2048 (tokens)
#include "../micro/micro.h"

constexpr int HEADS = 8, D = 64, BATCH = 4, WINDOW = 64, SPLITS = 8, WIDTH = HEADS * D;

// Scores of all pairs, less the further apart they are; each head has a slope of its own.
__global__ void scores_with_slopes(float* q, float* k, float* scores, int n) {
  __shared__ float queries[16][17], keys[16][17];
  int tx = threadIdx.x, ty = threadIdx.y, head = blockIdx.z;
  int query = blockIdx.y * 16 + ty, key = blockIdx.x * 16 + tx;
  float sum = 0.0f;
  for (int d = 0; d < D; d += 16) {
    queries[ty][tx] = q[(head * n + query) * D + d + tx];
    keys[ty][tx] = k[(head * n + blockIdx.x * 16 + ty) * D + d + tx];
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += queries[ty][i] * keys[tx][i];
    __syncthreads();
  }
  float slope = exp2f(-8.0f * (head + 1) / HEADS);
  scores[(head * n + query) * n + key] = key <= query ? sum / sqrtf((float)D) + slope * (key - query) : -INFINITY;
}

// Each query sees the last 64 positions: a warp a query, two numbers a lane, the softmax on the way.
__global__ void last_64(const float2* __restrict__ q, const float2* __restrict__ k, const float2* __restrict__ v,
                        float2* __restrict__ out, int n) {
  const int query = blockIdx.x * blockDim.y + threadIdx.y, head = blockIdx.y, lane = threadIdx.x;
  if (query >= n) return;
  const float2 own = q[(head * n + query) * 32 + lane];
  float largest = -INFINITY, total = 0.0f;
  float2 sum = make_float2(0.0f, 0.0f);
  for (int key = max(0, query - WINDOW + 1); key <= query; key++) {
    const int at = (head * n + key) * 32 + lane;
    float score = own.x * k[at].x + own.y * k[at].y;
    for (int offset = 16; offset > 0; offset /= 2) score += __shfl_xor_sync(0xffffffff, score, offset);
    score *= 0.125f;
    const float larger = fmaxf(largest, score), keep = __expf(largest - larger), weight = __expf(score - larger);
    total = total * keep + weight;
    sum.x = sum.x * keep + weight * v[at].x;
    sum.y = sum.y * keep + weight * v[at].y;
    largest = larger;
  }
  out[(head * n + query) * 32 + lane] = make_float2(sum.x / total, sum.y / total);
}

// One new token against all that are stored, an eighth of them a block; a warp takes a key, a thread a number of v.
__global__ void new_token_part(const float* q, const float* k, const float* v, float* part, float2* softmax, int n) {
  extern __shared__ float scores[];
  __shared__ float shared_largest, shared_total;
  int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, length = n / SPLITS;
  int head = blockIdx.y, first = blockIdx.x * length;
  const float* own = q + head * D;
  for (int key = warp; key < length; key += 4) {
    const float* other = k + ((size_t)head * n + first + key) * D;
    float score = own[lane] * other[lane] + own[lane + 32] * other[lane + 32];
    for (int offset = 16; offset > 0; offset /= 2) score += __shfl_down_sync(0xffffffff, score, offset);
    if (lane == 0) scores[key] = score * 0.125f;
  }
  __syncthreads();
  if (warp == 0) {
    float largest = -INFINITY, total = 0.0f;
    for (int i = lane; i < length; i += 32) largest = fmaxf(largest, scores[i]);
    for (int offset = 16; offset > 0; offset /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, offset));
    for (int i = lane; i < length; i += 32) total += expf(scores[i] - largest);
    for (int offset = 16; offset > 0; offset /= 2) total += __shfl_xor_sync(0xffffffff, total, offset);
    if (lane == 0) shared_largest = largest, shared_total = total;
  }
  __syncthreads();
  if (tid < D) {
    float sum = 0.0f;
    for (int key = 0; key < length; key++)
      sum += expf(scores[key] - shared_largest) * v[((size_t)head * n + first + key) * D + tid];
    part[(head * SPLITS + blockIdx.x) * D + tid] = sum;
  }
  if (tid == 0) softmax[head * SPLITS + blockIdx.x] = make_float2(shared_largest, shared_total);
}

// New keys and values to the places in the store that a list tells.
__global__ void append_to_store(const float4* key, const float4* value, const int* slot, float4* keys, float4* values,
                                int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int token = i / (WIDTH / 4), part = i % (WIDTH / 4);
  int to = slot[token] * (WIDTH / 4) + part;
  keys[to] = key[i];
  values[to] = value[i];
}

// Linear attention: what 64 tokens of a head add to its matrix of keys times values, 16 products a thread.
__global__ void keys_times_values(const float* k, const float* v, float* state, int n) {
  __shared__ float keys[16][D], values[16][D];
  int tid = threadIdx.x, head = blockIdx.y, row = tid / 16 * 4, column = tid % 16 * 4;
  float sums[4][4] = {};
  for (int first = 0; first < 64; first += 16) {
    for (int i = tid; i < 16 * D; i += 256) {
      int at = (head * n + blockIdx.x * 64 + first + i / D) * D + i % D;
      float x = k[at];
      keys[i / D][i % D] = x > 0.0f ? x + 1.0f : expf(x);
      values[i / D][i % D] = v[at];
    }
    __syncthreads();
    for (int t = 0; t < 16; t++)
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sums[i][j] += keys[t][row + i] * values[t][column + j];
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) atomicAdd(&state[(head * D + row + i) * D + column + j], sums[i][j]);
}

// The rows of a table that the tokens name, plus sines and cosines of where they stand.
__global__ void embed_with_sines(float* table, int* token, float* y, int width, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int position = i / width, d = i % width;
  float angle = position / powf(10000.0f, (float)(d / 2 * 2) / width);
  float sine = d % 2 == 0 ? sinf(angle) : cosf(angle);
  y[i] = table[token[position] * width + d] * sqrtf((float)width) + sine;
}

// Softmax of scores that a tangent keeps below a cap, up to the diagonal: a block a row.
__global__ void capped_softmax(const float* scores, float* y, float cap, int n) {
  extern __shared__ float row[];
  __shared__ float warps[8];
  int tid = threadIdx.x, query = blockIdx.x;
  const size_t first = ((size_t)blockIdx.y * n + query) * n;
  float sum = 0.0f;
  for (int i = tid; i <= query; i += 256) {
    row[i] = expf(cap * tanhf(scores[first + i] / cap) - cap);
    sum += row[i];
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if (tid % 32 == 0) warps[tid / 32] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int w = 0; w < 8; w++) sum += warps[w];
  for (int i = tid; i < n; i += 256) y[first + i] = i <= query ? row[i] / sum : 0.0f;
}

int main(int argc, char** argv) {
  const int n = size_of_run(argc, argv, 64), total = BATCH * n * WIDTH;
  float *q = memory<float>(total), *k = memory<float>(total), *v = memory<float>(total), *out = memory<float>(total);
  float *scores = memory<float>((size_t)HEADS * n * n), *other = memory<float>((size_t)HEADS * n * n);
  std::vector<int> numbers(BATCH * n);
  for (int i = 0; i < BATCH * n; i++) numbers[i] = (i * 37 + 11) % (BATCH * n);  // each once: 37 divides no size
  int* token = memory<int>(BATCH * n);
  CHECK(cudaMemcpy(token, numbers.data(), numbers.size() * sizeof(int), cudaMemcpyHostToDevice));
  measure("scores with slopes",
          [&] { scores_with_slopes<<<dim3(n / 16, n / 16, HEADS), dim3(16, 16)>>>(q, k, scores, n); });
  measure("the last 64", [&] {
    last_64<<<dim3(n / 4, BATCH * HEADS), dim3(32, 4)>>>((float2*)q, (float2*)k, (float2*)v, (float2*)out, n);
  });
  const int heads = BATCH * HEADS;
  float *part = memory<float>(heads * SPLITS * D), *softmax = memory<float>(2 * heads * SPLITS);
  measure("new token, parts", [&] {
    new_token_part<<<dim3(SPLITS, heads), 128, n / SPLITS * sizeof(float)>>>(q, k, v, part, (float2*)softmax, n);
  });
  measure("to the store", [&] {
    append_to_store<<<total / 4 / 256, 256>>>((float4*)q, (float4*)out, token, (float4*)k, (float4*)v, total / 4);
  });
  float* state = memory<float>(heads * D * D);
  measure("keys times values", [&] { keys_times_values<<<dim3(n / 64, heads), 256>>>(k, v, state, n); });
  measure("tokens with sines", [&] { embed_with_sines<<<total / 256, 256>>>(q, token, out, WIDTH, total); });
  measure("capped softmax",
          [&] { capped_softmax<<<dim3(n, HEADS), 256, n * sizeof(float)>>>(scores, other, 30.0f, n); });
}
