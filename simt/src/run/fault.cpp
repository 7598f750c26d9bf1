// Catches faults of kernels (invalid addresses, endless loops) and describes them.
#include "run/fault.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "run/instruction.h"
#include "run/memory.h"
#include "run/monitor.h"
#include "run/worker.h"

namespace simt {
namespace {

std::mutex mutex;
bool kept = false;
Fault first;

Module runtime{};                   // this library itself
constexpr int most_spared = 400;    // signals come every 5 ms: after 2 s a library's code is interrupted too

constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
struct sigaction before[NSIG];

#if defined(__x86_64__)
std::uintptr_t instruction_of(const ucontext_t* context) { return context->uc_mcontext.gregs[REG_RIP]; }
std::uintptr_t stack_of(const ucontext_t* context) { return context->uc_mcontext.gregs[REG_RSP]; }
void continue_at(ucontext_t* context, void (*code)(), void* stack) {
  context->uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(code);
  context->uc_mcontext.gregs[REG_RSP] = reinterpret_cast<greg_t>(stack);
  context->uc_mcontext.gregs[REG_EFL] &= ~0x400;   // the direction flag, which the ABI wants clear
}
#elif defined(__aarch64__)
std::uintptr_t instruction_of(const ucontext_t* context) { return context->uc_mcontext.pc; }
std::uintptr_t stack_of(const ucontext_t* context) { return context->uc_mcontext.sp; }
void continue_at(ucontext_t* context, void (*code)(), void* stack) {
  context->uc_mcontext.pc = reinterpret_cast<std::uintptr_t>(code);
  context->uc_mcontext.sp = reinterpret_cast<std::uintptr_t>(stack);
}
#endif

// Reports the first write to an input, and lets the process go on. Returns false for another fault.
bool handle_input(const siginfo_t* info, const Worker* worker, std::uintptr_t code) {
  if (!monitored() || info->si_code != SEGV_ACCERR) return false;
  const bool in_kernel = worker && worker->in_kernel;
  // A plain kernel that writes next to an input accesses memory out of bounds. The checks find that in another way.
  const InputFault fault =
      open_input(reinterpret_cast<std::uintptr_t>(info->si_addr), !in_kernel || worker->checker != nullptr);
  if (!fault.found || (!fault.inside && in_kernel && !worker->checker)) return false;
  if (!fault.first) return true;
  InputWrite write{};
  write.offset = fault.offset;
  write.in_kernel = in_kernel;
  if (in_kernel) {
    const unsigned t = cursor.current;
    const std::uint32_t block[] = {blockIdx.x, blockIdx.y, blockIdx.z};
    const std::uint32_t thread[] = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
    std::copy(block, block + 3, write.block);
    std::copy(thread, thread + 3, write.thread);
    std::strncpy(write.kernel, worker->job->launch->site.kernel, sizeof write.kernel - 1);
  }
  report_write(write, code);
  return true;
}

void on_signal(int number, siginfo_t* info, void* raw) {
  auto* context = static_cast<ucontext_t*>(raw);
  Worker* worker = this_worker;
  if (number == SIGSEGV && handle_input(info, worker, instruction_of(context))) return;
  if (!worker || !worker->in_kernel) {
    if (number == abort_signal()) return;
    // Not in a kernel: restore the previous handler and let the fault happen again.
    sigaction(number, &before[number], nullptr);
    if (info->si_code <= 0) raise(number);  // abort() was called: no instruction repeats it
    return;
  }
  if (number == SIGSEGV && worker->checker && info->si_code > 0 &&
      open_fence(reinterpret_cast<std::uintptr_t>(info->si_addr)))
    return;
  if (number == abort_signal()) {
    if (!worker->job || !worker->job->cancelled) return;
    if (worker->critical) {
      worker->abort_pending = true;
      return;
    }
    // A library (malloc, the loader) may hold a lock. Wait for the next signal, which comes soon.
    const std::uintptr_t code = instruction_of(context);
    const bool interruptible = runtime.contains(code) || !worker->job->module || worker->job->module->contains(code);
    if (!interruptible && ++worker->spared < most_spared) return;
  }
  RawFault& fault = worker->fault;
  fault.signal = number;
  fault.code = info->si_code;
  const bool of_memory = number == SIGSEGV || number == SIGBUS;
  const Touched at = of_memory ? touched(info, context) : Touched{};
  fault.known = at.known;
  fault.write = at.write;
  fault.address = at.address;
  fault.instruction = instruction_of(context);
  fault.frame_count = 0;
  // Return addresses into the module, for a fault inside a function that the kernel called.
  const Module* module = worker->job->module;
  const std::uintptr_t low = stack_of(context);
  if (module && worker->fiber && low >= reinterpret_cast<std::uintptr_t>(worker->fiber->low)) {
    const auto* end = reinterpret_cast<const std::uintptr_t*>(worker->fiber->top);
    for (auto* at = reinterpret_cast<const std::uintptr_t*>(low & ~std::uintptr_t(7));
         at < end && fault.frame_count < 16; ++at)
      if (module->contains(*at)) fault.frames[fault.frame_count++] = *at - 1;
  }
  worker->in_kernel = false;
  worker->critical = false;
  worker->abort_pending = true;
  worker->job->cancelled = true;
  continue_at(context, simt_resume, worker->main_stack);
}

std::string plural(std::uint64_t n, const char* unit) { return std::to_string(n) + " " + unit + (n == 1 ? "" : "s"); }

// Returns the name of the kernel's parameter that points into the allocation; `element`: size of its elements.
std::string parameter_at(const Launch& launch, const Place& place, std::size_t& element) {
  for (unsigned i = 0; i < launch.argument_count; ++i) {
    const auto pointer = reinterpret_cast<std::uintptr_t>(launch.arguments[i].pointer);
    if (pointer < place.base || pointer > place.base + place.bytes || pointer == 0) continue;
    element = std::max<std::size_t>(launch.arguments[i].element, 1);
    const std::string name = parameter_name(launch, i);
    return name.empty() ? "argument " + std::to_string(i + 1) : "`" + name + "`";
  }
  element = 1;
  return "a tensor that is not an argument of this kernel";
}

std::uintptr_t distance(const Place& place, std::uintptr_t address) {
  return address < place.base                 ? place.base - address
         : address < place.base + place.bytes ? 0
                                              : address - place.base - place.bytes;
}

// Returns the argument's allocation that is nearest to an address. A 32-bit index to 8-byte elements reaches 16 GiB.
Place nearest_argument(const Launch& launch, std::uintptr_t address) {
  Place best;
  for (unsigned i = 0; i < launch.argument_count; ++i) {
    const auto pointer = reinterpret_cast<std::uintptr_t>(launch.arguments[i].pointer);
    const Place place = pointer ? place_of(pointer) : Place{};
    if (!place.found || place.freed || distance(place, pointer) > 0 ||
        distance(place, address) > std::uintptr_t(1) << 34)
      continue;
    if (!best.found || distance(place, address) < distance(best, address)) best = place;
  }
  return best;
}

std::string hexadecimal(std::uintptr_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

// Returns whether a fault at a valid address was caused by its alignment.
bool unaligned(const RawFault& raw) {
#if defined(__x86_64__)
  return raw.code == SI_KERNEL;
#else
  return raw.signal == SIGBUS && raw.code == BUS_ADRALN;
#endif
}

std::string explain_address(const Worker& worker, const Launch& launch, const RawFault& raw, std::string& reason) {
  const std::string verb = !raw.known ? "reads or writes" : raw.write ? "writes" : "reads";
  const std::uintptr_t address = raw.address;
  if (!raw.known || !possible(address)) {
    reason = "illegal_address";
    return verb + " at " +
           (raw.known ? hexadecimal(address) + ", which is not a valid address" : "an invalid address") +
           ". Check the index and the pointer: the index is far out of range or overflowed, or the pointer was never "
           "set.";
  }
  if (unaligned(raw)) {
    reason = "misaligned";
    return verb +
           " several elements at once (float4, float2, …) at an address that is not a multiple of their size. Align "
           "it, "
           "or access one element at a time.";
  }
  if (worker.fiber && address < reinterpret_cast<std::uintptr_t>(worker.fiber->low) &&
      address + 2 * 4096 >= reinterpret_cast<std::uintptr_t>(worker.fiber->low)) {
    reason = "stack_overflow";
    return "ran out of stack: recursion or local arrays need more than 64 KiB. A recursion needs an end that each "
           "thread reaches; a large array belongs in shared or global memory.";
  }
  const auto shared_end = reinterpret_cast<std::uintptr_t>(worker.dynamic_shared);
  if (address >= shared_end && address < shared_end + 4096) {
    reason = "out_of_bounds";
    return verb + " " + plural(address - shared_end, "byte") +
           " past the end of the dynamic shared memory, which has " + plural(launch.config.shared, "byte") +
           ". Pass the size that the kernel needs as the third `<<<>>>` argument.";
  }
  if (address < 65536) {
    reason = "illegal_address";
    return verb + " through a null pointer. Set the pointer before it is used.";
  }
  const Place place = meant_place(launch, address);
  reason = "out_of_bounds";
  if (!place.found) {
    reason = "illegal_address";
    return verb +
           " an address that belongs to no tensor. Check the index and the pointer: the index is far out of range or "
           "overflowed, or the pointer was never set.";
  }
  std::size_t element = 1;
  const std::string name = parameter_at(launch, place, element);
  if (place.freed) {
    reason = "illegal_address";
    return verb + " " + name + ", whose memory was already freed. Free it after its last use.";
  }
  const std::string size = " (" + plural(place.bytes / element, "element") + ")";
  if (address >= place.base + place.bytes)
    return verb + " element " + std::to_string((address - place.base) / element) + " of " + name + size + ": " +
           plural((address - place.base - place.bytes) / element + 1, "element") +
           " past its end. Check the index before the access.";
  if (address < place.base)
    return verb + " element -" + std::to_string((place.base - address + element - 1) / element) + " of " + name + size +
           ": before its start. Check the index before the access.";
  return verb + " " + name + size + ", which may not be accessed in this way.";
}

}  // namespace

std::string parameter_name(const Launch& launch, unsigned argument) {
  std::string name;
  for (const char* c = launch.site.parameters; c && *c; ++c) {
    if (*c != ',')
      name += *c;
    else if (argument-- == 0)
      return name;
    else
      name.clear();
  }
  return name;
}

std::uintptr_t from_argument(const Launch& launch, const Place& place, std::uintptr_t address) {
  std::uintptr_t nearest = ~std::uintptr_t(0);
  for (unsigned i = 0; i < launch.argument_count; ++i) {
    const auto pointer = reinterpret_cast<std::uintptr_t>(launch.arguments[i].pointer);
    if (!pointer || pointer < place.base || pointer > place.base + place.bytes) continue;
    const Place now = place_of(pointer);      // a new tensor may have the same address
    if (place.freed && now.found && !now.freed && distance(now, pointer) == 0) continue;
    nearest = std::min(nearest, pointer < address ? address - pointer : pointer - address);
  }
  return nearest;
}

Place meant_place(const Launch& launch, std::uintptr_t address) {
  constexpr std::uintptr_t near = 1 << 20;
  const Place place = place_of(address), argument = nearest_argument(launch, address);
  if (place.found && place.freed) {
    const std::uintptr_t from_pointer = from_argument(launch, place, address);
    if (argument.found && distance(argument, address) < std::min(from_pointer, near)) return argument;
    const Place live = live_place_of(address);
    return live.found && distance(live, address) < std::min<std::uintptr_t>(from_pointer, 4096) ? live : place;
  }
  if (place.found && distance(place, address) <= near) return place;
  return argument.found ? argument : place;      // far from all memory: probably an index to an argument
}

int abort_signal() { return SIGRTMIN + 6; }

void install_handlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    find_library(reinterpret_cast<const void*>(&install_handlers), runtime);
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, abort_signal());
    for (int number : signals) sigaction(number, &action, &before[number]);
    sigaction(abort_signal(), &action, nullptr);
  });
}

void use_alternate_stack() {
  constexpr std::size_t bytes = 64 * 1024;
  stack_t stack{};
  stack.ss_sp = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack.ss_size = bytes;
  if (stack.ss_sp != MAP_FAILED) sigaltstack(&stack, nullptr);
}

AlternateStack::~AlternateStack() {
  stack_t none{}, stack{};
  none.ss_flags = SS_DISABLE;
  if (sigaltstack(&none, &stack) == 0 && stack.ss_sp) munmap(stack.ss_sp, stack.ss_size);
}

void record(Fault fault) {
  std::lock_guard lock(mutex);
  if (kept) return;
  kept = true;
  first = std::move(fault);
}

bool take_fault(Fault& out) {
  std::lock_guard lock(mutex);
  if (!kept) return false;
  kept = false;
  out = std::move(first);
  first = Fault{};
  return true;
}

bool fault_pending() {
  std::lock_guard lock(mutex);
  return kept;
}

void explain(Worker& worker) {
  const Job& job = *worker.job;
  const Launch& launch = *job.launch;
  const RawFault& raw = worker.fault;
  if (raw.signal == abort_signal() && !job.timed_out) return;   // another worker's fault, or Ctrl-C
  Fault fault;
  const std::string who = "Thread " + coordinates(cursor.current, blockDim) + " of block (" +
                          std::to_string(blockIdx.x) + ", " + std::to_string(blockIdx.y) + ", " +
                          std::to_string(blockIdx.z) + ") ";
  if (raw.signal == abort_signal()) {
    fault.reason = "kernel_timeout";
    fault.message = "The kernel did not end within the time limit. " + who + "was still running.";
  } else if (raw.signal == SIGFPE) {
    fault.reason = "division_by_zero";
    fault.message = who + "divides an integer by zero. Find out which size makes the divisor 0, or test it first.";
  } else if (raw.signal == SIGABRT) {
    fault.reason = "device_assert";
    fault.message = who + "called abort().";
  } else if (raw.signal == SIGILL) {
    fault.reason = "device_assert";
    fault.message = who + "executed an illegal instruction: a trap, or code that is declared unreachable.";
  } else {
    std::string reason;
    fault.message = who + explain_address(worker, launch, raw, reason);
    fault.reason = reason;
  }
  fault.kernel = launch.site.kernel;
  fault.file = launch.site.file;
  fault.defined = launch.site.defined;
  fault.in_thread = true;
  fault.block = blockIdx;
  const unsigned t = cursor.current;
  fault.thread = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
  auto add = [&](std::uintptr_t address) {
    if (job.module && job.module->contains(address))
      fault.code.push_back({job.module->path, address - job.module->base});
  };
  add(raw.instruction);
  for (unsigned i = 0; i < raw.frame_count; ++i) add(raw.frames[i]);
  record(std::move(fault));
}

}  // namespace simt

// What compiled code calls where the source says __builtin_unreachable() (simt/toolchain/compilers.py).
extern "C" [[noreturn]] SIMT_API void __ubsan_handle_builtin_unreachable(const void*) { __builtin_trap(); }
