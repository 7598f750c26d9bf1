// Each load's address is the last load's result: latency, with nothing to hide it behind. A warp walks as one.
// sizes: 11 26 (log2 of the table's ints)
#include "micro.h"

constexpr int LINE = 32;  // ints; every step goes to another line

// next[i] is where to go from i: line by line through a ring, in scattered order.
__global__ void make_ring(int* next, unsigned lines) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  next[i] = (i / LINE * 5 + 3) % lines * LINE + i % LINE;  // a full period: lines is a power of two
}

__global__ void chase(const int* next, int* y, int steps, unsigned lines) {
  int at = blockIdx.x * 977 % lines * LINE + threadIdx.x % LINE;
#pragma unroll 1
  for (int step = 0; step < steps; step++) at = next[at];
  y[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

int main(int argc, char** argv) {
  const unsigned n = 1u << size_of_run(argc, argv, 11), lines = n / LINE, most = 1 << 17;
  const int steps = std::min(4096u, lines), few = std::min(lines, most / LINE);
  int *table = memory<int>(n), *y = memory<int>(1 << 20);
  measure("make ring", [&] { make_ring<<<n / 256, 256>>>(table, lines); });
  measure("one warp", [&] { chase<<<1, 32>>>(table, y, steps, lines); });
  measure("132 warps", [&] { chase<<<132, 32>>>(table, y, steps, lines); });
  measure("132 blocks of 8 warps", [&] { chase<<<132, 256>>>(table, y, steps, lines); });
  measure("make small ring", [&] { make_ring<<<few * LINE / 256, 256>>>(table, few); });
  measure("one warp, 512 KB", [&] { chase<<<1, 32>>>(table, y, steps, few); });
  measure("make smallest ring", [&] { make_ring<<<1, 256>>>(table, 8); });
  measure("one warp, 1 KB", [&] { chase<<<1, 32>>>(table, y, steps, 8); });
}
