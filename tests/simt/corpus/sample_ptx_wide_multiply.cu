// title: 128-bit products, modular exponentiation and Montgomery steps with carry chains in inline PTX
// features: inline_ptx, unsigned_128_bit

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA(x)                                                          \
  do {                                                                   \
    if (cudaError_t e = (x)) {                                           \
      std::fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(e)); \
      std::exit(1);                                                      \
    }                                                                    \
  } while (0)

struct Wide {
  uint64_t lo, hi;
};

__device__ Wide multiply(uint64_t a, uint64_t b) {
  Wide r;
  asm("mul.lo.u64 %0, %1, %2;" : "=l"(r.lo) : "l"(a), "l"(b));
  asm("mul.hi.u64 %0, %1, %2;" : "=l"(r.hi) : "l"(a), "l"(b));
  return r;
}

__device__ Wide add(Wide a, Wide b, uint64_t* carry) {
  Wide r;
  uint64_t c;
  asm("add.cc.u64 %0, %3, %5;\n\t"
      "addc.cc.u64 %1, %4, %6;\n\t"
      "addc.u64 %2, 0, 0;"
      : "=l"(r.lo), "=l"(r.hi), "=l"(c)
      : "l"(a.lo), "l"(a.hi), "l"(b.lo), "l"(b.hi));
  *carry = c;
  return r;
}

// (a b) / 2^64 modulo m, for an odd m below 2^63; inverse is -1/m modulo 2^64
__device__ uint64_t montgomery(uint64_t a, uint64_t b, uint64_t m, uint64_t inverse) {
  Wide t = multiply(a, b), u = multiply(t.lo * inverse, m);
  uint64_t carry;
  Wide s = add(t, u, &carry);
  uint64_t r = s.hi;
  return r >= m ? r - m : r;
}

__global__ void powers(const uint64_t* base, const uint64_t* exponent, uint64_t* out, uint64_t m, uint64_t inverse, uint64_t one, uint64_t square,
                       int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint64_t b = montgomery(base[i], square, m, inverse), r = one;
  for (uint64_t e = exponent[i]; e; e >>= 1) {
    if (e & 1) r = montgomery(r, b, m, inverse);
    b = montgomery(b, b, m, inverse);
  }
  out[i] = montgomery(r, 1, m, inverse);
}

__global__ void sums(const uint64_t* a, const uint64_t* b, Wide* out, uint64_t* carries, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Wide p = multiply(a[i], b[i]), q = {~a[i], ~b[i]};
  out[i] = add(p, q, &carries[i]);
}

typedef unsigned __int128 u128;

int main() {
  const int n = 300;
  const uint64_t m = 4611686018427387847ull;  // a prime below 2^62
  uint64_t inverse = 1;
  for (int i = 0; i < 6; i++) inverse *= 2 - m * inverse;  // Newton: 1/m modulo 2^64
  inverse = ~inverse + 1;
  const uint64_t one = (uint64_t)(((u128)1 << 64) % m), square = (uint64_t)((u128)one * one % m);
  std::vector<uint64_t> a(n), exponents(n), out(n), carries(n);
  std::vector<Wide> wide(n);
  uint64_t s = 0x9e3779b97f4a7c15ull;
  for (int i = 0; i < n; i++) {
    s ^= s << 7, s ^= s >> 9;
    a[i] = s % m;
    s ^= s << 7, s ^= s >> 9;
    exponents[i] = i < 4 ? i : s;
  }
  uint64_t *da, *de, *dout, *dcarry;
  Wide* dwide;
  CUDA(cudaMalloc(&da, n * 8));
  CUDA(cudaMalloc(&de, n * 8));
  CUDA(cudaMalloc(&dout, n * 8));
  CUDA(cudaMalloc(&dcarry, n * 8));
  CUDA(cudaMalloc(&dwide, n * sizeof(Wide)));
  CUDA(cudaMemcpy(da, a.data(), n * 8, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(de, exponents.data(), n * 8, cudaMemcpyHostToDevice));
  powers<<<(n + 63) / 64, 64>>>(da, de, dout, m, inverse, one, square, n);
  sums<<<(n + 63) / 64, 64>>>(da, de, dwide, dcarry, n);
  CUDA(cudaGetLastError());
  CUDA(cudaMemcpy(out.data(), dout, n * 8, cudaMemcpyDeviceToHost));
  CUDA(cudaMemcpy(wide.data(), dwide, n * sizeof(Wide), cudaMemcpyDeviceToHost));
  CUDA(cudaMemcpy(carries.data(), dcarry, n * 8, cudaMemcpyDeviceToHost));
  CUDA(cudaFree(da));
  CUDA(cudaFree(de));
  CUDA(cudaFree(dout));
  CUDA(cudaFree(dcarry));
  CUDA(cudaFree(dwide));
  int wrong = 0;
  uint64_t hash = 0;
  for (int i = 0; i < n; i++) {
    u128 r = 1, b = a[i];
    for (uint64_t x = exponents[i]; x; x >>= 1) {
      if (x & 1) r = r * b % m;
      b = b * b % m;
    }
    wrong += (uint64_t)r != out[i];
    u128 p = (u128)a[i] * exponents[i], q = (u128)~exponents[i] << 64 | ~a[i], sum = p + q;
    wrong += (uint64_t)sum != wide[i].lo || (uint64_t)(sum >> 64) != wide[i].hi || carries[i] != (sum < p);
    hash = hash * 31 + out[i];
  }
  std::printf("%d powers modulo a prime, hash %016llx\n", n, (unsigned long long)hash);
  std::puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
