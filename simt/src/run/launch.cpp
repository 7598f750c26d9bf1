// Runs launches, and keeps the CUDA errors of the host thread and the output of kernels.
#include <simt/host.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <mutex>
#include <utility>

#include "run/limits.h"
#include "run/memory.h"
#include "run/monitor.h"
#include "run/options.h"
#include "run/pool.h"
#include "run/worker.h"

namespace simt {
namespace {

// The CUDA error that a GPU reports for a failed kernel.
int code_of(const std::string& reason) {
  if (reason == "out_of_bounds" || reason == "illegal_address") return 700;
  if (reason == "kernel_timeout") return 702;
  if (reason == "device_assert") return 710;
  if (reason == "misaligned") return 716;
  return 719;      // unspecified launch failure
}

Device current_device;

// The errors of one host thread. As in CUDA, each host thread has its own.
struct Errors {
  int last = 0;
  int newest = 0;             // the error that `text` describes
  bool looked = true;         // the program has queried the newest error
  bool sticky = false;        // a kernel faulted: every later call fails until Python takes the error,
  int failed = 0;             // with this code
  std::string text;
  Fault launch;               // a launch that was refused, for Python
  Fault fault;                // of a failed kernel; no reason: no kernel failed
  std::vector<Fault> dropped;   // failed calls whose results the program ignores, in a checked program
};
thread_local Errors errors;

std::mutex print_mutex;
std::vector<std::string> printed;  // by call
std::size_t printed_bytes = 0;
constexpr std::size_t print_limit = 1 << 20;

std::mutex launched_mutex;
std::deque<Launched> launched;
constexpr std::size_t launched_kept = 16;

int refuse(const Launch& launch, int code, const std::string& why) {
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
  return code;
}

// Replaces the name of a pointer, through which a kernel was launched, by the kernel's own name.
void name_kernel(Launch& launch, const Module& module) {
  const auto head = module.heads.find(reinterpret_cast<std::uintptr_t>(launch.function));
  if (head == module.heads.end()) return;
  launch.site.max_threads = head->second.max_threads;
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
  // The arrays of the kernel and of device functions, which it may call; if the kernel is unknown, all arrays.
  const auto code = reinterpret_cast<std::uintptr_t>(job.launch->function);
  for (const auto& array : job.module->shared) {
    if (array.owner == kernel && code && array.code && array.code != code) continue;      // of another instance
    if (!known || array.owner == kernel || std::find(kernels.begin(), kernels.end(), array.owner) == kernels.end())
      job.arrays.push_back(array);
  }
}

void report_damage(const Launch& launch) {
  const Place place = damaged();
  if (!place.found || options().mode == Mode::check) return;      // the probes report it more precisely
  std::string name = "a tensor";
  for (unsigned i = 0; i < launch.argument_count; ++i) {
    const auto pointer = reinterpret_cast<std::uintptr_t>(launch.arguments[i].pointer);
    if (pointer && pointer >= place.base && pointer <= place.base + place.bytes && !parameter_name(launch, i).empty())
      name = "`" + parameter_name(launch, i) + "`";
  }
  Fault fault;
  fault.reason = "out_of_bounds";
  fault.message = "Kernel " + std::string(launch.site.kernel) + " wrote outside " + name + " (" +
                  std::to_string(place.bytes) +
                  " bytes): the bytes next to it have changed. Check the kernel's indices.";
  fault.kernel = launch.site.kernel;
  fault.file = launch.site.file;
  fault.line = launch.site.line;
  record(std::move(fault));
}

// Sets what a launch runs and where its code is. Returns its CUDA error if it is refused.
int begin(Job& job, Launch& launch) {
  job.launch = &launch;
  job.module = module_of(reinterpret_cast<std::uintptr_t>(launch.threads));
  if (launch.site.defined == 0 && job.module) name_kernel(launch, *job.module);
  job.blocks = 1ull * launch.config.grid.x * launch.config.grid.y * launch.config.grid.z;
  find_arrays(job);
  int code = 0;
  const std::string why = refusal(launch, job, code);
  return why.empty() ? 0 : refuse(launch, code, why);
}

}  // namespace

void set_device(const Device& device) { current_device = device; }
const Device& device() { return current_device; }

long long static_shared(const void* function) {
  const auto code = reinterpret_cast<std::uintptr_t>(function);
  const Module* module = module_of(code);
  const auto head = module ? module->heads.find(code) : std::map<std::uintptr_t, KernelHead>::const_iterator();
  if (!module || head == module->heads.end()) return 0;
  long long bytes = 0;
  for (const auto& array : module->shared)
    if (array.owner == base_name(head->second.name) && (!array.code || array.code == code))
      bytes += static_cast<long long>(array.bytes);
  return bytes;
}

int most_threads(const void* function) {
  const auto code = reinterpret_cast<std::uintptr_t>(function);
  const Module* module = module_of(code);
  if (!module) return max_threads;
  const auto head = module->heads.find(code);
  return head != module->heads.end() && head->second.max_threads ? head->second.max_threads : max_threads;
}

int try_launch(const Launch& given) {
  if (errors.sticky) return errors.failed;
  Launch launch = given;
  Job job;
  return begin(job, launch);
}

int run(const Launch& given) {
  if (errors.sticky) return errors.failed;      // as on a GPU: after a fault no kernel runs
  Launch launch = given;
  std::lock_guard one(pool().launching);
  const bool reports = obey();
  install_handlers();
  Job job;
  job.schedule = options().schedule;
  job.seed = options().seed;
  if (const int code = begin(job, launch)) return code;
  note(launch);
  const bool checks = options().mode == Mode::check && job.module;
  report_launch(launch, checks && !options().idle, options().idle);
  if (options().idle) return publish(), 0;
  const bool records = reports && orders().record != 0;
  if (records) record_before(job);
  const auto workers = static_cast<std::uint64_t>(std::max(1, options().threads));
  job.chunk = std::clamp<std::uint64_t>(job.blocks / (workers * 16), 1, 256);
  job.several = workers > 1;
  const KernelAccess reach;
  if (checks) begin_checked(job);
  if (options().mode == Mode::count) begin_counting(job);
  pool().run(job, launch.cooperative, options().seconds);
  std::vector<Extent> written;
  const bool accounts = checks && records && job.module->probed;
  if (checks) {
    if (accounts) written = list_written(pool().checkers());
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
    if (options().mode == Mode::check) report_finding(errors.fault);
  }
  if (records) record_after(job, accounts ? &written : nullptr);
  publish();
  return 0;
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

int sticky_error() { return errors.sticky ? errors.failed : 0; }

void set_error(int code, const char* text) {
  errors.last = errors.newest = code;
  errors.text = text ? text : "";
}

void note_returned() { errors.looked = true; }

void drop_error(const char* call, int code, const char* name, const char* file, int line) {
  if (errors.sticky) return;      // a kernel's failure, which is reported in any case
  Fault fault;
  fault.reason = "unchecked_error";
  fault.file = file;
  fault.line = line;
  const char* why = error_text(code);
  std::string text = why ? why : std::string(call) + " failed";
  if (text.ends_with('.')) text.pop_back();
  fault.message = text + " (" + name + "), and the program ignores this error. Check the result of " + call + ".";
  errors.dropped.push_back(std::move(fault));
}

const char* error_text(int code) {
  return code != 0 && code == errors.newest && !errors.text.empty() ? errors.text.c_str() : nullptr;
}

namespace {
bool find_error(Fault& fault, bool threw) {
  const bool unlooked = !errors.looked;
  const bool refused = !errors.launch.reason.empty();
  const Fault launch = std::move(errors.launch);
  errors.launch = Fault{};
  errors.sticky = false;
  errors.looked = true;
  errors.last = 0;
  for (const Fault& dropped : std::exchange(errors.dropped, {})) report_finding(dropped);
  if (!errors.fault.reason.empty()) {
    fault = std::exchange(errors.fault, Fault{});
    return true;
  }
  if (refused && (unlooked || threw)) {
    fault = launch;
    if (options().mode == Mode::check) {
      Fault found = fault;
      if (unlooked) {
        found.reason = "unchecked_error";
        found.message += " The program ignores this error. Call cudaGetLastError() after the launch.";
      }
      report_finding(found);
    }
    return true;
  }
  return false;
}
}  // namespace

bool finish_call(Fault& fault, bool threw) {
  const bool found = find_error(fault, threw);
  publish();
  return found;
}

int print(const char* format, ...) {
  char line[4096];
  va_list arguments;
  va_start(arguments, format);
  if (options().program && !this_worker) {      // the host's own printf
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
    if (printed_bytes < print_limit) {
      printed.emplace_back(line);
      printed_bytes += printed.back().size();
      if (printed_bytes >= print_limit) printed.emplace_back("\n[simt: further output of printf is discarded]\n");
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
  std::vector<std::string> all;
  {
    std::lock_guard lock(print_mutex);
    all.swap(printed);
    printed_bytes = 0;
  }
  if (options().sorted_print) std::sort(all.begin(), all.end());
  std::string text;
  for (const std::string& each : all) text += each;
  return text;
}

}  // namespace simt
