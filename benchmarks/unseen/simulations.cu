// Steps of small worlds: strings, life by bits, red and black points, walkers, flows, particles in cells.
// sizes: 64 2048 (the side)
#include "../micro/micro.h"

constexpr int STRING = 1024, PER_CELL = 8, WALK = 48;

// 32 steps of a string at once: a block has it in shared memory, three buffers change places.
__global__ void string_32_steps(const float* in, float* out) {
  __shared__ float buffers[3][STRING];
  const int i = threadIdx.x;
  float *before = buffers[0], *now = buffers[1], *next = buffers[2];
  before[i] = now[i] = in[blockIdx.x * STRING + i];
  next[i] = 0.0f;
  __syncthreads();
  for (int step = 0; step < 32; step++) {
    if (i > 0 && i < STRING - 1)
      next[i] = 2.0f * now[i] - before[i] + 0.25f * (now[i - 1] - 2.0f * now[i] + now[i + 1]);
    __syncthreads();
    float* t = before;
    before = now, now = next, next = t;
    if (i == 0 || i == STRING - 1) next[i] = 0.0f;
  }
  out[blockIdx.x * STRING + i] = now[i];
}

// Life with 32 cells a word: the eight neighbours are added bit by bit.
__global__ void life_in_words(const unsigned* in, unsigned* out, int words, int rows) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= words || y >= rows) return;
  unsigned ones = 0, twos = 0, fours = 0, own = 0;
  for (int dy = -1; dy <= 1; dy++) {
    const unsigned* row = in + (y + dy + rows) % rows * words;
    unsigned centre = row[x], left = row[(x + words - 1) % words], right = row[(x + 1) % words];
    unsigned neighbours[3] = {centre << 1 | left >> 31, centre >> 1 | right << 31, centre};
    if (dy == 0) own = centre;
    for (int k = 0; k < 3; k++) {
      if (dy == 0 && k == 2) continue;
      unsigned carry = ones & neighbours[k];
      ones ^= neighbours[k];
      unsigned more = twos & carry;
      twos ^= carry;
      fours |= more;
    }
  }
  out[y * words + x] = twos & ~fours & (ones | own);
}

// Every second point of a plane from its four neighbours, which are all of the other colour.
__global__ void red_points(float* u, const float* f, int colour, int n) {
  int x = 2 * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
  x += (y + colour) % 2;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  u[y * n + x] = 0.25f * (u[y * n + x - 1] + u[y * n + x + 1] + u[(y - 1) * n + x] + u[(y + 1) * n + x] - f[y * n + x]);
}

// Each thread walks through a plane at random and leaves a mark at every step.
__global__ void wander(unsigned* visits, unsigned seed, int n) {
  unsigned random = (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u ^ seed;
  int x = (random >> 4) % n, y = (random >> 18) % n;
  for (int step = 0; step < WALK; step++) {
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    switch (random & 3) {
      case 0: x = x + 1 == n ? 0 : x + 1; break;
      case 1: x = x == 0 ? n - 1 : x - 1; break;
      case 2: y = y + 1 == n ? 0 : y + 1; break;
      default: y = y == 0 ? n - 1 : y - 1;
    }
    atomicAdd(&visits[y * n + x], 1);
  }
}

// A fluid of particles with nine velocities, each in a plane of its own: they move, meet, and come to rest a little.
__global__ void nine_velocities(const float* __restrict__ in, float* __restrict__ out, float rate, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  const int size = n * n;
  const int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
  float f[9], density = 0.0f, u = 0.0f, v = 0.0f;
#pragma unroll
  for (int k = 0; k < 9; k++) {
    int from_x = x - cx[k], from_y = y - cy[k];
    from_x = from_x < 0 ? n - 1 : from_x == n ? 0 : from_x;
    from_y = from_y < 0 ? n - 1 : from_y == n ? 0 : from_y;
    f[k] = in[k * size + from_y * n + from_x];
    density += f[k];
    u += f[k] * cx[k];
    v += f[k] * cy[k];
  }
  u /= density;
  v /= density;
#pragma unroll
  for (int k = 0; k < 9; k++) {
    const float weight = k == 0 ? 4.0f / 9.0f : k < 5 ? 1.0f / 9.0f : 1.0f / 36.0f;
    const float along = 3.0f * (cx[k] * u + cy[k] * v);
    const float rest = weight * density * (1.0f + along + 0.5f * along * along - 1.5f * (u * u + v * v));
    out[k * size + y * n + x] = f[k] + rate * (rest - f[k]);
  }
}

// Densities of particles, eight a cell: each looks at those of its own cell and the eight around it.
__global__ void densities(const float2* position, float* density, float radius, int cells) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= cells * cells * PER_CELL) return;
  int cell = i / PER_CELL, x = cell % cells, y = cell / cells;
  float2 own = position[i];
  float sum = 0.0f;
  for (int v = max(y - 1, 0); v <= min(y + 1, cells - 1); v++)
    for (int u = max(x - 1, 0); u <= min(x + 1, cells - 1); u++)
      for (int k = 0; k < PER_CELL; k++) {
        float2 other = position[(v * cells + u) * PER_CELL + k];
        float dx = other.x - own.x, dy = other.y - own.y, squared = dx * dx + dy * dy;
        if (squared < radius * radius) {
          float w = radius * radius - squared;
          sum += w * w * w;
        }
      }
  density[i] = sum;
}

// What a stream carries along: each point looks back to where its smoke came from, between four others.
__global__ void carry_along(const float* smoke, const float2* velocity, float* out, float step, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  float2 v = velocity[y * n + x];
  float u = fminf(fmaxf(x - step * v.x, 0.0f), n - 1.001f), w = fminf(fmaxf(y - step * v.y, 0.0f), n - 1.001f);
  int left = (int)u, top = (int)w;
  left = min(left, n - 2), top = min(top, n - 2);
  float a = u - left, b = w - top;
  const float* corner = smoke + top * n + left;
  out[y * n + x] =
      (1.0f - b) * ((1.0f - a) * corner[0] + a * corner[1]) + b * ((1.0f - a) * corner[n] + a * corner[n + 1]);
}

// Two substances that react and spread, side by side in memory; a tile with a border in shared memory.
__global__ void react(const float2* in, float2* out, float feed, float kill, int n) {
  __shared__ float2 tile[10][34];
  int tid = threadIdx.y * 32 + threadIdx.x;
  for (int i = tid; i < 340; i += 256) {
    int y = ((int)blockIdx.y * 8 + i / 34 - 1 + n) % n, x = ((int)blockIdx.x * 32 + i % 34 - 1 + n) % n;
    tile[i / 34][i % 34] = in[y * n + x];
  }
  __syncthreads();
  int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  float2 c = tile[ty][tx], l = tile[ty][tx - 1], r = tile[ty][tx + 1], t = tile[ty - 1][tx], b = tile[ty + 1][tx];
  float reaction = c.x * c.y * c.y;
  float2 next;
  next.x = c.x + 0.16f * (l.x + r.x + t.x + b.x - 4.0f * c.x) - reaction + feed * (1.0f - c.x);
  next.y = c.y + 0.08f * (l.y + r.y + t.y + b.y - 4.0f * c.y) + reaction - (feed + kill) * c.y;
  out[(blockIdx.y * 8 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x] = next;
}

int main(int argc, char** argv) {
  const int n = size_of_run(argc, argv, 64), size = n * n, cells = n / 8, particles = cells * cells * PER_CELL;
  float *x = memory<float>(9 * size), *y = memory<float>(9 * size), *z = memory<float>(2 * size);
  float2* position = memory<float2>(particles);
  std::vector<float> values(2 * size);
  std::vector<float2> positions(particles);
  unsigned state = 18;
  auto random = [&] { return ((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f; };
  for (float& v : values) v = random();
  for (int i = 0; i < particles; i++) {
    const int cell = i / PER_CELL;
    positions[i].x = cell % cells + random();
    positions[i].y = cell / cells + random();
  }
  CHECK(cudaMemcpy(z, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(position, positions.data(), particles * sizeof(float2), cudaMemcpyHostToDevice));
  const dim3 wide(32, 8), by_wide(n / 32, n / 8), sixteen(16, 16), by_16(n / 16, n / 16);
  measure("string, 32 steps", [&] { string_32_steps<<<size / STRING, STRING>>>(z, y); });
  measure("life in words", [&] { life_in_words<<<by_16, sixteen>>>((unsigned*)z, (unsigned*)y, n, n); });
  measure("red points", [&] { red_points<<<dim3(n / 64, n / 8), wide>>>(y, z, 0, n); });
  measure("walkers", [&] { wander<<<n * 32 / 128, 128>>>((unsigned*)y, 77u, n); });
  measure("nine velocities", [&] { nine_velocities<<<dim3(n / 64, n), 64>>>(x, y, 0.6f, n); });
  measure("particles in cells", [&] { densities<<<particles / 128, 128>>>(position, y, 0.9f, cells); });
  measure("carried along", [&] { carry_along<<<by_16, sixteen>>>(x, (float2*)z, y, 3.0f, n); });
  measure("reaction", [&] { react<<<by_wide, wide>>>((float2*)z, (float2*)y, 0.035f, 0.06f, n); });
}
