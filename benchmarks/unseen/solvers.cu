// Equations solved and tables filled: tridiagonal, banded and triangular systems, shortest paths, texts compared.
// sizes: 64 1024 (rows of the largest matrix)
#include "../micro/micro.h"

constexpr int SYSTEM = 64, BAND = 7, TRIANGLE = 96, TEXT = 128;

// A thread a system; the elements of neighbouring systems lie side by side.
__global__ void tridiagonal(const float* lower, const float* diagonal, const float* upper, const float* right,
                            float* scratch, float* x, int systems) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= systems) return;
  float c = upper[s] / diagonal[s], d = right[s] / diagonal[s];
  scratch[s] = c;
  x[s] = d;
  for (int i = 1; i < SYSTEM; i++) {
    int at = i * systems + s;
    float inverse = 1.0f / (diagonal[at] - lower[at] * c);
    c = upper[at] * inverse;
    d = (right[at] - lower[at] * d) * inverse;
    scratch[at] = c;
    x[at] = d;
  }
  for (int i = SYSTEM - 2; i >= 0; i--) {
    int at = i * systems + s;
    d = x[at] - scratch[at] * d;
    x[at] = d;
  }
}

// A matrix of seven diagonals times a vector: the diagonals lie one after the other.
__global__ void banded_product(const float* diagonals, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int b = 0; b < BAND; b++) {
    int j = i + b - BAND / 2;
    if (j >= 0 && j < n) sum += diagonals[b * n + i] * x[j];
  }
  y[i] = sum;
}

// One step of Jacobi's method for a dense matrix: a warp a row.
__global__ void jacobi(const float4* __restrict__ a, const float* __restrict__ b, const float* __restrict__ x,
                       float* __restrict__ next, int n) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= n) return;
  const float4* x4 = reinterpret_cast<const float4*>(x);
  float sum = 0.0f;
  for (int i = lane; i < n / 4; i += 32) {
    const float4 u = a[(size_t)row * (n / 4) + i], v = x4[i];
    sum += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
  }
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (lane == 0) {
    const float own = reinterpret_cast<const float*>(a)[(size_t)row * n + row];
    next[row] = x[row] + (b[row] - sum) / own;
  }
}

// Cholesky's factors of many 6 x 6 matrices, a thread each, in registers.
__global__ void cholesky_6(const float* a, float* factors, int count) {
  int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m >= count) return;
  float l[6][6];
#pragma unroll
  for (int i = 0; i < 6; i++)
#pragma unroll
    for (int j = 0; j <= i; j++) {
      float sum = a[(i * 6 + j) * count + m] + (i == j ? 10.0f : 0.0f);
#pragma unroll
      for (int k = 0; k < j; k++) sum -= l[i][k] * l[j][k];
      l[i][j] = i == j ? sqrtf(sum) : sum / l[j][j];
      factors[(i * 6 + j) * count + m] = l[i][j];
    }
}

// A lower triangle in shared memory, solved for 64 right sides, a thread each.
__global__ void triangular(const float* triangle, const float* right, float* x) {
  extern __shared__ float l[];
  for (int i = threadIdx.x; i < TRIANGLE * TRIANGLE; i += blockDim.x)
    l[i] = triangle[blockIdx.x * TRIANGLE * TRIANGLE + i];
  __syncthreads();
  right += blockIdx.x * TRIANGLE * 64 + threadIdx.x;
  x += blockIdx.x * TRIANGLE * 64 + threadIdx.x;
  for (int i = 0; i < TRIANGLE; i++) {
    float sum = right[i * 64];
    for (int j = 0; j < i; j++) sum -= l[i * TRIANGLE + j] * x[j * 64];
    x[i * 64] = sum / l[i * TRIANGLE + i];
  }
}

// Ways through one more town, for all pairs of towns: Floyd and Warshall's step.
__global__ void shortest_paths(const float* distance, float* shorter, int n, int town) {
  int to = blockIdx.x * blockDim.x + threadIdx.x;
  int from = blockIdx.y * blockDim.y + threadIdx.y;
  if (from >= n || to >= n) return;
  float through = distance[from * n + town] + distance[town * n + to];
  shorter[from * n + to] = fminf(distance[from * n + to], through);
}

// How many letters must change to make one text of another: a block a pair, diagonal after diagonal.
__global__ void edit_distance(const char* first, const char* second, int* distances) {
  __shared__ int lines[3][TEXT + 1];
  __shared__ char other[TEXT];
  const int i = threadIdx.x + 1;  // the row of the table; row 0 is that of the empty text
  const char own = first[blockIdx.x * TEXT + threadIdx.x];
  other[threadIdx.x] = second[blockIdx.x * TEXT + threadIdx.x];
  int *now = lines[0], *before = lines[1], *earlier = lines[2];
  if (threadIdx.x == 0) earlier[0] = 0, before[0] = 1, before[1] = 1;
  __syncthreads();
  for (int d = 2; d <= 2 * TEXT; d++) {
    int j = d - i;
    if (j == 0) now[i] = i;
    if (j >= 1 && j <= TEXT) now[i] = min(min(before[i], before[i - 1]) + 1, earlier[i - 1] + (own != other[j - 1]));
    if (threadIdx.x == 0 && d <= TEXT) now[0] = d;
    __syncthreads();
    int* t = earlier;
    earlier = before, before = now, now = t;
  }
  if (i == TEXT) distances[blockIdx.x] = before[TEXT];
}

int main(int argc, char** argv) {
  const int n = size_of_run(argc, argv, 64), systems = n * 64, total = systems * SYSTEM, towns = 4 * n;
  float *a = memory<float>(4 * total), *b = memory<float>(total), *c = memory<float>(total);
  float* x = memory<float>(4 * total);
  float* scratch = memory<float>(total);
  std::vector<float> main_diagonal(total, 4.0f);
  CHECK(cudaMemcpy(b, main_diagonal.data(), total * sizeof(float), cudaMemcpyHostToDevice));
  std::vector<char> letters(total);
  unsigned random = 9;
  for (char& letter : letters) letter = 'a' + ((random = random * 1664525u + 1013904223u) >> 30);
  char* text = memory<char>(total);
  CHECK(cudaMemcpy(text, letters.data(), total, cudaMemcpyHostToDevice));
  measure("tridiagonal", [&] { tridiagonal<<<systems / 64, 64>>>(a, b, a + total, c, scratch, x, systems); });
  const int unknowns = total / BAND * 4;
  measure("seven diagonals", [&] { banded_product<<<unknowns / 256 + 1, 256>>>(a, c, x, unknowns); });
  measure("Jacobi", [&] { jacobi<<<towns / 4, 128>>>((float4*)a, c, c, x, towns); });
  const int matrices = total / 16;
  measure("Cholesky of 6 x 6", [&] { cholesky_6<<<matrices / 128, 128>>>(a, x, matrices); });
  const int triangles = n / 4;
  measure("triangular", [&] { triangular<<<triangles, 64, TRIANGLE * TRIANGLE * sizeof(float)>>>(b, c, x); });
  measure("shortest paths", [&] { shortest_paths<<<dim3(towns / 16, towns / 16), dim3(16, 16)>>>(a, x, towns, 17); });
  measure("edit distance", [&] { edit_distance<<<systems / 8, TEXT>>>(text, text + total / 2, (int*)scratch); });
}
