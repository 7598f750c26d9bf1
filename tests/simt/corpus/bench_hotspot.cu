// title: Temperatures of a chip: pyramids of several steps a launch, tiles shrink at their borders
// features: shared_memory, macros, ghost_zones
// args: 64 2 10

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define BLOCK_SIZE 16
#define EXPAND_RATE 2  // cells that a step uses up, on both sides together
#define IN_RANGE(x, min, max) ((x) >= (min) && (x) <= (max))

#define MAX_PD (3.0e6)
#define PRECISION 0.001
#define SPEC_HEAT_SI 1.75e6
#define K_SI 100
#define FACTOR_CHIP 0.5

#define CUDA_TRY(x)                                                            \
  if ((x) != cudaSuccess) {                                                    \
    fprintf(stderr, "%s:%d CUDA call failed\n", __FILE__, __LINE__);           \
    return 1;                                                                  \
  }

const float t_chip = 0.0005f, chip_height = 0.016f, chip_width = 0.016f, amb_temp = 80.0f;

__global__ void calculate_temp(int iteration, const float* power, const float* src, float* dst, int cols, int rows, int border,
                               float step_div_cap, float Rx_1, float Ry_1, float Rz_1) {
  __shared__ float on_cuda[BLOCK_SIZE][BLOCK_SIZE], power_on_cuda[BLOCK_SIZE][BLOCK_SIZE], temp_t[BLOCK_SIZE][BLOCK_SIZE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int small = BLOCK_SIZE - iteration * EXPAND_RATE;
  int blkY = small * blockIdx.y - border, blkX = small * blockIdx.x - border;
  int yidx = blkY + ty, xidx = blkX + tx;
  int index = cols * yidx + xidx;
  bool inside = IN_RANGE(yidx, 0, rows - 1) && IN_RANGE(xidx, 0, cols - 1);
  on_cuda[ty][tx] = inside ? src[index] : 0;
  power_on_cuda[ty][tx] = inside ? power[index] : 0;
  __syncthreads();
  int validYmin = blkY < 0 ? -blkY : 0, validYmax = blkY + BLOCK_SIZE - 1 > rows - 1 ? rows - 1 - blkY : BLOCK_SIZE - 1;
  int validXmin = blkX < 0 ? -blkX : 0, validXmax = blkX + BLOCK_SIZE - 1 > cols - 1 ? cols - 1 - blkX : BLOCK_SIZE - 1;
  int N = ty - 1, S = ty + 1, W = tx - 1, E = tx + 1;
  N = N < validYmin ? validYmin : N;
  S = S > validYmax ? validYmax : S;
  W = W < validXmin ? validXmin : W;
  E = E > validXmax ? validXmax : E;
  bool computed = false;
  for (int i = 0; i < iteration; i++) {
    computed = false;
    if (IN_RANGE(tx, i + 1, BLOCK_SIZE - i - 2) && IN_RANGE(ty, i + 1, BLOCK_SIZE - i - 2) && IN_RANGE(tx, validXmin, validXmax) &&
        IN_RANGE(ty, validYmin, validYmax)) {
      computed = true;
      temp_t[ty][tx] = on_cuda[ty][tx] +
                       step_div_cap * (power_on_cuda[ty][tx] + (on_cuda[S][tx] + on_cuda[N][tx] - 2.0f * on_cuda[ty][tx]) * Ry_1 +
                                       (on_cuda[ty][E] + on_cuda[ty][W] - 2.0f * on_cuda[ty][tx]) * Rx_1 + (80.0f - on_cuda[ty][tx]) * Rz_1);
    }
    __syncthreads();
    if (i == iteration - 1) break;
    if (computed) on_cuda[ty][tx] = temp_t[ty][tx];
    __syncthreads();
  }
  if (computed) dst[index] = temp_t[ty][tx];
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 64, pyramid = argc > 2 ? atoi(argv[2]) : 2, total = argc > 3 ? atoi(argv[3]) : 10;
  std::vector<float> temp(n * n), power(n * n), got(n * n);
  for (int i = 0; i < n * n; i++) {
    temp[i] = 320.0f + (i * 31 % 97) * 0.1f;
    power[i] = (i / n / 8 + i % n / 8) % 3 == 0 ? 0.004f : 0.0005f;
  }
  float grid_h = chip_height / n, grid_w = chip_width / n;
  float cap = FACTOR_CHIP * SPEC_HEAT_SI * t_chip * grid_w * grid_h;
  float Rx = grid_w / (2.0 * K_SI * t_chip * grid_h), Ry = grid_h / (2.0 * K_SI * t_chip * grid_w), Rz = t_chip / (K_SI * grid_h * grid_w);
  float max_slope = MAX_PD / (FACTOR_CHIP * t_chip * SPEC_HEAT_SI), step = PRECISION / max_slope;
  float *d_power, *d_temp[2];
  CUDA_TRY(cudaMalloc(&d_power, n * n * sizeof(float)));
  CUDA_TRY(cudaMalloc(&d_temp[0], n * n * sizeof(float)));
  CUDA_TRY(cudaMalloc(&d_temp[1], n * n * sizeof(float)));
  CUDA_TRY(cudaMemcpy(d_power, power.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_TRY(cudaMemcpy(d_temp[0], temp.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  const int border = pyramid * EXPAND_RATE / 2, small = BLOCK_SIZE - pyramid * EXPAND_RATE, blocks = n / small + (n % small != 0);
  int src = 1, dst = 0;
  for (int t = 0; t < total; t += pyramid) {
    int swap = src;
    src = dst;
    dst = swap;
    int steps = pyramid;  // the last launch may run past the total
    calculate_temp<<<dim3(blocks, blocks), dim3(BLOCK_SIZE, BLOCK_SIZE)>>>(steps, d_power, d_temp[src], d_temp[dst], n, n, border, step / cap,
                                                                        1 / Rx, 1 / Ry, 1 / Rz);
    CUDA_TRY(cudaGetLastError());
  }
  CUDA_TRY(cudaMemcpy(got.data(), d_temp[dst], n * n * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_TRY(cudaFree(d_power));
  CUDA_TRY(cudaFree(d_temp[0]));
  CUDA_TRY(cudaFree(d_temp[1]));
  std::vector<double> u(temp.begin(), temp.end()), v(n * n);
  int steps = (total + pyramid - 1) / pyramid * pyramid;
  double sc = step / cap, rx = 1 / Rx, ry = 1 / Ry, rz = 1 / Rz;
  for (int t = 0; t < steps; t++) {
    for (int y = 0; y < n; y++)
      for (int x = 0; x < n; x++) {
        double c = u[y * n + x], up = y ? u[(y - 1) * n + x] : c, down = y < n - 1 ? u[(y + 1) * n + x] : c;
        double left = x ? u[y * n + x - 1] : c, right = x < n - 1 ? u[y * n + x + 1] : c;
        v[y * n + x] = c + sc * (power[y * n + x] + (up + down - 2 * c) * ry + (left + right - 2 * c) * rx + (amb_temp - c) * rz);
      }
    u.swap(v);
  }
  double worst = 0, mean = 0;
  for (int i = 0; i < n * n; i++) worst = fmax(worst, fabs(u[i] - got[i])), mean += got[i] / (n * n);
  printf("%d x %d after %d steps: mean %.2f, corner %.2f\n", n, n, steps, mean, got[0]);
  bool ok = worst < 0.01;
  puts(ok ? "PASSED" : "FAILED");
  return !ok;
}
