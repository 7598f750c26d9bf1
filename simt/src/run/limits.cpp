// Checks launches and allocations against the limits of the device: shape, shared memory, blocks of a cooperative
// launch, memory.
#include "run/limits.h"

#include <simt/host.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

#include "run/memory.h"
#include "run/options.h"

namespace simt {
namespace {

constexpr int invalid_value = 1;  // CUDA 13's word for a wrong shape, too; before it was 9, invalid configuration
constexpr int cooperative_too_large = 720;

std::mutex optin_mutex;
std::map<const void*, int> optin;

std::string number(unsigned long long n) {
  std::string digits = std::to_string(n);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string shape(const dim3& d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

// Returns the bytes of the kernel's static arrays; for a template, those of its largest instance.
std::size_t static_shared(const Job& job, const std::string& kernel) {
  std::map<std::string, std::size_t> bytes;
  std::size_t most = 0;
  for (const auto& array : job.arrays)
    if (array.owner == kernel) most = std::max(most, bytes[array.function] += array.bytes);
  return most;
}

// Returns the end of a sentence about a limit: the device that has it, as in " on a T4" or " on an H100". The article
// goes by how a name's first letter is spoken.
std::string on_device() {
  const std::string name = device().name;
  return (name.find_first_of("AEFHILMNORSX") == 0 ? " on an " : " on a ") + name;
}

// Returns the threads of a block or the blocks of a grid.
unsigned long long volume_of(const dim3& shape) { return 1ull * shape.x * shape.y * shape.z; }

std::string shape_problem(const Launch& launch) {
  const dim3 &grid = launch.config.grid, &block = launch.config.block;
  const char* axes = "xyz";
  const unsigned b[] = {block.x, block.y, block.z}, g[] = {grid.x, grid.y, grid.z};
  const unsigned block_limit[] = {1024, 1024, 64}, grid_limit[] = {2147483647u, 65535, 65535};
  for (int i = 0; i < 3; ++i) {
    if (b[i] == 0) return "its block " + shape(block) + " has no thread along " + axes[i] + ".";
    if (g[i] == 0)
      return "its grid " + shape(grid) + " has no block along " + axes[i] +
             ". If the output is empty, return before the launch; else correct the sizes that the grid is computed "
             "from.";
  }
  const unsigned long long threads = volume_of(block);
  if (threads > max_threads)
    return "its block " + shape(block) + " has " + number(threads) + " threads; the limit is 1,024 threads per block" +
           on_device() + ".";
  for (int i = 0; i < 3; ++i) {
    if (b[i] > block_limit[i])
      return "its block " + shape(block) + " is " + number(b[i]) + " threads along " + axes[i] + "; the limit is " +
             number(block_limit[i]) + ".";
    if (g[i] > grid_limit[i])
      return "its grid " + shape(grid) + " is " + number(g[i]) + " blocks along " + axes[i] +
             "; the limit along that axis is " + number(grid_limit[i]) + ".";
  }
  if (launch.site.max_threads && threads > static_cast<unsigned>(launch.site.max_threads))
    return "its block has " + number(threads) + " threads, but __launch_bounds__ promises at most " +
           number(launch.site.max_threads) + ". Change one of the two.";
  return "";
}

// fixed: bytes of the kernel's static arrays.
std::string shared_problem(const Launch& launch, std::size_t fixed) {
  if (fixed > static_cast<std::size_t>(device().shared_per_block))
    return "its __shared__ arrays take " + number(fixed) + " bytes; the limit is " + number(device().shared_per_block) +
           " bytes per block (nvcc would not compile this kernel).";
  const std::size_t all = fixed + launch.config.shared;
  long long limit = device().shared_per_block;
  {
    std::lock_guard lock(optin_mutex);
    // A template kernel's own address isn't known at its launch: any opt-in of its size counts.
    for (const auto& [function, bytes] : optin)
      if (!launch.function || function == launch.function)
        limit = std::max<long long>(limit, bytes + static_cast<long long>(fixed));
  }
  if (all <= static_cast<std::size_t>(std::min(limit, device().shared_per_block_optin))) return "";
  std::string text = "it requests " + number(all) + " bytes of shared memory per block; the limit is " +
                     number(device().shared_per_block) + " bytes" + on_device();
  if (all <= static_cast<std::size_t>(device().shared_per_block_optin))
    text += ", or " + number(device().shared_per_block_optin) +
            " after cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)";
  else
    text += ", and " + number(device().shared_per_block_optin) + " with cudaFuncSetAttribute";
  return text + ".";
}

// Returns the problem of a cooperative launch whose blocks cannot all be resident at once, or an empty string.
std::string residence_problem(const Launch& launch, std::size_t fixed) {
  const int each = resident_blocks(volume_of(launch.config.block), fixed + launch.config.shared);
  const auto resident = static_cast<unsigned long long>(each) * device().multiprocessors;
  const unsigned long long blocks = volume_of(launch.config.grid);
  if (blocks <= resident) return "";
  return "a cooperative launch needs all of its " + number(blocks) + " blocks on the device at once, but only " +
         number(resident) + " fit" + on_device() + ".";
}

// Returns the bytes that this machine can give without swapping, or the most there can be if it does not say.
std::size_t available_bytes() {
  std::ifstream facts("/proc/meminfo");
  for (std::string name, rest; facts >> name && std::getline(facts, rest);)
    if (name == "MemAvailable:") return std::strtoull(rest.c_str(), nullptr, 10) * 1024;
  return ~std::size_t{};
}

}  // namespace

std::string refusal(const Launch& launch, const Job& job, int& code) {
  code = invalid_value;
  if (std::string why = shape_problem(launch); !why.empty()) return why;
  const std::size_t fixed = static_shared(job, base_name(launch.site.kernel));
  if (std::string why = shared_problem(launch, fixed); !why.empty()) return why;
  code = cooperative_too_large;
  if (launch.cooperative)
    if (std::string why = residence_problem(launch, fixed); !why.empty()) return why;
  code = 0;
  return "";
}

int resident_blocks(unsigned long long threads, unsigned long long shared) {
  constexpr unsigned long long warp = 32, reserved_from_8 = 1024;  // bytes of each block's that CUDA keeps for itself
  const auto by_threads =
      static_cast<unsigned long long>(device().threads_per_multiprocessor) / ((threads + warp - 1) / warp * warp);
  const auto taken = shared + (device().major >= 8 ? reserved_from_8 : 0);
  const auto by_shared = taken ? static_cast<unsigned long long>(device().shared_per_multiprocessor) / taken : ~0ull;
  return static_cast<int>(
      std::min({by_threads, by_shared, static_cast<unsigned long long>(device().blocks_per_multiprocessor)}));
}

const char* no_room(std::size_t bytes) {
  constexpr std::size_t small = std::size_t{1} << 20, large = std::size_t{256} << 20;
  if (bytes < small) return nullptr;
  const auto whole = static_cast<std::size_t>(device().global_bytes);
  if (bytes > whole || allocated_bytes() > whole - bytes)
    return "cudaMalloc failed: the device does not have so much memory. Allocate less, or free memory first";
  // Poison is written to all of it unless kernels are counted. The system kills a process that takes more than there is.
  if (options().mode == Mode::count || bytes < large) return nullptr;
  const std::size_t available = available_bytes();
  if (bytes > available - std::min(available, large))
    return "cudaMalloc failed: this machine has too little free memory to simulate that of the device. Allocate less, "
           "or close other programs";
  return nullptr;
}

void allow_shared(const void* function, int bytes) {
  std::lock_guard lock(optin_mutex);
  optin[function] = bytes;
}

}  // namespace simt
