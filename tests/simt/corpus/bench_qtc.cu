// title: Quality-threshold clustering: candidate clusters of bounded diameter, the largest one is taken
// features: shared_memory, device_functions, argmax_reduction
// args: 150 40

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAXP 256
#define T 64

#define CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { fprintf(stderr, "%s, line %d\n", cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)

/* Squared distances are whole numbers. */
__global__ void distances(const int2 *p, int n, int *d2) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (j >= n) return;
  int dx = p[i].x - p[j].x, dy = p[i].y - p[j].y;
  d2[i * n + j] = dx * dx + dy * dy;
}

/* One block a seed: adds the point that leaves the diameter smallest, until it would exceed the threshold.
   reach[j]: the largest distance of j to the cluster so far. With `members`, also writes who belongs to it. */
__global__ void candidate(const int *d2, int n, int limit, const unsigned char *taken, int *sizes, unsigned char *members) {
  __shared__ int reach[MAXP], best[T], who[T], size;
  __shared__ unsigned char in[MAXP];
  const int seed = blockIdx.x, t = threadIdx.x;
  if (taken[seed]) {
    if (t == 0) sizes[seed] = 0;
    return;
  }
  for (int j = t; j < n; j += T) {
    reach[j] = d2[seed * n + j];
    in[j] = j == seed;
  }
  if (t == 0) size = 1;
  __syncthreads();
  for (;;) {
    int b = 0x7fffffff, w = -1;
    for (int j = t; j < n; j += T)
      if (!in[j] && !taken[j] && reach[j] < b) {
        b = reach[j];
        w = j;
      }
    best[t] = b;
    who[t] = w;
    __syncthreads();
    for (int s = T / 2; s; s /= 2) {
      if (t < s && (best[t + s] < best[t] || (best[t + s] == best[t] && who[t + s] < who[t]))) {
        best[t] = best[t + s];
        who[t] = who[t + s];
      }
      __syncthreads();
    }
    const int next = who[0], cost = best[0];
    __syncthreads();
    if (next < 0 || cost > limit) break;
    for (int j = t; j < n; j += T) {
      int d = d2[next * n + j];
      if (d > reach[j]) reach[j] = d;
      if (j == next) in[j] = 1;
    }
    if (t == 0) size++;
    __syncthreads();
  }
  if (t == 0) sizes[seed] = size;
  for (int j = t; j < n; j += T) members[seed * n + j] = in[j];
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 150, diameter = argc > 2 ? atoi(argv[2]) : 40, i, j, clusters = 0, wrong = 0, covered = 0;
  if (n > MAXP) n = MAXP;
  int2 *p = (int2 *)malloc(n * sizeof(int2)), *dp;
  int *d2, *dsizes, *sizes = (int *)malloc(n * sizeof(int));
  unsigned char *taken = (unsigned char *)calloc(n, 1), *dtaken, *members, *in = (unsigned char *)malloc(n), *got = (unsigned char *)malloc(n);
  unsigned s = 1;
  for (i = 0; i < n; i++) {
    s = s * 1103515245u + 12345u;
    p[i].x = i % 5 * 60 + (int)(s >> 16) % 35;
    s = s * 1103515245u + 12345u;
    p[i].y = i % 3 * 70 + (int)(s >> 16) % 45;
  }
  CHECK(cudaMalloc((void **)&dp, n * sizeof(int2)));
  CHECK(cudaMalloc((void **)&d2, n * n * sizeof(int)));
  CHECK(cudaMalloc((void **)&dsizes, n * sizeof(int)));
  CHECK(cudaMalloc((void **)&dtaken, n));
  CHECK(cudaMalloc((void **)&members, n * n));
  CHECK(cudaMemcpy(dp, p, n * sizeof(int2), cudaMemcpyHostToDevice));
  distances<<<dim3((n + T - 1) / T, n), T>>>(dp, n, d2);
  CHECK(cudaGetLastError());
  while (covered < n && clusters < 40) {
    CHECK(cudaMemcpy(dtaken, taken, n, cudaMemcpyHostToDevice));
    candidate<<<n, T>>>(d2, n, diameter * diameter, dtaken, dsizes, members);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(sizes, dsizes, n * sizeof(int), cudaMemcpyDeviceToHost));
    int seed = 0;
    for (i = 1; i < n; i++)
      if (sizes[i] > sizes[seed]) seed = i;
    CHECK(cudaMemcpy(got, members + seed * n, n, cudaMemcpyDeviceToHost));
    /* the same on the CPU */
    int top = 0, top_seed = -1, count;
    for (int c = 0; c < n; c++) {
      if (taken[c]) continue;
      memset(in, 0, n);
      in[c] = 1;
      for (count = 1;; count++) {
        int b = 0x7fffffff, w = -1;
        for (j = 0; j < n; j++) {
          if (in[j] || taken[j]) continue;
          int far = 0;
          for (int m = 0; m < n; m++)
            if (in[m]) {
              int d = (p[j].x - p[m].x) * (p[j].x - p[m].x) + (p[j].y - p[m].y) * (p[j].y - p[m].y);
              if (d > far) far = d;
            }
          if (far < b) b = far, w = j;
        }
        if (w < 0 || b > diameter * diameter) break;
        in[w] = 1;
      }
      wrong += sizes[c] != count;
      if (c == seed) wrong += memcmp(in, got, n) != 0;
      if (count > top) top = count, top_seed = c;
    }
    wrong += top != sizes[seed] || top_seed != seed;
    if (clusters < 8) printf("cluster %d: %d points about point %d\n", clusters, sizes[seed], seed);
    clusters++;
    for (j = 0; j < n; j++)
      if (got[j]) taken[j] = 1, covered++;
  }
  printf("%d clusters\n", clusters);
  CHECK(cudaFree(dp)); CHECK(cudaFree(d2)); CHECK(cudaFree(dsizes)); CHECK(cudaFree(dtaken)); CHECK(cudaFree(members));
  free(p); free(sizes); free(taken); free(in); free(got);
  wrong += covered != n;
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
