// title: merge sort by co-ranks: each thread merges an equal part of the output
// features: sorting, merge, shared_memory, templates, device_functions, alignment

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <vector>

using std::cout;
using std::endl;
using std::vector;

#define TRY(call)                                                                             \
  if (auto e = (call); e != cudaSuccess)                                                      \
  std::cerr << "line " << __LINE__ << ": " << cudaGetErrorString(e) << endl, std::exit(1)

// How many of the first k elements of the merged array come from A. Equal elements of A come first.
template <typename T, typename Less>
__host__ __device__ int co_rank(int k, const T* A, int m, const T* B, int n, Less less) {
  int i = k < m ? k : m;
  int j = k - i;
  int i_low = 0 > (k - n) ? 0 : k - n;
  int j_low = 0 > (k - m) ? 0 : k - m;
  int delta;
  bool active = true;
  while (active) {
    if (i > 0 && j < n && less(B[j], A[i - 1])) {
      delta = ((i - i_low + 1) >> 1);
      j_low = j;
      j = j + delta;
      i = i - delta;
    } else if (j > 0 && i < m && !less(B[j - 1], A[i])) {
      delta = ((j - j_low + 1) >> 1);
      i_low = i;
      i = i + delta;
      j = j - delta;
    } else {
      active = false;
    }
  }
  return i;
}

template <typename T, typename Less>
__device__ void merge_sequential(const T* A, int m, const T* B, int n, T* C, Less less) {
  int i = 0, j = 0, k = 0;
  while (i < m && j < n) C[k++] = less(B[j], A[i]) ? B[j++] : A[i++];
  while (i < m) C[k++] = A[i++];
  while (j < n) C[k++] = B[j++];
}

// Each pair of neighbouring sorted runs of the given width is merged; a thread writes `part` elements.
template <typename T, typename Less>
__global__ void merge_pass(const T* in, T* out, int total, int width, int part, Less less) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * part;
  while (first < total) {
    int pair = first / (2 * width) * (2 * width);
    int m = min(width, total - pair), n = max(0, min(width, total - pair - width));
    const T *A = in + pair, *B = A + m;
    int k_curr = first - pair, k_next = min(k_curr + part, m + n);
    int i_curr = co_rank(k_curr, A, m, B, n, less), i_next = co_rank(k_next, A, m, B, n, less);
    int j_curr = k_curr - i_curr, j_next = k_next - i_next;
    merge_sequential(A + i_curr, i_next - i_curr, B + j_curr, j_next - j_curr, out + pair + k_curr, less);
    first += gridDim.x * blockDim.x * part;
  }
}

// Insertion sort of runs of up to `width` elements in shared memory, one run per thread.
template <typename T, typename Less>
__global__ void sort_runs(T* data, int total, int width, Less less) {
  extern __shared__ __align__(16) unsigned char raw[];
  T* run = reinterpret_cast<T*>(raw) + threadIdx.x * width;
  int start = (blockIdx.x * blockDim.x + threadIdx.x) * width;
  int count = min(width, total - start);
  for (int i = 0; i < count; i++) {
    T x = data[start + i];
    int j = i;
    for (; j > 0 && less(x, run[j - 1]); j--) run[j] = run[j - 1];
    run[j] = x;
  }
  for (int i = 0; i < count; i++) data[start + i] = run[i];
}

struct Record {
  int key;
  int original;
  bool operator==(const Record& o) const { return key == o.key && original == o.original; }
};
struct ByKey {
  __host__ __device__ bool operator()(const Record& a, const Record& b) const { return a.key < b.key; }
};
template <typename T>
struct Descending {
  __host__ __device__ bool operator()(T a, T b) const { return b < a; }
};

template <typename T, typename Less>
bool sort_and_compare(const char* name, vector<T> values, Less less) {
  const int n = values.size(), width0 = 8;
  T *a, *b;
  TRY(cudaMalloc(&a, n * sizeof(T)));
  TRY(cudaMalloc(&b, n * sizeof(T)));
  TRY(cudaMemcpy(a, values.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  int runs = (n + width0 - 1) / width0;
  sort_runs<<<(runs + 31) / 32, 32, 32 * width0 * sizeof(T)>>>(a, n, width0, less);
  for (int width = width0; width < n; width *= 2) {
    merge_pass<<<4, 64>>>(a, b, n, width, 16, less);
    TRY(cudaGetLastError());
    std::swap(a, b);
  }
  vector<T> got(n);
  TRY(cudaMemcpy(got.data(), a, n * sizeof(T), cudaMemcpyDeviceToHost));
  TRY(cudaFree(a));
  TRY(cudaFree(b));
  std::stable_sort(values.begin(), values.end(), less);
  bool right = got == values;
  cout << name << ": " << n << " elements " << (right ? "sorted" : "NOT SORTED") << endl;
  return right;
}

int main() {
  vector<int> ints;
  vector<Record> records;
  vector<double> reals;
  for (int i = 0; i < 2777; i++) {
    ints.push_back((i * 48271) % 65537 - 30000);
    reals.push_back(((i * 7817) % 1009) / 8.0);
    records.push_back({(i * 31) % 17, i});
  }
  bool ok = sort_and_compare("int, descending", ints, Descending<int>());
  ok &= sort_and_compare("double, descending", reals, Descending<double>());
  ok &= sort_and_compare("records, stable", records, ByKey());
  ok &= sort_and_compare("few", vector<int>(ints.begin(), ints.begin() + 5), Descending<int>());
  cout << (ok ? "PASSED" : "FAILED") << endl;
  return ok ? 0 : 1;
}
