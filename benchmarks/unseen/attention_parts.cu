// What stands around the products in a transformer: positions, masks, one new token, and attention tile by tile.
// sizes: 64 1024 (tokens)
#include "../micro/micro.h"

constexpr int HEADS = 16, DEPTH = 64, BATCH = 8, NARROW = 32;

// Neighbouring elements are turned together; every angle is computed where it is needed.
__global__ void rotary_pairs(float2* x, int tokens) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= BATCH * HEADS * tokens * DEPTH / 2) return;
  int pair = i % (DEPTH / 2), token = i / (DEPTH / 2) % tokens;
  float angle = token * powf(10000.0f, -2.0f * pair / DEPTH);
  float s, c;
  sincosf(angle, &s, &c);
  float2 v = x[i];
  x[i] = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
}

// The first half of each row is turned with the second; sines and cosines come from tables.
__global__ void rotary_halves(const float* __restrict__ x, const float* __restrict__ cosines,
                              const float* __restrict__ sines, float* __restrict__ y, int tokens) {
  const int d = threadIdx.x, token = blockIdx.x * blockDim.y + threadIdx.y;
  const size_t row = ((size_t)blockIdx.y * tokens + token) * DEPTH;
  const float c = cosines[token * (DEPTH / 2) + d], s = sines[token * (DEPTH / 2) + d];
  const float a = x[row + d], b = x[row + d + DEPTH / 2];
  y[row + d] = a * c - b * s;
  y[row + d + DEPTH / 2] = b * c + a * s;
}

__global__ void add_positions(const float* x, float* y, int tokens, int width, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int d = i % width, token = i / width % tokens;
  float angle = token / powf(10000.0f, (float)(d / 2 * 2) / width);
  y[i] = x[i] + (d % 2 == 0 ? sinf(angle) : cosf(angle));
}

// Scores are scaled, lowered with the distance, and hidden if they look ahead.
__global__ void mask_scores(const float* scores, float* out, float scale, int tokens) {
  int key = blockIdx.x * blockDim.x + threadIdx.x, query = blockIdx.y, head = blockIdx.z;
  if (key >= tokens) return;
  size_t i = ((size_t)head * tokens + query) * tokens + key;
  float slope = exp2f(-8.0f * (head + 1) / HEADS);
  out[i] = key > query ? -1e9f : scores[i] * scale - slope * (query - key);
}

// Softmax over what came before: a block a row, and the rest is zero.
__global__ void causal_softmax(const float* scores, float* out, int tokens) {
  __shared__ float part[128];
  int row = blockIdx.x, tid = threadIdx.x, length = row % tokens + 1;
  scores += (size_t)row * tokens;
  out += (size_t)row * tokens;
  float largest = -INFINITY;
  for (int i = tid; i < length; i += 128) largest = fmaxf(largest, scores[i]);
  part[tid] = largest;
  __syncthreads();
  for (int s = 64; s > 0; s /= 2) {
    if (tid < s) part[tid] = fmaxf(part[tid], part[tid + s]);
    __syncthreads();
  }
  largest = part[0];
  __syncthreads();
  float sum = 0.0f;
  for (int i = tid; i < length; i += 128) sum += __expf(scores[i] - largest);
  part[tid] = sum;
  __syncthreads();
  for (int s = 64; s > 0; s /= 2) {
    if (tid < s) part[tid] += part[tid + s];
    __syncthreads();
  }
  float inverse = 1.0f / part[0];
  for (int i = tid; i < tokens; i += 128) out[i] = i < length ? __expf(scores[i] - largest) * inverse : 0.0f;
}

// One new query for each head of each sequence: a block goes through all keys, and then through all values.
__global__ void decode(const float* __restrict__ query, const float* __restrict__ keys,
                       const float* __restrict__ values, float* __restrict__ out, int tokens) {
  extern __shared__ float weights[];
  __shared__ float q[DEPTH], part[4][DEPTH], most[4], totals[4];
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  keys += (size_t)blockIdx.x * tokens * DEPTH;
  values += (size_t)blockIdx.x * tokens * DEPTH;
  if (tid < DEPTH) q[tid] = query[blockIdx.x * DEPTH + tid];
  __syncthreads();
  float largest = -INFINITY;
  for (int t = warp; t < tokens; t += 4) {
    float dot = q[lane] * keys[t * DEPTH + lane] + q[lane + 32] * keys[t * DEPTH + lane + 32];
    for (int offset = 16; offset > 0; offset /= 2) dot += __shfl_xor_sync(0xffffffff, dot, offset);
    if (lane == 0) weights[t] = dot * 0.125f;
    largest = fmaxf(largest, dot * 0.125f);
  }
  if (lane == 0) most[warp] = largest;
  __syncthreads();
  largest = fmaxf(fmaxf(most[0], most[1]), fmaxf(most[2], most[3]));
  float total = 0.0f;
  for (int t = tid; t < tokens; t += 128) {
    weights[t] = __expf(weights[t] - largest);
    total += weights[t];
  }
  for (int offset = 16; offset > 0; offset /= 2) total += __shfl_xor_sync(0xffffffff, total, offset);
  if (lane == 0) totals[warp] = total;
  __syncthreads();
  float low = 0.0f, high = 0.0f;
  for (int t = warp; t < tokens; t += 4) {
    low += weights[t] * values[t * DEPTH + lane];
    high += weights[t] * values[t * DEPTH + lane + 32];
  }
  part[warp][lane] = low;
  part[warp][lane + 32] = high;
  __syncthreads();
  if (tid < DEPTH)
    out[blockIdx.x * DEPTH + tid] =
        (part[0][tid] + part[1][tid] + part[2][tid] + part[3][tid]) / (totals[0] + totals[1] + totals[2] + totals[3]);
}

// A thread a query, whose sums stay in registers; a block brings 64 keys and values at a time.
__global__ void __launch_bounds__(64)
    tiled_attention(const float* q, const float* k, const float* v, float* out, int tokens) {
  __shared__ float tile_k[64][NARROW], tile_v[64][NARROW];
  const int query = blockIdx.x * 64 + threadIdx.x;
  const size_t head = (size_t)blockIdx.y * tokens * NARROW;
  float own[NARROW], sums[NARROW] = {}, largest = -INFINITY, total = 0.0f;
#pragma unroll
  for (int d = 0; d < NARROW; d++) own[d] = q[head + query * NARROW + d];
  for (int t0 = 0; t0 < tokens; t0 += 64) {
    for (int i = threadIdx.x; i < 64 * NARROW; i += 64) {
      tile_k[i / NARROW][i % NARROW] = k[head + t0 * NARROW + i];
      tile_v[i / NARROW][i % NARROW] = v[head + t0 * NARROW + i];
    }
    __syncthreads();
    for (int t = 0; t < 64; t++) {
      float score = 0.0f;
#pragma unroll
      for (int d = 0; d < NARROW; d++) score += own[d] * tile_k[t][d];
      const float larger = fmaxf(largest, score), before = __expf(largest - larger), now = __expf(score - larger);
      total = total * before + now;
#pragma unroll
      for (int d = 0; d < NARROW; d++) sums[d] = sums[d] * before + now * tile_v[t][d];
      largest = larger;
    }
    __syncthreads();
  }
#pragma unroll
  for (int d = 0; d < NARROW; d++) out[head + query * NARROW + d] = sums[d] / total;
}

int main(int argc, char** argv) {
  const int tokens = size_of_run(argc, argv, 64), total = BATCH * HEADS * tokens * DEPTH;
  float *x = memory<float>(total), *y = memory<float>(total), *table = memory<float>(tokens * DEPTH);
  float* answer = memory<float>(BATCH * HEADS * DEPTH);
  const size_t square = (size_t)HEADS * tokens * tokens;
  float *scores = memory<float>(square), *masked = memory<float>(square), *query = memory<float>(BATCH * HEADS * DEPTH);
  measure("rotary, pairs", [&] { rotary_pairs<<<total / 2 / 256, 256>>>((float2*)x, tokens); });
  measure("rotary, halves",
          [&] { rotary_halves<<<dim3(tokens / 8, BATCH * HEADS), dim3(DEPTH / 2, 8)>>>(x, table, table, y, tokens); });
  measure("add positions", [&] { add_positions<<<total / 512, 512>>>(x, y, tokens, HEADS * DEPTH, total); });
  measure("mask scores",
          [&] { mask_scores<<<dim3((tokens + 127) / 128, tokens, HEADS), 128>>>(scores, masked, 0.125f, tokens); });
  measure("causal softmax", [&] { causal_softmax<<<HEADS * tokens, 128>>>(scores, masked, tokens); });
  measure("one new token",
          [&] { decode<<<BATCH * HEADS, 128, tokens * sizeof(float)>>>(query, x, y, answer, tokens); });
  measure("tile by tile", [&] { tiled_attention<<<dim3(tokens / 64, HEADS), 64>>>(scores, x, y, masked, tokens); });
}
