// Launches: limits of the device, the pool of workers, CUDA's error state, and printf.
#include <simt/host.h>
#include <sys/mman.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "check.h"
#include "count.h"
#include "memory.h"
#include "options.h"
#include "worker.h"

namespace simt {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int invalid_value = 1;
constexpr int invalid_configuration = 9;
constexpr int cooperative_too_large = 720;

// The CUDA error that a GPU reports for a failed kernel.
int code_of(const std::string& reason) {
  if (reason == "out_of_bounds" || reason == "illegal_address") return 700;
  if (reason == "kernel_timeout") return 702;
  if (reason == "device_assert") return 710;
  if (reason == "misaligned") return 716;
  return 719;      // unspecified launch failure
}

Options current;
Device played;

// Of one thread of the host, as in CUDA: a failure in one is not another's.
struct Errors {
  int last = 0;
  int newest = 0;             // whose sentence `text` is
  bool looked = true;         // nothing is waiting to be told
  bool sticky = false;        // a kernel faulted: every later call fails until the error is taken by Python,
  int failed = 0;             // with this code
  std::string text;
  Fault launch;               // a launch that was refused, for Python
  Fault fault;                // what failed; without a reason, nothing did
  std::vector<Finding> dropped;   // calls that failed and whose results nobody took, in a checked program
};
thread_local Errors errors;

std::mutex print_mutex;
std::string printed;
constexpr std::size_t print_limit = 1 << 20;

std::mutex launched_mutex;
std::deque<Launched> launched;
constexpr std::size_t launched_kept = 16;

std::mutex optin_mutex;
std::map<const void*, int> optin;

// ---- the pool ----

class Pool {
 public:
  std::mutex launching;      // held for one launch

  void run(Job& job, bool cooperative, double seconds) {
    start();
    std::unique_lock lock(mutex_);
    job_ = &job;
    cooperative_ = cooperative;
    const auto most = static_cast<std::uint64_t>(std::max(1, current.threads));  // there may be more, from a launch before
    wanted_ = cooperative ? 1 : static_cast<int>(std::min(most, job.blocks));
    running_ = wanted_;
    ++generation_;
    wake_.notify_all();
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    while (running_ > 0) {
      if (done_.wait_for(lock, std::chrono::milliseconds(job.cancelled ? 5 : 50)) == std::cv_status::timeout && running_ > 0) watch(job, deadline, lock);
    }
    job_ = nullptr;
  }

  // Those of the workers that took part in the last launch.
  std::vector<Checker*> checkers() const {
    std::vector<Checker*> all;
    for (const auto& worker : workers_)
      if (worker->checker) all.push_back(std::exchange(worker->checker, nullptr));
    return all;
  }

 private:
  void start() {
    const auto wanted = static_cast<std::size_t>(std::max(1, current.threads));
    while (threads_.size() < wanted) {
      const int index = static_cast<int>(threads_.size());
      workers_.push_back(std::make_unique<Worker>());
      Worker& worker = *workers_.back();
      threads_.push_back(std::make_unique<std::thread>([this, index, &worker, seen = generation_] { work(index, worker, seen); }));
      threads_.back()->detach();
    }
  }

  void watch(Job& job, Clock::time_point deadline, std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    const bool stop = current.interrupted && current.interrupted();
    lock.lock();
    if (running_ == 0) return;
    if (Clock::now() > deadline && !job.cancelled) {
      job.timed_out = true;
      job.cancelled = true;
    }
    if (stop) job.cancelled = true;
    if (job.cancelled)
      for (auto& handle : handles_) pthread_kill(handle, abort_signal());
  }

  void work(int index, Worker& worker, std::uint64_t seen) {
    this_worker = &worker;
    use_alternate_stack();
    // Dynamic shared memory ends at a page that traps.
    constexpr std::size_t room = 256 * 1024;
    char* map = static_cast<char*>(mmap(nullptr, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(map + room, 4096, PROT_NONE);
    worker.dynamic_shared = map + room;
    std::unique_lock lock(mutex_);
    handles_.push_back(pthread_self());
    for (;;) {
      wake_.wait(lock, [&] { return generation_ != seen; });
      seen = generation_;
      if (index >= wanted_) continue;
      Job& job = *job_;
      lock.unlock();
      if (cooperative_) run_cooperative(worker, job);
      else run_blocks(worker, job);
      lock.lock();
      if (--running_ == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::unique_ptr<std::thread>> threads_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<pthread_t> handles_;
  Job* job_ = nullptr;
  bool cooperative_ = false;
  int wanted_ = 0, running_ = 0;
  std::uint64_t generation_ = 0;
};

Pool& pool() {
  // Its threads outlive main; a forked process has none of them, and starts anew.
  static Pool* instance = nullptr;
  static std::once_flag once;
  std::call_once(once, [] {
    instance = new Pool;
    pthread_atfork(nullptr, nullptr, [] { instance = new Pool; });
  });
  return *instance;
}

// ---- limits ----

std::string number(unsigned long long n) {
  std::string digits = std::to_string(n);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string shape(const dim3& d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

// Bytes of the kernel's own static arrays; of a template whose instance isn't known here, those of its largest.
std::size_t static_shared(const Job& job, const std::string& kernel) {
  std::map<std::string, std::size_t> bytes;
  std::size_t most = 0;
  for (const auto& array : job.arrays)
    if (array.owner == kernel) most = std::max(most, bytes[array.function] += array.bytes);
  return most;
}

// The sentence that says why this launch can't be; empty if it can. `code` becomes the CUDA error.
std::string refusal(const Launch& launch, const Job& job, int& code) {
  const dim3 &grid = launch.config.grid, &block = launch.config.block;
  const std::string on = std::string(" on ") + played.name;
  code = invalid_configuration;
  const char* axes = "xyz";
  const unsigned b[] = {block.x, block.y, block.z}, g[] = {grid.x, grid.y, grid.z};
  const unsigned block_limit[] = {1024, 1024, 64}, grid_limit[] = {2147483647u, 65535, 65535};
  for (int i = 0; i < 3; ++i) {
    if (b[i] == 0) return "its block " + shape(block) + " has no thread along " + axes[i] + ".";
    if (g[i] == 0)
      return "its grid " + shape(grid) + " has no block along " + axes[i] + ": when there is nothing to do, do not launch.";
  }
  const unsigned long long threads = 1ull * b[0] * b[1] * b[2];
  if (threads > max_threads)
    return "its block " + shape(block) + " has " + number(threads) + " threads; the limit is 1,024 threads a block" + on + ".";
  for (int i = 0; i < 3; ++i) {
    if (b[i] > block_limit[i])
      return "its block " + shape(block) + " is " + number(b[i]) + " threads along " + axes[i] + "; the limit is " + number(block_limit[i]) + ".";
    if (g[i] > grid_limit[i])
      return "its grid " + shape(grid) + " is " + number(g[i]) + " blocks along " + axes[i] + "; the limit along that axis is " +
             number(grid_limit[i]) + ".";
  }
  if (launch.site.max_threads && threads > static_cast<unsigned>(launch.site.max_threads))
    return "its block has " + number(threads) + " threads, but __launch_bounds__ promises at most " + number(launch.site.max_threads) + ".";
  const std::size_t fixed = static_shared(job, base_name(launch.site.kernel));
  code = invalid_value;
  if (fixed > static_cast<std::size_t>(played.shared_per_block))
    return "its __shared__ arrays take " + number(fixed) + " bytes; the limit is " + number(played.shared_per_block) +
           " bytes a block (nvcc would not compile this kernel).";
  const std::size_t all = fixed + launch.config.shared;
  long long limit = played.shared_per_block;
  {
    std::lock_guard lock(optin_mutex);
    // A template kernel's own address isn't known at its launch: any opt-in of its size counts.
    for (const auto& [function, bytes] : optin)
      if (!launch.function || function == launch.function) limit = std::max<long long>(limit, bytes + static_cast<long long>(fixed));
  }
  if (all > static_cast<std::size_t>(std::min(limit, played.shared_per_block_optin))) {
    std::string text = "it asks for " + number(all) + " bytes of shared memory a block; the limit is " + number(played.shared_per_block) + " bytes" + on;
    if (all <= static_cast<std::size_t>(played.shared_per_block_optin))
      text += ", or " + number(played.shared_per_block_optin) +
              " after cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)";
    else
      text += ", and " + number(played.shared_per_block_optin) + " at the very most";
    return text + ".";
  }
  if (launch.cooperative) {
    const auto by_threads = static_cast<unsigned long long>(played.threads_per_multiprocessor) / threads;
    const auto by_shared = all ? static_cast<unsigned long long>(played.shared_per_multiprocessor) / all : ~0ull;
    const auto resident = std::min({by_threads, by_shared, static_cast<unsigned long long>(played.blocks_per_multiprocessor)}) *
                          static_cast<unsigned long long>(played.multiprocessors);
    const unsigned long long blocks = 1ull * g[0] * g[1] * g[2];
    code = cooperative_too_large;
    if (blocks > resident)
      return "a cooperative launch needs all of its " + number(blocks) + " blocks on the device at once; " + number(resident) +
             " fit" + on + ".";
  }
  code = 0;
  return "";
}

void refuse(const Launch& launch, int code, const std::string& why) {
  errors.last = errors.newest = code;
  errors.looked = false;
  errors.text = std::string("kernel ") + launch.site.kernel + " was not launched: " + why;
  Fault fault;
  fault.reason = "launch_error";
  fault.message = "Kernel " + std::string(launch.site.kernel) + " was not launched: " + why;
  fault.kernel = launch.site.kernel;
  fault.file = launch.site.file;
  fault.line = launch.site.line;
  errors.launch = std::move(fault);
}

// A launch through a pointer is known by the pointer's name only: the kernel's own takes its place.
void name_kernel(Launch& launch, const Module& module) {
  const auto head = module.heads.find(reinterpret_cast<std::uintptr_t>(launch.function));
  if (head == module.heads.end()) return;
  launch.site.kernel = head->second.name.c_str();
  launch.site.parameters = head->second.parameters.c_str();
  launch.site.defined = head->second.defined;
}

void note(const Launch& launch) {
  std::lock_guard lock(launched_mutex);
  launched.push_back({launch.site.kernel, launch.config.grid, launch.config.block});
  if (launched.size() > launched_kept) launched.pop_front();
}

void find_arrays(Job& job) {
  if (!job.module) return;
  const std::string kernel = base_name(job.launch->site.kernel);
  const auto& kernels = job.module->kernels;
  const bool known = std::find(kernels.begin(), kernels.end(), kernel) != kernels.end();
  // Those of the kernel and of device functions, which it may call; of a kernel launched through a pointer, all.
  const auto code = reinterpret_cast<std::uintptr_t>(job.launch->function);
  for (const auto& array : job.module->shared) {
    if (array.owner == kernel && code && array.code && array.code != code) continue;      // of another instance
    if (!known || array.owner == kernel || std::find(kernels.begin(), kernels.end(), array.owner) == kernels.end()) job.arrays.push_back(array);
  }
}

void report_damage(const Launch& launch) {
  const Place place = damaged();
  if (!place.found || current.mode == Mode::check) return;      // the probes have told it better
  std::string name = "a tensor";
  std::string names = launch.site.parameters ? launch.site.parameters : "";
  for (unsigned i = 0, at = 0; i < launch.argument_count; ++i) {
    const auto comma = names.find(',', at);
    const auto pointer = reinterpret_cast<std::uintptr_t>(launch.arguments[i].pointer);
    if (pointer && pointer >= place.base && pointer <= place.base + place.bytes && at < names.size())
      name = "`" + names.substr(at, comma == std::string::npos ? comma : comma - at) + "`";
    at = comma == std::string::npos ? static_cast<unsigned>(names.size()) : static_cast<unsigned>(comma + 1);
  }
  Fault fault;
  fault.reason = "out_of_bounds";
  fault.message = "Kernel " + std::string(launch.site.kernel) + " wrote just outside " + name + " (" + std::to_string(place.bytes) +
                  " bytes): the bytes next to it have changed.";
  fault.kernel = launch.site.kernel;
  fault.file = launch.site.file;
  fault.line = launch.site.line;
  record(std::move(fault));
}

}  // namespace

Options& options() { return current; }
void set_device(const Device& device) { played = device; }
const Device& device() { return played; }

void run(const Launch& given) {
  if (errors.sticky) return;      // as on a GPU: after a fault nothing runs
  Launch launch = given;
  std::lock_guard one(pool().launching);
  install_handlers();
  Job job;
  job.launch = &launch;
  job.module = module_of(reinterpret_cast<std::uintptr_t>(launch.threads));
  if (launch.site.defined == 0 && job.module) name_kernel(launch, *job.module);
  job.blocks = 1ull * launch.config.grid.x * launch.config.grid.y * launch.config.grid.z;
  job.schedule = current.schedule;
  job.seed = current.seed;
  find_arrays(job);
  int code = 0;
  const std::string why = refusal(launch, job, code);
  if (!why.empty()) return refuse(launch, code, why);
  note(launch);
  const auto workers = static_cast<std::uint64_t>(std::max(1, current.threads));
  job.chunk = std::clamp<std::uint64_t>(job.blocks / (workers * 16), 1, 256);
  const bool checks = current.mode == Mode::check && job.module;
  const KernelsReach reach;
  if (checks) begin_checked(job);
  if (current.mode == Mode::count) begin_counting(job);
  pool().run(job, launch.cooperative, current.seconds);
  if (checks) {
    end_checked(pool().checkers());
    close_fences();
  }
  if (job.counting) end_counting(job);
  if (job.timed_out && !fault_pending()) {
    Fault fault;
    fault.reason = "kernel_timeout";
    fault.message = "The kernel did not end within the time limit.";
    fault.kernel = launch.site.kernel;
    fault.file = launch.site.file;
    fault.line = launch.site.line;
    record(std::move(fault));
  }
  report_damage(launch);
  if (fault_pending()) {
    errors.sticky = true;
    take_fault(errors.fault);
    errors.last = errors.newest = errors.failed = code_of(errors.fault.reason);
    errors.text = "a kernel failed";
    if (current.mode == Mode::check) add_finding(finding_of(errors.fault));
  }
}

int take_error() {
  const int code = errors.last;
  errors.looked = true;
  errors.dropped.clear();
  errors.last = 0;
  return code;
}

int peek_error() {
  errors.looked = true;
  errors.dropped.clear();
  return errors.last;
}

int sticky_error() {
  return errors.sticky ? errors.failed : 0;
}

void set_error(int code, const char* text) {
  errors.last = errors.newest = code;
  errors.text = text ? text : "";
}

void drop_error(const char* call, int code, const char* name, const char* file, int line) {
  if (errors.sticky) return;      // a kernel's failure, which is told anyhow
  Finding finding;
  finding.check = "unchecked_error";
  finding.file = file;
  finding.line = line;
  const char* why = error_text(code);
  std::string text = why ? why : std::string(call) + " fails";
  if (text.ends_with('.')) text.pop_back();
  finding.message = text + " (" + name + "), and nobody looks at what " + call + " returns.";
  errors.dropped.push_back(std::move(finding));
}

const char* error_text(int code) {
  return code != 0 && code == errors.newest && !errors.text.empty() ? errors.text.c_str() : nullptr;
}

bool finish_call(Fault& fault, bool threw) {
  const bool unlooked = !errors.looked;
  const bool refused = !errors.launch.reason.empty();
  const Fault launch = std::move(errors.launch);
  errors.launch = Fault{};
  errors.sticky = false;
  errors.looked = true;
  errors.last = 0;
  for (Finding& finding : std::exchange(errors.dropped, {})) add_finding(std::move(finding));
  if (!errors.fault.reason.empty()) {
    fault = std::exchange(errors.fault, Fault{});
    return true;
  }
  if (refused && (unlooked || threw)) {
    fault = launch;
    if (current.mode == Mode::check) {
      Finding finding = finding_of(fault);
      if (unlooked) {
        finding.check = "unchecked_error";
        finding.message += " Nobody looks at the error: call cudaGetLastError() after a launch.";
      }
      add_finding(std::move(finding));
    }
    return true;
  }
  return false;
}

void allow_shared(const void* function, int bytes) {
  std::lock_guard lock(optin_mutex);
  optin[function] = bytes;
}

int print(const char* format, ...) {
  char line[4096];
  va_list arguments;
  va_start(arguments, format);
  if (current.program && !this_worker) {      // the host's own printf
    const int written = std::vprintf(format, arguments);
    va_end(arguments);
    return written;
  }
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  Worker* worker = this_worker;
  const bool was = worker && worker->in_kernel;
  if (was) worker->in_kernel = false;      // an abort must not leave the lock held
  {
    std::lock_guard lock(print_mutex);
    if (printed.size() < print_limit) {
      printed += line;
      if (printed.size() >= print_limit) printed += "\n[simt: further output of printf is dropped]\n";
    }
  }
  if (was) {
    worker->in_kernel = true;
    if (worker->job->cancelled) leave_kernel(*worker);
  }
  return length;
}

std::vector<Launched> take_launches() {
  std::lock_guard lock(launched_mutex);
  const auto all = std::exchange(launched, {});
  return {all.begin(), all.end()};
}

std::string take_printed() {
  std::lock_guard lock(print_mutex);
  return std::exchange(printed, std::string());
}

}  // namespace simt
