// title: prefix sums with shuffles, and segmented sums with head flags
// features: warp_shuffles, scan, warp_votes, templates

#include <algorithm>
#include <iostream>
#include <sstream>
#include <vector>

constexpr unsigned FULL_MASK = 0xffffffffU;

template <typename T>
struct Plus {
  static constexpr T identity = T(0);
  __host__ __device__ static T apply(T a, T b) { return a + b; }
};
template <typename T>
struct Maximum {
  static constexpr T identity = T(-1000000);
  __host__ __device__ static T apply(T a, T b) { return a < b ? b : a; }
};

template <template <typename> class Op, typename T>
__device__ T warpScan(T value, int width = 32) {
  const int lane = threadIdx.x & (width - 1);
  for (int offset = 1; offset < width; offset *= 2) {
    T left = __shfl_up_sync(FULL_MASK, value, offset, width);
    if (lane >= offset) value = Op<T>::apply(left, value);
  }
  return value;
}

template <template <typename> class Op, typename T>
__global__ void blockScan(const T* in, T* out, int n) {
  __shared__ T totals[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  T value = i < n ? in[i] : Op<T>::identity;
  value = warpScan<Op>(value);
  if (lane == 31) totals[warp] = value;
  __syncthreads();
  if (warp == 0) {
    const int warps = blockDim.x / 32;
    T total = lane < warps ? totals[lane] : Op<T>::identity;
    total = warpScan<Op>(total);
    totals[lane] = total;
  }
  __syncthreads();
  if (warp > 0) value = Op<T>::apply(totals[warp - 1], value);
  if (i < n) out[i] = value;
}

// A head flag starts a new segment. The lane finds its segment's head among the votes of the lanes at or before it.
__global__ void segmentedWarpSum(const int* in, const unsigned char* heads, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x & 31;
  int value = i < n ? in[i] : 0;
  const bool head = lane == 0 || (i < n && heads[i]);
  const unsigned flags = __ballot_sync(FULL_MASK, head);
  const unsigned before = flags & (FULL_MASK >> (31 - lane));
  const int first = 31 - __clz(before);
  for (int offset = 1; offset < 32; offset <<= 1) {
    const int left = __shfl_up_sync(FULL_MASK, value, offset);
    if (lane - offset >= first) value += left;
  }
  if (i < n) out[i] = value;
}

template <typename T>
struct Device {
  T* p;
  explicit Device(size_t n) { if (cudaMalloc(&p, n * sizeof(T)) != cudaSuccess) throw std::bad_alloc(); }
  explicit Device(const std::vector<T>& v) : Device(v.size()) {
    cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyDefault);
  }
  ~Device() { cudaFree(p); }
  operator T*() const { return p; }
};

template <template <typename> class Op, typename T>
bool test(const char* name, int n, int block) {
  std::vector<T> in(n), out(n);
  for (int i = 0; i < n; i++) in[i] = static_cast<T>((i * 29 + 7) % 53 - 20);
  Device<T> d_in(in), d_out(n);
  blockScan<Op, T><<<(n + block - 1) / block, block>>>(d_in, d_out, n);
  if (cudaMemcpy(out.data(), d_out, n * sizeof(T), cudaMemcpyDefault) != cudaSuccess) return false;
  bool right = true;
  double running = 0;
  for (int i = 0; i < n; i++) {
    running = i % block == 0 ? double(in[i]) : double(Op<T>::apply(T(running), in[i]));
    right = right && running == double(out[i]);
  }
  std::ostringstream line;
  line << name << ", n = " << n << ", blocks of " << block << ": last " << out[n - 1];
  std::cout << line.str() << (right ? "" : "  WRONG") << "\n";
  return right;
}

bool testSegmented(int n) {
  std::vector<int> in(n), out(n);
  std::vector<unsigned char> heads(n);
  for (int i = 0; i < n; i++) {
    in[i] = i % 10;
    heads[i] = (i * 7) % 13 == 0;
  }
  Device<int> d_in(in), d_out(n);
  Device<unsigned char> d_heads(heads);
  segmentedWarpSum<<<(n + 63) / 64, 64>>>(d_in, d_heads, d_out, n);
  if (cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDefault) != cudaSuccess) return false;
  bool right = true;
  long checksum = 0;
  for (int i = 0, sum = 0; i < n; i++) {
    if (heads[i] || i % 32 == 0) sum = 0;
    sum += in[i];
    right = right && sum == out[i];
    checksum += long(out[i]) * (i % 5);
  }
  std::cout << "segmented, n = " << n << ": checksum " << checksum << (right ? "" : "  WRONG") << "\n";
  return right;
}

int main() {
  bool ok = test<Plus, int>("sum of int", 1000, 256);
  ok &= test<Plus, float>("sum of float", 999, 128);
  ok &= test<Plus, double>("sum of double", 2048, 1024);
  ok &= test<Plus, long long>("sum of long long", 50, 32);
  ok &= test<Maximum, int>("maximum of int", 777, 96);
  ok &= testSegmented(640);
  ok &= testSegmented(1001);
  std::cout << (ok ? "PASSED" : "FAILED") << std::endl;
  return ok ? 0 : 1;
}
