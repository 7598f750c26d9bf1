// title: Bit tricks: reversal, leading zeros, funnel shifts, byte permutations, Morton codes and Gray codes
// features: integer_intrinsics, simd_intrinsics, templates

#include <bitset>
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <vector>

using std::uint32_t;
using std::uint64_t;

#define CHECK(call)                                                                   \
  do {                                                                                \
    const auto code = (call);                                                         \
    if (code != cudaSuccess) {                                                        \
      std::cerr << #call << ": " << cudaGetErrorString(code) << '\n';                 \
      std::exit(1);                                                                   \
    }                                                                                 \
  } while (0)

constexpr int KINDS = 14;

__device__ uint32_t spread(uint32_t v) {  // a zero between any two bits
  v = (v | v << 8) & 0x00ff00ffu;
  v = (v | v << 4) & 0x0f0f0f0fu;
  v = (v | v << 2) & 0x33333333u;
  return (v | v << 1) & 0x55555555u;
}

__global__ void tricks(const uint32_t* in, uint32_t* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uint32_t x = in[i], y = in[(i + 1) % n];
  uint32_t* o = out + i * KINDS;
  o[0] = __brev(x);
  o[1] = __clz((int)x);
  o[2] = __ffs((int)x);
  o[3] = __popc(x);
  o[4] = __funnelshift_l(x, y, i);
  o[5] = __funnelshift_r(x, y, i);
  o[6] = __byte_perm(x, y, 0x5140);
  o[7] = __umulhi(x, y);
  o[8] = __popcll((uint64_t)x << 32 | y) + 100 * __clzll((long long)(int)x);
  o[9] = __sad((int)x, (int)y, 7u);
  o[10] = spread(x & 0xffff) | spread(x >> 16) << 1;
  o[11] = __vavgu2(x, y);
  o[12] = __vseteq4(x, y & 0xff00ffffu);
  o[13] = __rhadd((int)(x >> 1), (int)(y >> 1)) ^ __mul24((int)(x & 0x7fff), (int)(y & 0xfff));
}

int main() {
  const int n = 1500;
  std::vector<uint32_t> in(n), out(n * KINDS);
  uint32_t s = 1;
  for (int i = 0; i < n; i++) {
    s ^= s << 13, s ^= s >> 17, s ^= s << 5;
    in[i] = i == 0 ? 0 : i == 1 ? ~0u : i % 5 ? s : s >> (i % 32);
  }
  uint32_t *din, *dout;
  CHECK(cudaMalloc(&din, n * sizeof(uint32_t)));
  CHECK(cudaMalloc(&dout, out.size() * sizeof(uint32_t)));
  CHECK(cudaMemcpy(din, in.data(), n * sizeof(uint32_t), cudaMemcpyHostToDevice));
  tricks<<<(n + 127) / 128, 128>>>(din, dout, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), dout, out.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(din));
  CHECK(cudaFree(dout));
  std::vector<int> wrong(KINDS, 0);
  uint32_t hash = 2166136261u;
  for (int i = 0; i < n; i++) {
    const uint32_t x = in[i], y = in[(i + 1) % n];
    std::bitset<32> b(x);
    uint32_t w[KINDS] = {};
    for (int k = 0; k < 32; k++) w[0] |= (uint32_t)b[k] << (31 - k);
    w[1] = 32;
    for (int k = 0; k < 32; k++)
      if (b[k]) w[1] = 31 - k;
    for (int k = 31; k >= 0; k--)
      if (b[k]) w[2] = k + 1;
    w[3] = (uint32_t)b.count();
    const uint64_t both = (uint64_t)y << 32 | x;
    w[4] = (uint32_t)((both << (i % 32)) >> 32);
    w[5] = (uint32_t)(both >> (i % 32));
    w[6] = (x & 0xff) | (y & 0xff) << 8 | (x >> 8 & 0xff) << 16 | (y >> 8 & 0xff) << 24;
    w[7] = (uint32_t)((uint64_t)x * y >> 32);
    w[8] = (uint32_t)(b.count() + std::bitset<32>(y).count()) + 100 * (x >> 31 ? 0 : w[1] + 32);  // sign-extended
    const int64_t difference = (int64_t)(int32_t)x - (int32_t)y;
    w[9] = 7u + (uint32_t)(difference < 0 ? -difference : difference);
    for (int k = 0; k < 16; k++) w[10] |= (uint32_t)b[k] << (2 * k) | (uint32_t)b[k + 16] << (2 * k + 1);
    w[11] = ((x & 0xffff) + (y & 0xffff) + 1) / 2 | ((x >> 16) + (y >> 16) + 1) / 2 << 16;
    const uint32_t z = y & 0xff00ffffu;
    for (int k = 0; k < 32; k += 8) w[12] |= (uint32_t)((x >> k & 255) == (z >> k & 255)) << k;
    w[13] = (uint32_t)(((int64_t)(x >> 1) + (y >> 1) + 1) >> 1) ^ (x & 0x7fff) * (y & 0xfff);
    for (int k = 0; k < KINDS; k++) {
      wrong[k] += w[k] != out[i * KINDS + k];
      hash = (hash ^ out[i * KINDS + k]) * 16777619u;
    }
  }
  int total = 0;
  for (int k = 0; k < KINDS; k++) {
    total += wrong[k];
    if (wrong[k]) std::cout << "kind " << k << ": " << wrong[k] << " wrong\n";
  }
  std::cout << "hash " << std::hex << hash << std::dec << '\n' << (total ? "FAILED" : "PASSED") << '\n';
  return total != 0;
}
