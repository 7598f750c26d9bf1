// title: the bits of mma.sync m16n8k32 on 8-bit floats: which products are added first, and where they are cut
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

__device__ void multiply(bool wide, float d[4], const unsigned a[4], const unsigned b[2], const float c[4]) {
  if (wide)
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

__global__ void run(bool wide, const unsigned* a, const unsigned* b, const float* c, float* d) {
  const int lane = threadIdx.x;
  multiply(wide, d + 4 * lane, a + 4 * lane, b + 2 * lane, c + 4 * lane);
}

static uint64_t state = 88172645463325252ull;
static unsigned draw() {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (unsigned)(state >> 20);
}

enum class Style { any, sparse, near_one, positive, small };

static unsigned draw_byte(bool wide, Style style) {
  const unsigned r = draw();
  const unsigned sign = r & 0x80, rest = r >> 8;
  switch (style) {
    case Style::sparse: return draw() % 4 ? 0 : sign | rest % 0x78;
    case Style::near_one: return sign | (wide ? 0x30 + rest % 24 : 0x28 + rest % 32);
    case Style::positive: return rest % 0x78;
    case Style::small: return sign | rest % (wide ? 12 : 24);
    default: return sign | rest % 0x78;
  }
}

static unsigned draw_word(bool wide, Style style) {
  unsigned word = 0;
  for (int i = 0; i < 4; ++i) word |= draw_byte(wide, style) << (8 * i);
  return word;
}

static float draw_float() {
  const unsigned sign = draw() & 1, exponent = 110 + draw() % 40, rest = draw() & 0x7fffff;
  const unsigned bits = sign << 31 | exponent << 23 | rest;
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

int main() {
  unsigned *a, *b;
  float *c, *d;
  cudaMallocManaged(&a, 32 * 16);
  cudaMallocManaged(&b, 32 * 8);
  cudaMallocManaged(&c, 32 * 16);
  cudaMallocManaged(&d, 32 * 16);
  for (int trial = 0; trial < 20; ++trial) {
    const bool wide = trial & 1;
    const Style style = Style((trial >> 1) % 5);
    for (int i = 0; i < 128; ++i) a[i] = draw_word(wide, style);
    for (int i = 0; i < 64; ++i) b[i] = draw_word(wide, style);
    for (int i = 0; i < 128; ++i) {
      const float x = draw_float();
      c[i] = trial % 3 == 0 ? 0.0f : x;
    }
    run<<<1, 32>>>(wide, a, b, c, d);
    if (cudaDeviceSynchronize() != cudaSuccess) {
      printf("failed\n");
      return 1;
    }
    printf("trial %d\n", trial);
    for (int i = 0; i < 128; ++i) {
      unsigned bits;
      memcpy(&bits, &d[i], 4);
      printf("%08x%c", bits, i % 8 == 7 ? '\n' : ' ');
    }
  }
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
  cudaFree(d);
}
