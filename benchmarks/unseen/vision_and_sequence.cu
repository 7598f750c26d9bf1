// Pictures and tokens: grey, blur, edges, enlarging, embeddings with positions, rotation, causal scores, a store.
// sizes: 1 64 (pictures of 3 x 256 x 256 bytes or floats; for each, 256 tokens of 768 features)
#include <cuda_fp16.h>

#include "../micro/micro.h"

constexpr int SIDE = 256, AREA = SIDE * SIDE, LARGE = 384, TOKENS = 256, WIDTH = 768, HEADS = 12, HEAD = WIDTH / HEADS;
constexpr int WORDS = 5000, ROOM = 512;

// Four pixels a thread, from three planes.
__global__ void grey_planes_float4(const float4* x, float4* y, int area4, int total4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total4) return;
  const float4* rgb = x + i / area4 * 3 * area4 + i % area4;
  float4 r = rgb[0], g = rgb[area4], b = rgb[2 * area4];
  y[i] = make_float4(0.299f * r.x + 0.587f * g.x + 0.114f * b.x, 0.299f * r.y + 0.587f * g.y + 0.114f * b.y,
                     0.299f * r.z + 0.587f * g.z + 0.114f * b.z, 0.299f * r.w + 0.587f * g.w + 0.114f * b.w);
}

// 5 x 5 through a tile of 20 x 20; what lies outside is the nearest pixel.
__global__ void blur_5x5_tile(const float* x, float* y) {
  __shared__ float tile[20][20];
  const float* plane = x + blockIdx.z * AREA;
  int tid = threadIdx.y * 16 + threadIdx.x;
  for (int i = tid; i < 400; i += 256) {
    int row = min(max((int)blockIdx.y * 16 + i / 20 - 2, 0), SIDE - 1);
    int col = min(max((int)blockIdx.x * 16 + i % 20 - 2, 0), SIDE - 1);
    tile[i / 20][i % 20] = plane[row * SIDE + col];
  }
  __syncthreads();
  float sum = 0.0f;
  for (int dy = 0; dy < 5; dy++)
    for (int dx = 0; dx < 5; dx++) sum += tile[threadIdx.y + dy][threadIdx.x + dx];
  y[blockIdx.z * AREA + (blockIdx.y * 16 + threadIdx.y) * SIDE + blockIdx.x * 16 + threadIdx.x] = sum / 25.0f;
}

// Sobel's edges of bytes, a thread a pixel of a flat list; nothing at the border.
__global__ void sobel_bytes(const unsigned char* x, unsigned char* y, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int col = i % SIDE, row = i / SIDE % SIDE;
  int value = 0;
  if (col > 0 && col < SIDE - 1 && row > 0 && row < SIDE - 1) {
    const unsigned char *up = x + i - SIDE, *at = x + i, *down = x + i + SIDE;
    int gx = up[1] + 2 * at[1] + down[1] - up[-1] - 2 * at[-1] - down[-1];
    int gy = down[-1] + 2 * down[0] + down[1] - up[-1] - 2 * up[0] - up[1];
    value = min(abs(gx) + abs(gy), 255);
  }
  y[i] = value;
}

// To one and a half times the side; the colours of a pixel lie together, and the corners stay where they are.
__global__ void enlarge_colours(const float* __restrict__ x, float* __restrict__ y, float ratio) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (col >= LARGE || row >= LARGE) return;
  const float fx = col * ratio, fy = row * ratio;
  const int x0 = min((int)fx, SIDE - 1), y0 = min((int)fy, SIDE - 1);
  const int x1 = min(x0 + 1, SIDE - 1), y1 = min(y0 + 1, SIDE - 1);
  const float u = fx - x0, v = fy - y0;
  const float* in = x + blockIdx.z * AREA * 3;
  float* out = y + ((blockIdx.z * LARGE + row) * LARGE + col) * 3;
  for (int c = 0; c < 3; c++) {
    const float top = in[(y0 * SIDE + x0) * 3 + c] * (1.0f - u) + in[(y0 * SIDE + x1) * 3 + c] * u;
    const float bottom = in[(y1 * SIDE + x0) * 3 + c] * (1.0f - u) + in[(y1 * SIDE + x1) * 3 + c] * u;
    out[c] = top * (1.0f - v) + bottom * v;
  }
}

// A block a token: its word's row and its position's row are added.
__global__ void embed_with_positions(const int* tokens, const float4* words, const float4* positions, float4* y) {
  int token = blockIdx.x, f = threadIdx.x;
  float4 w = words[tokens[token] * (WIDTH / 4) + f], p = positions[token % TOKENS * (WIDTH / 4) + f];
  y[token * (WIDTH / 4) + f] = make_float4(w.x + p.x, w.y + p.y, w.z + p.z, w.w + p.w);
}

// Halves of each head turned by angles that are computed on the spot: a block a token, a thread a pair.
__global__ void rotate_tokens(const float* x, float* y) {
  int token = blockIdx.x;
  for (int p = threadIdx.x; p < WIDTH / 2; p += blockDim.x) {
    int head = p / (HEAD / 2), k = p % (HEAD / 2);
    int first = token * WIDTH + head * HEAD + k, second = first + HEAD / 2;
    float angle = token % TOKENS * powf(10000.0f, -2.0f * k / HEAD), sine, cosine;
    sincosf(angle, &sine, &cosine);
    float a = x[first], b = x[second];
    y[first] = a * cosine - b * sine;
    y[second] = a * sine + b * cosine;
  }
}

// Scores scaled, and masked where the key comes after the query: four keys a thread, four rows a block.
__global__ void causal_scale_float4(const float4* __restrict__ scores, float4* __restrict__ out, float scale,
                                    int rows) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y, key = threadIdx.x * 4;
  if (row >= rows) return;
  const int query = row % TOKENS, i = row * (TOKENS / 4) + threadIdx.x;
  const float4 v = scores[i];
  out[i] = make_float4(key <= query ? v.x * scale : -INFINITY, key + 1 <= query ? v.y * scale : -INFINITY,
                       key + 2 <= query ? v.z * scale : -INFINITY, key + 3 <= query ? v.w * scale : -INFINITY);
}

// New keys and values, as halves, behind those that each head has: (batch, token, head) becomes (batch, head, token).
__global__ void append_to_heads(const float* keys, const float* values, __half* key_store, __half* value_store,
                                int length, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int d = i % HEAD, head = i / HEAD % HEADS, token = i / WIDTH % TOKENS, batch = i / (WIDTH * TOKENS);
  int to = ((batch * HEADS + head) * ROOM + length + token) * HEAD + d;
  key_store[to] = __float2half(keys[i]);
  value_store[to] = __float2half(values[i]);
}

int main(int argc, char** argv) {
  const int batch = size_of_run(argc, argv, 1), colours = batch * 3 * AREA, tokens = batch * TOKENS;
  const int features = tokens * WIDTH, rows = batch * HEADS * TOKENS, scores = rows * TOKENS;
  const int n = std::max(std::max(colours, features), scores);
  float *x = memory<float>(n), *z = memory<float>(n), *y = memory<float>(std::max(n, batch * 3 * LARGE * LARGE));
  unsigned char *bytes = memory<unsigned char>(colours), *edges = memory<unsigned char>(colours);
  float *words = memory<float>(WORDS * WIDTH), *positions = memory<float>(TOKENS * WIDTH);
  int* ids = memory<int>(tokens);
  const size_t room = (size_t)batch * HEADS * ROOM * HEAD;
  __half *key_store = memory<__half>(room), *value_store = memory<__half>(room);
  std::vector<float> values(n);
  std::vector<unsigned char> grey(colours);
  std::vector<int> text(tokens);
  unsigned state = 50;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  for (unsigned char& v : grey) v = (state = state * 1664525u + 1013904223u) >> 24;
  for (int& v : text) v = ((state = state * 1664525u + 1013904223u) >> 8) % WORDS;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(positions, values.data(), TOKENS * WIDTH * sizeof(float), cudaMemcpyHostToDevice));
  std::reverse(values.begin(), values.end());
  CHECK(cudaMemcpy(z, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(bytes, grey.data(), colours, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(ids, text.data(), tokens * sizeof(int), cudaMemcpyHostToDevice));
  measure("grey, planes, float4", [&] {
    grey_planes_float4<<<(batch * AREA / 4 + 255) / 256, 256>>>((float4*)x, (float4*)y, AREA / 4, batch * AREA / 4);
  });
  measure("blur, 5 x 5, tile", [&] { blur_5x5_tile<<<dim3(SIDE / 16, SIDE / 16, batch * 3), dim3(16, 16)>>>(x, y); });
  measure("edges of bytes", [&] { sobel_bytes<<<(colours + 255) / 256, 256>>>(bytes, edges, colours); });
  measure("enlarged, colours together", [&] {
    dim3 grid(LARGE / 32, LARGE / 8, batch);
    enlarge_colours<<<grid, dim3(32, 8)>>>(x, y, (SIDE - 1.0f) / (LARGE - 1.0f));
  });
  measure("embedding, learned positions",
          [&] { embed_with_positions<<<tokens, WIDTH / 4>>>(ids, (float4*)words, (float4*)positions, (float4*)y); });
  measure("rotation, angles on the spot", [&] { rotate_tokens<<<tokens, 128>>>(x, y); });
  measure("causal scores, float4",
          [&] { causal_scale_float4<<<(rows + 3) / 4, dim3(TOKENS / 4, 4)>>>((float4*)x, (float4*)y, 0.125f, rows); });
  measure("store of heads, halves",
          [&] { append_to_heads<<<(features + 255) / 256, 256>>>(x, z, key_store, value_store, 100, features); });
}
