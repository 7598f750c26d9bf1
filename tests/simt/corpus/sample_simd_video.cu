// title: SIMD within a word: bytes and halves at once, dot products of bytes, motion estimation
// features: simd_intrinsics, integer_intrinsics, shared_memory

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CUDA_CHECK(x)                                             \
  if (auto e = (x); e != cudaSuccess) {                           \
    std::fprintf(stderr, "%s\n", cudaGetErrorString(e));          \
    std::exit(1);                                                 \
  }

enum { ADD4, SUB_SAT, AVG, ABSDIFF, MAXS2, MINU4, CMP, SAD, DP_S, DP_U, KINDS };

__global__ void packed(const uint32_t* a, const uint32_t* b, uint32_t* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint32_t x = a[i], y = b[i], *o = out + i * KINDS;
  o[ADD4] = __vadd4(x, y);
  o[SUB_SAT] = __vsubus4(x, y);
  o[AVG] = __vavgu4(x, y);
  o[ABSDIFF] = __vabsdiffu4(x, y);
  o[MAXS2] = __vmaxs2(x, y);
  o[MINU4] = __vminu4(x, y);
  o[CMP] = __vcmpgtu4(x, y);
  o[SAD] = __vsadu4(x, y);
  o[DP_S] = __dp4a((int)x, (int)y, i);
  o[DP_U] = __dp4a(x, y, (unsigned)i);
}

// For each 8x8 block of the frame: the shift (dx, 0 ... 15) of the row strip that fits best, by sums of differences.
__global__ void motion(const uint32_t* frame, const uint8_t* strip, int words, int2* best) {
  __shared__ uint32_t block[16];
  int bx = blockIdx.x, t = threadIdx.x;  // 16 threads, one a shift
  block[t] = frame[(t / 2) * words + bx * 2 + t % 2];
  __syncthreads();
  uint32_t cost = 0;
  for (int k = 0; k < 16; k++) {
    const uint8_t* p = strip + (k / 2) * (words * 4 + 16) + bx * 8 + (k % 2) * 4 + t;
    uint32_t w = p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
    cost += __vsadu4(block[k], w);
  }
  uint32_t key = cost << 8 | t;
  for (int d = 8; d; d /= 2) key = min(key, __shfl_xor_sync(0xffff, key, d, 16));
  if (t == 0) best[bx] = make_int2(key & 255, key >> 8);
}

template <class Lane, class F>
static uint32_t lanes(uint32_t x, uint32_t y, F f) {
  constexpr int count = 4 / sizeof(Lane);
  Lane a[count], b[count], c[count];
  std::memcpy(a, &x, 4), std::memcpy(b, &y, 4);
  for (int k = 0; k < count; k++) c[k] = (Lane)f((int)a[k], (int)b[k]);
  uint32_t r;
  std::memcpy(&r, c, 4);
  return r;
}

int main() {
  const int n = 2000;
  std::vector<uint32_t> a(n), b(n), got(n * KINDS);
  uint64_t s = 88172645463325252ull;
  auto next = [&s] { s ^= s << 13, s ^= s >> 7, s ^= s << 17; return (uint32_t)(s >> 16); };
  for (int i = 0; i < n; i++) a[i] = next(), b[i] = next();
  uint32_t *da, *db, *dout;
  CUDA_CHECK(cudaMalloc(&da, n * 4));
  CUDA_CHECK(cudaMalloc(&db, n * 4));
  CUDA_CHECK(cudaMalloc(&dout, n * 4 * KINDS));
  CUDA_CHECK(cudaMemcpy(da, a.data(), n * 4, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(db, b.data(), n * 4, cudaMemcpyHostToDevice));
  packed<<<(n + 127) / 128, 128>>>(da, db, dout, n);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(got.data(), dout, n * 4 * KINDS, cudaMemcpyDeviceToHost));
  int wrong[KINDS] = {}, bad = 0;
  uint32_t hash = 0;
  for (int i = 0; i < n; i++) {
    uint32_t x = a[i], y = b[i], want[KINDS];
    want[ADD4] = lanes<uint8_t>(x, y, [](int p, int q) { return p + q; });
    want[SUB_SAT] = lanes<uint8_t>(x, y, [](int p, int q) { return p > q ? p - q : 0; });
    want[AVG] = lanes<uint8_t>(x, y, [](int p, int q) { return (p + q + 1) / 2; });
    want[ABSDIFF] = lanes<uint8_t>(x, y, [](int p, int q) { return std::abs(p - q); });
    want[MAXS2] = lanes<int16_t>(x, y, [](int p, int q) { return std::max(p, q); });
    want[MINU4] = lanes<uint8_t>(x, y, [](int p, int q) { return std::min(p, q); });
    want[CMP] = lanes<uint8_t>(x, y, [](int p, int q) { return p > q ? 255 : 0; });
    want[SAD] = 0, want[DP_S] = i, want[DP_U] = i;
    for (int k = 0; k < 32; k += 8) {
      int p = x >> k & 255, q = y >> k & 255;
      want[SAD] += std::abs(p - q);
      want[DP_U] += p * q;
      want[DP_S] += (int8_t)p * (int8_t)q;
    }
    for (int k = 0; k < KINDS; k++) wrong[k] += want[k] != got[i * KINDS + k], hash = hash * 33 + got[i * KINDS + k];
  }
  for (int k = 0; k < KINDS; k++) bad += wrong[k];
  std::printf("hash %08x\n", hash);

  const int words = 32, pitch = words * 4 + 16, blocks = words / 2;
  std::vector<uint8_t> strip(8 * pitch);
  std::vector<uint32_t> frame(8 * words);
  for (auto& p : strip) p = (uint8_t)next();
  for (int y = 0; y < 8; y++)
    for (int x = 0; x < words * 4; x++) {
      int shift = (x / 8 * 5) % 16;  // hidden: block b is the strip shifted by 5 b mod 16
      frame[y * words + x / 4] |= (uint32_t)strip[y * pitch + x + shift] << (x % 4 * 8);
    }
  uint8_t* dstrip;
  int2* dbest;
  std::vector<int2> best(blocks);
  CUDA_CHECK(cudaMalloc(&dstrip, strip.size()));
  CUDA_CHECK(cudaMalloc(&dbest, blocks * sizeof(int2)));
  CUDA_CHECK(cudaMemcpy(da, frame.data(), frame.size() * 4, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(dstrip, strip.data(), strip.size(), cudaMemcpyHostToDevice));
  motion<<<blocks, 16>>>(da, dstrip, words, dbest);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(best.data(), dbest, blocks * sizeof(int2), cudaMemcpyDeviceToHost));
  for (int k = 0; k < blocks; k++) {
    std::printf("%d%s", best[k].x, k + 1 < blocks ? " " : "\n");
    bad += best[k].x != k * 5 % 16 || best[k].y != 0;
  }
  CUDA_CHECK(cudaFree(da));
  CUDA_CHECK(cudaFree(db));
  CUDA_CHECK(cudaFree(dout));
  CUDA_CHECK(cudaFree(dstrip));
  CUDA_CHECK(cudaFree(dbest));
  std::puts(bad ? "FAILED" : "PASSED");
  return bad ? 1 : 0;
}
