// title: Longest matches of queries in a reference string, by a suffix array and binary search per query position
// features: read_only_cache, device_functions, packed_strings
// args: 1500 40

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#define CHECK_RET(x)                                                      \
  do {                                                                    \
    cudaError_t e = x;                                                    \
    if (e != cudaSuccess) {                                               \
      fprintf(stderr, "%s\n", cudaGetErrorString(e));                     \
      exit(EXIT_FAILURE);                                                 \
    }                                                                     \
  } while (0)

struct Match {
  int position, length;
};

__device__ int common(const char* __restrict__ ref, int n, int from, const char* __restrict__ query, int m) {
  int k = 0;
  while (k < m && from + k < n && __ldg(ref + from + k) == __ldg(query + k)) k++;
  return k;
}

// The first suffix that is not smaller than the query's rest; the longest match is there or just before.
__global__ void match(const char* ref, int n, const int* suffixes, const char* queries, const int* offsets, Match* out, int positions,
                      const int* owner) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= positions) return;
  const char* q = queries + i;
  int m = offsets[owner[i] + 1] - i;
  int lo = 0, hi = n;
  while (lo < hi) {
    int mid = (lo + hi) / 2, s = suffixes[mid], k = common(ref, n, s, q, m);
    bool less = k < m && (s + k >= n || ref[s + k] < q[k]);
    if (less)
      lo = mid + 1;
    else
      hi = mid;
  }
  Match best = {-1, 0};
  for (int c = lo - 1; c <= lo; c++) {
    if (c < 0 || c >= n) continue;
    int k = common(ref, n, suffixes[c], q, m);
    if (k > best.length) {
      best.length = k;
      best.position = suffixes[c];
    }
  }
  out[i] = best;
}

int main(int argc, char* argv[]) {
  const int n = argc > 1 ? atoi(argv[1]) : 1500, count = argc > 2 ? atoi(argv[2]) : 40;
  unsigned s = 2021;
  auto draw = [&s](unsigned bound) { return (s = s * 1664525u + 1013904223u, (s >> 10) % bound); };
  std::string ref(n, ' '), all;
  for (char& c : ref) c = "ACGT"[draw(4)];
  std::vector<int> offsets{0}, owner, suffixes(n);
  for (int q = 0; q < count; q++) {
    int length = 20 + (int)draw(30), start = (int)draw(n - length);
    std::string query = ref.substr(start, length);
    for (int e = 0; e < 2; e++) query[draw(length)] = "ACGT"[draw(4)];  // errors of reading
    all += query;
    offsets.push_back((int)all.size());
    owner.insert(owner.end(), length, q);
  }
  std::iota(suffixes.begin(), suffixes.end(), 0);
  std::sort(suffixes.begin(), suffixes.end(), [&](int a, int b) { return ref.compare(a, n, ref, b, n) < 0; });
  const int positions = (int)all.size();
  char *d_ref, *d_queries;
  int *d_suffixes, *d_offsets, *d_owner;
  Match* d_out;
  CHECK_RET(cudaMalloc(&d_ref, n));
  CHECK_RET(cudaMalloc(&d_queries, positions));
  CHECK_RET(cudaMalloc(&d_suffixes, n * sizeof(int)));
  CHECK_RET(cudaMalloc(&d_offsets, offsets.size() * sizeof(int)));
  CHECK_RET(cudaMalloc(&d_owner, positions * sizeof(int)));
  CHECK_RET(cudaMalloc(&d_out, positions * sizeof(Match)));
  CHECK_RET(cudaMemcpy(d_ref, ref.data(), n, cudaMemcpyHostToDevice));
  CHECK_RET(cudaMemcpy(d_queries, all.data(), positions, cudaMemcpyHostToDevice));
  CHECK_RET(cudaMemcpy(d_suffixes, suffixes.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK_RET(cudaMemcpy(d_offsets, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice));
  CHECK_RET(cudaMemcpy(d_owner, owner.data(), positions * sizeof(int), cudaMemcpyHostToDevice));
  match<<<(positions + 127) / 128, 128>>>(d_ref, n, d_suffixes, d_queries, d_offsets, d_out, positions, d_owner);
  CHECK_RET(cudaGetLastError());
  std::vector<Match> got(positions);
  CHECK_RET(cudaMemcpy(got.data(), d_out, positions * sizeof(Match), cudaMemcpyDeviceToHost));
  CHECK_RET(cudaFree(d_ref));
  CHECK_RET(cudaFree(d_queries));
  CHECK_RET(cudaFree(d_suffixes));
  CHECK_RET(cudaFree(d_offsets));
  CHECK_RET(cudaFree(d_owner));
  CHECK_RET(cudaFree(d_out));
  int wrong = 0, longest = 0, maximal = 0;
  for (int i = 0; i < positions; i++) {
    int m = offsets[owner[i] + 1] - i, best = 0;
    for (int p = 0; p < n; p++) {
      int k = 0;
      while (k < m && p + k < n && ref[p + k] == all[i + k]) k++;
      best = std::max(best, k);
    }
    wrong += got[i].length != best;
    if (got[i].length) wrong += ref.compare(got[i].position, got[i].length, all, i, got[i].length) != 0;
    longest = std::max(longest, got[i].length);
    maximal += got[i].length >= 15;
  }
  printf("%d positions of %d queries, longest match %d, %d of at least 15\n", positions, count, longest, maximal);
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
