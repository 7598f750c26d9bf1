// title: kernels that spin for a number of cycles in streams of their own, in C++14
// features: clocks, std_flags, streams, events, inline_ptx, lambdas
// flags: -std=c++14

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

static_assert(__cplusplus >= 201402L, "needs C++14");

namespace rt {

inline void ensure(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string{what} + ": " + cudaGetErrorString(status));
}

struct StreamDeleter {
  using pointer = cudaStream_t;
  void operator()(cudaStream_t s) const { cudaStreamDestroy(s); }
};
using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, StreamDeleter>;

inline auto make_stream() {
  cudaStream_t s;
  ensure(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "stream");
  return Stream{s};
}

template <typename T>
auto make_buffer(std::size_t n) {
  auto release = [](T* p) { cudaFree(p); };
  T* p = nullptr;
  ensure(cudaMalloc(&p, n * sizeof(T)), "malloc");
  return std::unique_ptr<T[], decltype(release)>(p, release);
}

}  // namespace rt

constexpr auto kCycles = 20'000LL;
constexpr auto kWords = 0b1000'0000;  // 128

// Variable templates and relaxed constexpr work on the device too.
template <typename T>
constexpr T golden = static_cast<T>(2654435769.0);

constexpr __host__ __device__ std::uint32_t mix(std::uint32_t x, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    x ^= x >> 15;
    x *= golden<std::uint32_t>;
  }
  return x;
}
static_assert(mix(1, 0) == 1, "no rounds leave it as it is");

// Spins, then writes: what is written must be there after the stream has ended, no matter how long it took.
__global__ void spin_and_mix(std::uint32_t* words, long long cycles, int rounds, long long* spent) {
  const long long start = clock64();
  long long now = start;
  do {
    now = clock64();
  } while (now - start < cycles);
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  words[i] = mix(words[i] + i, rounds);
  if (i == 0) *spent = now - start;
}

__global__ void wait_microseconds(unsigned us, unsigned long long* stamps) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < us * 1000ull);
  stamps[0] = start;
  stamps[1] = now;
}

static int run() {
  constexpr int streams_count = 4;
  std::vector<rt::Stream> streams;
  std::generate_n(std::back_inserter(streams), streams_count, rt::make_stream);
  auto words = rt::make_buffer<std::uint32_t>(streams_count * kWords);
  auto spent = rt::make_buffer<long long>(streams_count);
  auto stamps = rt::make_buffer<unsigned long long>(2);
  rt::ensure(cudaMemset(words.get(), 0, streams_count * kWords * sizeof(std::uint32_t)), "memset");

  cudaEvent_t first;
  rt::ensure(cudaEventCreateWithFlags(&first, cudaEventDisableTiming), "event");
  rt::ensure(cudaDeviceSynchronize(), "memset");
  // Stream 0 waits first; the others start only behind its event.
  wait_microseconds<<<1, 1, 0, streams[0].get()>>>(300, stamps.get());
  rt::ensure(cudaEventRecord(first, streams[0].get()), "record");
  for (int s = 0; s < streams_count; ++s) {
    if (s) rt::ensure(cudaStreamWaitEvent(streams[s].get(), first, 0), "wait");
    for (int pass = 1; pass <= 2; ++pass)
      spin_and_mix<<<2, kWords / 2, 0, streams[s].get()>>>(words.get() + s * kWords, kCycles * (s + 1), pass + s,
                                                            spent.get() + s);
    rt::ensure(cudaGetLastError(), "launch");
  }
  for (auto&& s : streams) rt::ensure(cudaStreamSynchronize(s.get()), "synchronize");
  rt::ensure(cudaEventDestroy(first), "destroy");

  std::vector<std::uint32_t> got(streams_count * kWords);
  std::vector<long long> cycles(streams_count);
  std::vector<unsigned long long> times(2);
  auto fetch = [](auto& to, const auto& from) {
    rt::ensure(cudaMemcpy(to.data(), from.get(), to.size() * sizeof(to[0]), cudaMemcpyDeviceToHost), "copy back");
  };
  fetch(got, words);
  fetch(cycles, spent);
  fetch(times, stamps);

  int errors = times[1] - times[0] < 300'000;
  for (int s = 0; s < streams_count; ++s) {
    std::uint32_t sum = 0;
    for (int i = 0; i < kWords; ++i) {
      const auto once = mix(i, 1 + s), twice = mix(once + i, 2 + s);
      errors += got[s * kWords + i] != twice;
      sum += got[s * kWords + i];
    }
    errors += cycles[s] < kCycles * (s + 1);
    std::cout << "stream " << s << ": " << sum << (cycles[s] >= kCycles * (s + 1) ? ", long enough" : ", too short") << '\n';
  }
  return errors;
}

int main() {
  try {
    const int errors = run();
    std::cout << (errors ? "FAILED" : "PASSED") << std::endl;
    return errors ? 1 : 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
