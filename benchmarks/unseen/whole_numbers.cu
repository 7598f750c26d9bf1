// Whole numbers: primes by sieving, powers modulo a number, check sums, decimals, bits, queens, long products.
// sizes: 12 22 (log2 of the numbers)
#include "../micro/micro.h"

constexpr int SEGMENT = 1 << 15, QUEENS = 12, WORDS = 8;

// A block a segment of 32768 numbers, a bit each in shared memory; small primes together, large ones a thread each.
__global__ void sieve_segments(const int* primes, int count, unsigned* composite) {
  __shared__ unsigned bits[SEGMENT / 32];
  int tid = threadIdx.x, first = blockIdx.x * SEGMENT;
  for (int i = tid; i < SEGMENT / 32; i += blockDim.x) bits[i] = 0;
  __syncthreads();
  int k = 0;
  for (; k < count && primes[k] < 256; k++) {
    int p = primes[k], start = max(2 * p, (first + p - 1) / p * p) - first;
    for (int i = start + tid * p; i < SEGMENT; i += blockDim.x * p) atomicOr(&bits[i / 32], 1u << i % 32);
  }
  for (k += tid; k < count; k += blockDim.x) {
    int p = primes[k], start = max(2 * p, (first + p - 1) / p * p) - first;
    for (int i = start; i < SEGMENT; i += p) atomicOr(&bits[i / 32], 1u << i % 32);
  }
  __syncthreads();
  for (int i = tid; i < SEGMENT / 32; i += blockDim.x) composite[first / 32 + i] = bits[i];
}

// Powers modulo a number, by squares; each division is one of 64 bits.
__global__ void modular_power(unsigned* base, unsigned* exponent, unsigned* result, unsigned modulus, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long b = base[i] % modulus, power = 1;
  for (unsigned e = exponent[i] >> 12; e > 0; e >>= 1) {
    if (e & 1) power = power * b % modulus;
    b = b * b % modulus;
  }
  result[i] = power;
}

// A check sum of each record of 32 bytes, bit after bit.
__global__ void crc_bit_by_bit(const unsigned char* data, unsigned* sums, int records) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= records) return;
  unsigned crc = 0xffffffffu;
  for (int i = 0; i < 32; i++) {
    crc ^= data[r * 32 + i];
    for (int bit = 0; bit < 8; bit++) {
      if (crc & 1)
        crc = crc >> 1 ^ 0xedb88320u;
      else
        crc >>= 1;
    }
  }
  sums[r] = ~crc;
}

// The same of 64 bytes, by a table that each block makes for itself, 16 bytes a read.
__global__ void crc_by_table(const uint4* __restrict__ data, unsigned* __restrict__ sums, int records) {
  __shared__ unsigned table[256];
  unsigned entry = threadIdx.x;
#pragma unroll
  for (int bit = 0; bit < 8; bit++) entry = entry >> 1 ^ (entry & 1 ? 0xedb88320u : 0u);
  table[threadIdx.x] = entry;
  __syncthreads();
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= records) return;
  unsigned crc = 0xffffffffu;
  for (int part = 0; part < 4; part++) {
    const uint4 v = data[r * 4 + part];
    const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int w = 0; w < 4; w++)
#pragma unroll
      for (int k = 0; k < 4; k++) crc = crc >> 8 ^ table[(crc ^ words[w] >> 8 * k) & 255];
  }
  sums[r] = ~crc;
}

// Each number as ten decimal digits, the last one first.
__global__ void to_decimal(unsigned* x, char* text, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = x[i];
  for (int k = 9; k >= 0; k--) {
    text[i * 10 + k] = '0' + v % 10;
    v /= 10;
  }
}

// Bits counted by taking away the lowest one until none is left.
__global__ void take_lowest_bits(const unsigned* x, unsigned char* counts, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned v = x[i];
    int count = 0;
    while (v) {
      v &= v - 1;
      count++;
    }
    counts[i] = count;
  }
}

// Twelve queens on a board: each thread places three and tries everything for the others.
__global__ void queens(unsigned long long* solutions) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= QUEENS * QUEENS * QUEENS) return;
  const unsigned all = (1u << QUEENS) - 1;
  unsigned columns[QUEENS], left[QUEENS], right[QUEENS], free[QUEENS];
  unsigned c = 0, l = 0, r = 0;
  for (int row = 0; row < 3; row++) {
    unsigned place = 1u << i % QUEENS;
    i /= QUEENS;
    if (place & (c | l | r)) return;
    c |= place;
    l = (l | place) << 1;
    r = (r | place) >> 1;
  }
  unsigned found = 0;
  int row = 3;
  columns[3] = c, left[3] = l, right[3] = r, free[3] = all & ~(c | l | r);
  while (row >= 3) {
    if (free[row] == 0) {
      row--;
      continue;
    }
    unsigned place = free[row] & -free[row];
    free[row] ^= place;
    if (row == QUEENS - 1) {
      found++;
      continue;
    }
    columns[row + 1] = columns[row] | place;
    left[row + 1] = (left[row] | place) << 1;
    right[row + 1] = (right[row] | place) >> 1;
    row++;
    free[row] = all & ~(columns[row] | left[row] | right[row]);
  }
  atomicAdd(solutions, (unsigned long long)found);
}

// Numbers of 256 bits times each other, by words of 32; those of neighbouring threads lie side by side.
__global__ void multiply_256(const unsigned* __restrict__ a, const unsigned* __restrict__ b, unsigned* __restrict__ c,
                             int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned left[WORDS], product[2 * WORDS] = {};
#pragma unroll
  for (int k = 0; k < WORDS; k++) left[k] = a[k * count + i];
#pragma unroll
  for (int j = 0; j < WORDS; j++) {
    const unsigned right = b[j * count + i];
    unsigned carry = 0;
#pragma unroll
    for (int k = 0; k < WORDS; k++) {
      const unsigned long long t = (unsigned long long)left[k] * right + product[j + k] + carry;
      product[j + k] = (unsigned)t;
      carry = t >> 32;
    }
    product[j + WORDS] = carry;
  }
#pragma unroll
  for (int k = 0; k < 2 * WORDS; k++) c[k * count + i] = product[k];
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 12), range = std::max(4 * n, SEGMENT);
  unsigned *x = memory<unsigned>(4 * n), *y = memory<unsigned>(4 * n), *z = memory<unsigned>(4 * n);
  std::vector<unsigned> numbers(4 * n);
  unsigned state = 20;
  for (unsigned& v : numbers) v = (state = state * 1664525u + 1013904223u) ^ state >> 13;
  CHECK(cudaMemcpy(x, numbers.data(), numbers.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
  std::vector<int> list;
  for (int p = 2; p * p < range; p++) {
    bool prime = true;
    for (int q : list) prime = prime && p % q != 0;
    if (prime) list.push_back(p);
  }
  int* primes = memory<int>(list.size());
  CHECK(cudaMemcpy(primes, list.data(), list.size() * sizeof(int), cudaMemcpyHostToDevice));
  const int count = list.size(), powers = n / 4, records = n / 8, products = n / 16;
  measure("sieve", [&] { sieve_segments<<<range / SEGMENT, 256>>>(primes, count, y); });
  measure("powers", [&] { modular_power<<<powers / 128, 128>>>(x, x + powers, y, 1000000007u, powers); });
  measure("check sum, bits", [&] { crc_bit_by_bit<<<records / 128, 128>>>((unsigned char*)x, y, records); });
  measure("check sum, table", [&] { crc_by_table<<<(records + 255) / 256, 256>>>((uint4*)x, y, records); });
  measure("decimals", [&] { to_decimal<<<n / 256, 256>>>(x, (char*)y, n); });
  measure("lowest bits", [&] { take_lowest_bits<<<528, 128>>>(x, (unsigned char*)y, 4 * n); });
  measure("queens", [&] { queens<<<(QUEENS * QUEENS * QUEENS + 31) / 32, 32>>>((unsigned long long*)z); });
  measure("256 bits", [&] { multiply_256<<<products / 128, 128>>>(x, x + n, y, products); });
}
