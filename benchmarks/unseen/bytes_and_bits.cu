// Bytes and bits: text, grey images, counted and reversed bits, packed signs, hashes, codes that differ least.
// sizes: 16 26 (log2 of the bytes)
#include "../micro/micro.h"

using Byte = unsigned char;

__global__ void count_bits(const unsigned* x, unsigned* total, int n) {
  unsigned sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += __popc(x[i]);
  sum = __reduce_add_sync(0xffffffff, sum);
  if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}

// Bit after bit, as the definition says.
__global__ void reverse_bits(unsigned* x, unsigned* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = x[i], reversed = 0;
  for (int bit = 0; bit < 32; bit++) {
    reversed = reversed << 1 | (v & 1);
    v >>= 1;
  }
  y[i] = reversed;
}

__global__ void upper_case(char* text, char* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  char c = text[i];
  if (c >= 'a' && c <= 'z') c = c - 'a' + 'A';
  out[i] = c;
}

// 16 bytes a thread.
__global__ void shift_letters(const uint4* __restrict__ text, uint4* __restrict__ out, int shift, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint4 v = text[i];
  Byte* bytes = reinterpret_cast<Byte*>(&v);
#pragma unroll
  for (int k = 0; k < 16; k++)
    if (bytes[k] >= 'a' && bytes[k] <= 'z') bytes[k] = 'a' + (bytes[k] - 'a' + shift) % 26;
  out[i] = v;
}

__global__ void count_lines(const char* text, int* lines, int n) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned ends = __ballot_sync(0xffffffff, i < n && text[i] == '\n');
  if (threadIdx.x % 32 == 0 && ends) atomicAdd(&count, __popc(ends));
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(lines, count);
}

// Three bytes a pixel in, one out.
__global__ void grey(Byte* rgb, Byte* out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int at = y * width + x;
  Byte r = rgb[3 * at], g = rgb[3 * at + 1], b = rgb[3 * at + 2];
  out[at] = 0.299f * r + 0.587f * g + 0.114f * b;
}

// Which elements are large: a bit each.
__global__ void pack_signs(const float* x, unsigned* bits, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned word = __ballot_sync(0xffffffff, i < n && x[i] > 0.5f);
  if (i < n && threadIdx.x % 32 == 0) bits[i / 32] = word;
}

// A hash of each record of 64 bytes, byte after byte.
__global__ void hash_records(const Byte* records, unsigned long long* hashes, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned long long hash = 14695981039346656037ull;
  for (int k = 0; k < 64; k++) {
    hash ^= records[i * 64 + k];
    hash *= 1099511628211ull;
  }
  hashes[i] = hash;
}

// Of 64 codes of 256 bits, which differs least from each of many?
__global__ void nearest_code(const unsigned* __restrict__ codes, const unsigned* __restrict__ queries,
                             Byte* __restrict__ nearest, int count) {
  __shared__ unsigned shared[64 * 8];
  for (int i = threadIdx.x; i < 64 * 8; i += blockDim.x) shared[i] = queries[i];
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned code[8];
#pragma unroll
  for (int k = 0; k < 8; k++) code[k] = codes[k * count + i];
  int least = 257, place = 0;
  for (int q = 0; q < 64; q++) {
    int distance = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) distance += __popc(code[k] ^ shared[q * 8 + k]);
    if (distance < least) {
      least = distance;
      place = q;
    }
  }
  nearest[i] = place;
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 16);
  Byte *x = memory<Byte>(n), *y = memory<Byte>(n);
  std::vector<Byte> bytes(n);
  unsigned random = 3;
  for (Byte& b : bytes) {
    random = random * 1664525u + 1013904223u;
    b = random >> 28 ? 'A' + (random >> 16) % 58 : '\n';
  }
  CHECK(cudaMemcpy(x, bytes.data(), n, cudaMemcpyHostToDevice));
  unsigned* total = memory<unsigned>(1);
  const int width = 256, height = n / 3 / width;
  measure("count bits", [&] { count_bits<<<264, 512>>>((unsigned*)x, total, n / 4); });
  measure("reverse bits", [&] { reverse_bits<<<n / 4 / 256, 256>>>((unsigned*)x, (unsigned*)y, n / 4); });
  measure("upper case", [&] { upper_case<<<n / 256, 256>>>((char*)x, (char*)y, n); });
  measure("shift letters", [&] { shift_letters<<<n / 16 / 128, 128>>>((uint4*)x, (uint4*)y, 3, n / 16); });
  measure("count lines", [&] { count_lines<<<n / 1024, 1024>>>((char*)x, (int*)total, n); });
  measure("grey", [&] { grey<<<dim3(width / 32, (height + 7) / 8), dim3(32, 8)>>>(x, y, width, height); });
  measure("pack signs", [&] { pack_signs<<<n / 4 / 128, 128>>>((float*)x, (unsigned*)y, n / 4); });
  measure("hash records", [&] { hash_records<<<n / 64 / 256, 256>>>(x, (unsigned long long*)y, n / 64); });
  measure("nearest code", [&] { nearest_code<<<n / 32 / 256, 256>>>((unsigned*)x, (unsigned*)x, y, n / 32); });
}
