// Runs a program with its own main inside this process until it returns, calls exit or abort, or crashes.
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <typeinfo>

#include <cxxabi.h>

#include "run/fault.h"
#include "run/instruction.h"
#include "run/memory.h"
#include "run/module.h"
#include "run/options.h"
#include "run/worker.h"

namespace simt {
namespace {

enum Crash : int { bad_address, null_pointer, no_stack };
enum How : int { returned, called_exit, left_at_once, called_abort, crashed, threw, not_loaded };

// How the program ended; read by simt/runtime/programs.py.
struct End {
  int how;
  int status;               // of main or exit; the signal of a crash
  int left_over;            // kernels had printed what the program never waited for
  int reported;                 // the checks have a finding of the crash
  int codes;
  int crash;                // a Crash, and
  unsigned long long address;    // what was touched,
  unsigned long long code[16];   // offsets in the program, the innermost first
  char text[480];           // of a crash or an exception, or why the program could not be loaded
};

End* end = nullptr;          // while a program runs
sigjmp_buf way_out;          // back into run_program, on its thread
pthread_t home;
Module program{};
std::mutex shared_by_threads;  // of the program; guards the next two
Fault refused;                 // the first copy that was refused
std::map<std::uintptr_t, std::size_t> symbols;   // __device__ variables whose address the host has got
struct sigaction runtimes[NSIG];

// Added to what the program's clocks show. Where simt/checking/schedules.py asks for it, each look at a clock adds up
// to 2 s, so that whatever the program prints of times differs from its other runs.
std::atomic<bool> clocks_vary{false};
std::atomic<long long> clock_offset_ns{0};

constexpr int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// Ends the program from wherever it is, as exit does: no function that was called is returned to.
[[noreturn]] void leave(How how, int status) {
  if (!end ||
      !pthread_equal(pthread_self(), home)) {  // another thread of the program: nothing can be reported any more
    std::fflush(nullptr);
    _exit(how == called_abort ? 128 + SIGABRT : status);
  }
  end->how = how;
  end->status = status;
  siglongjmp(way_out, 1);
}

// Only the thread of main can return to run_program: a crash of another one ends the process, after this message.
void tell_crash_of_thread(int number) {
  constexpr char text[] = "simt: Host code crashed in a thread that the program had started: signal ";
  const char digits[] = {static_cast<char>('0' + number / 10), static_cast<char>('0' + number % 10), '.', '\n'};
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0 || write(STDERR_FILENO, digits, sizeof digits) < 0) return;
}

void on_crash(int number, siginfo_t* info, void* raw) {
  if (this_worker && this_worker->in_kernel) return runtimes[number].sa_sigaction(number, info, raw);
  if (!end || !pthread_equal(pthread_self(), home)) {
    if (end) tell_crash_of_thread(number);
    signal(number, SIG_DFL);
    return;
  }
  const auto* context = static_cast<ucontext_t*>(raw);
#if defined(__x86_64__)
  const std::uintptr_t instruction = context->uc_mcontext.gregs[REG_RIP], stack = context->uc_mcontext.gregs[REG_RSP];
#else
  const std::uintptr_t instruction = context->uc_mcontext.pc, stack = context->uc_mcontext.sp;
#endif
  auto add = [](std::uintptr_t code) {
    if (program.contains(code) && end->codes < 16) end->code[end->codes++] = code - program.base;
  };
  const bool of_memory = number == SIGSEGV || number == SIGBUS;
  const Touched at = of_memory ? touched(info, context) : Touched{};
  const std::uintptr_t address = at.address;
  const bool overflown =
      number == SIGSEGV && address < stack + 4096 && address + (1 << 20) > stack && at.known && info->si_code > 0;
  end->crash = overflown ? no_stack : at.known && address < 65536 ? null_pointer : bad_address;
  end->address = address;
  add(instruction);
  // Return addresses on the stack, for a crash inside a library that the program called.
  if (!overflown)
    for (std::uintptr_t at = stack & ~std::uintptr_t(7); at < stack + 4096 && end->codes < 16; at += 8)
      add(*reinterpret_cast<const std::uintptr_t*>(at) - 1);
  leave(crashed, number);
}

void on_interrupt(int) { _exit(128 + SIGINT); }

void handle_signals() {
  install_handlers();
  use_alternate_stack();
  struct sigaction action{};
  sigemptyset(&action.sa_mask);
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int number : crashes) sigaction(number, &action, &runtimes[number]);
  signal(SIGINT, on_interrupt);
}

// Returns what is wrong with one side of a copy, or an empty string. name: of this side, for the message.
std::string problem(const void* pointer, const std::string& name, bool device, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  Place place = place_of(address);
  std::lock_guard lock(shared_by_threads);
  for (const auto& [base, size] : symbols)
    if (address >= base && address < base + size) place = {true, false, base, size};
  const bool inside = place.found && address >= place.base && address < place.base + place.bytes;
  const std::size_t left = place.base + place.bytes - address;
  if (inside && !place.freed)
    return bytes > left ? "its " + name + " has only " + std::to_string(left) + " bytes left" : "";
  if (!device) return "";
  if (inside) return "its " + name + " was already freed";
  if (program.contains(address))
    return "its " + name +
           " is a variable of the program, not device memory (use cudaMemcpyToSymbol or cudaMemcpyFromSymbol for a "
           "__device__ or __constant__ variable)";
  return "its " + name + " is not device memory";
}

// Writes the message about a crash, and adds it to the findings if checks are on.
void describe_crash() {
  Fault fault;
  fault.reason = "illegal_address";
  std::string& what = fault.message;
  if (end->how == called_abort) {
    what = "The program called abort()";
  } else if (end->status == SIGABRT) {
    what = "The program was aborted";
  } else if (end->status == SIGFPE) {
    fault.reason = "division_by_zero";
    what = "The program crashed outside of kernels: it divides an integer by zero";
  } else if (end->status == SIGILL) {
    what = "The program crashed outside of kernels: it executed an illegal instruction or a trap";
  } else if (end->crash == no_stack) {
    fault.reason = "stack_overflow";
    what = "The program ran out of stack outside of kernels: its recursion does not end, or a local array is too large";
  } else if (closed_to_host(end->address)) {
    what = "Host code accesses device memory, which only kernels and cudaMemcpy can access";
  } else {
    what = std::string("The program crashed outside of kernels: it reads or writes ") +
           (end->crash == null_pointer ? "through a null pointer" : "at an address where nothing is allocated");
  }
  std::snprintf(end->text, sizeof end->text, "%s", what.c_str());
  if (options().mode != Mode::check || end->status == SIGABRT) return;
  for (int i = 0; i < end->codes; ++i) fault.code.push_back({program.path, static_cast<std::uintptr_t>(end->code[i])});
  what += ".";
  report_finding(fault);
  end->reported = 1;
}

void describe_exception() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  int failed = 0;
  char* name = type ? abi::__cxa_demangle(type->name(), nullptr, nullptr, &failed) : nullptr;
  const std::string known = name ? name : type ? type->name() : "exception";
  std::free(name);
  try {
    throw;
  } catch (const std::exception& error) {
    std::snprintf(end->text, sizeof end->text, "%s: %s", known.c_str(), error.what());
  } catch (...) {
    std::snprintf(end->text, sizeof end->text, "%s", known.c_str());
  }
}

template <class T>
T symbol(void* handle, const char* name) {
  return reinterpret_cast<T>(dlsym(handle, name));
}

// Runs main, and before it the constructors of the program's global objects.
void run_main(const char* path, int argc, char** argv, void*& handle) {
  handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    end->how = not_loaded;
    std::snprintf(end->text, sizeof end->text, "%s", dlerror());
    return;
  }
  const auto main = symbol<int (*const*)(int, char**, char**)>(handle, "simt_main");
  find_library(reinterpret_cast<const void*>(main), program);
  register_module(reinterpret_cast<const void*>(main), symbol<const char*>(handle, "simt_kernel_names"),
                  symbol<const char*>(handle, "simt_shared_names"), symbol<const char*>(handle, "simt_kernel_heads"));
  try {
    end->status = (*main)(argc, argv, environ);
    end->how = returned;
  } catch (...) {
    describe_exception();
    end->how = threw;
  }
}

// Runs atexit's functions and the destructors of global objects, which may call exit again.
void run_end(void* handle) {
  if (auto finish = symbol<void (*)()>(handle, "simt_finish")) finish();
}

// What a look at a clock adds to it: 0, except where runs of a program are compared.
long long clock_jump() {
  static std::atomic<unsigned> looks{0};
  if (!clocks_vary) return 0;
  const unsigned mixed = (++looks + static_cast<unsigned>(getpid())) * 2654435761u;
  return clock_offset_ns += 1 + mixed % 2'000'000'000;
}

}  // namespace

bool flush_printed() {
  const std::string text = take_printed();
  std::fwrite(text.data(), 1, text.size(), stdout);
  return !text.empty();
}

int synchronize() {
  if (options().program) flush_printed();
  return sticky_error();
}

void note_symbol(const void* variable, std::size_t bytes) {
  std::lock_guard lock(shared_by_threads);
  if (options().program) symbols[reinterpret_cast<std::uintptr_t>(variable)] = bytes;
}

const char* transfer_problem(const char* call, const void* target, bool target_device, const void* source,
                             bool source_device, std::size_t bytes) {
  if (!options().program) return nullptr;
  std::string text = problem(target, source ? "target" : "memory", target_device, bytes);
  if (text.empty() && source) text = problem(source, "source", source_device, bytes);
  if (text.empty()) return nullptr;
  Fault fault;
  fault.reason = text.find("bytes") == std::string::npos ? "illegal_address" : "out_of_bounds";
  fault.message = std::string(call) + " of " + std::to_string(bytes) + " bytes failed: " + text + ".";
  const auto code = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - 1;
  if (program.contains(code)) fault.code.push_back({program.path, code - program.base});
  if (options().mode == Mode::check) report_finding(fault);
  {
    std::lock_guard lock(shared_by_threads);
    if (refused.reason.empty()) refused = fault;
  }
  static thread_local std::string kept;
  kept = fault.message;
  return kept.c_str();
}

}  // namespace simt

using namespace simt;

extern "C" {

// What exit, abort and their kin are in a program (simt/runtime/programs.py links it so).
[[noreturn]] SIMT_API void __wrap_exit(int status) { leave(called_exit, status); }
[[noreturn]] SIMT_API void __wrap__exit(int status) { leave(left_at_once, status); }
[[noreturn]] SIMT_API void __wrap__Exit(int status) { leave(left_at_once, status); }
[[noreturn]] SIMT_API void __wrap_quick_exit(int status) { leave(left_at_once, status); }
[[noreturn]] SIMT_API void __wrap_abort() {
  const auto code = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - 1;
  if (end && program.contains(code)) end->code[end->codes++] = code - program.base;
  leave(called_abort, SIGABRT);
}

// What clocks are in a program, likewise.
SIMT_API int __wrap_clock_gettime(clockid_t clock, timespec* now) {
  const int failed = clock_gettime(clock, now);
  const long long offset = failed ? 0 : clock_jump(), ns = offset ? now->tv_nsec + offset : 0;
  if (offset) now->tv_sec += ns / 1'000'000'000, now->tv_nsec = ns % 1'000'000'000;
  return failed;
}
SIMT_API int __wrap_gettimeofday(timeval* now, void* zone) {
  const int failed = gettimeofday(now, zone);
  const long long us = failed ? 0 : now->tv_usec + clock_jump() / 1000;
  if (!failed) now->tv_sec += us / 1'000'000, now->tv_usec = us % 1'000'000;
  return failed;
}
SIMT_API time_t __wrap_time(time_t* into) {
  const time_t now = time(nullptr) + static_cast<time_t>(clock_jump() / 1'000'000'000);
  return into ? *into = now : now;
}
SIMT_API clock_t __wrap_clock() {
  return clock() + static_cast<clock_t>(clock_jump() / (1'000'000'000 / CLOCKS_PER_SEC));
}
SIMT_API std::chrono::steady_clock::time_point wrap_steady_clock() __asm__(
    "__wrap__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::steady_clock::time_point wrap_steady_clock() {
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(clock_jump());
}
SIMT_API std::chrono::system_clock::time_point wrap_system_clock() __asm__(
    "__wrap__ZNSt6chrono3_V212system_clock3nowEv");
std::chrono::system_clock::time_point wrap_system_clock() {
  return std::chrono::system_clock::now() + std::chrono::nanoseconds(clock_jump());
}

// Runs the program's global constructors, main and destructors, and flushes its output. May be called once.
SIMT_API void simt_run_program(const char* path, int argc, char** argv, End* into) {
  *into = End{};
  end = into;
  home = pthread_self();
  const char* const compared = std::getenv("SIMT_COMPARED");  // set by simt/checking/schedules.py
  {
    const ChangedOptions changed;
    changed->program = true;
    changed->sorted_print = compared != nullptr;
  }
  clocks_vary = compared && std::strcmp(compared, "other times") == 0;
  handle_signals();
  static void* handle = nullptr;
  if (sigsetjmp(way_out, 1) == 0) run_main(path, argc, argv, handle);
  if (end->how == crashed || end->how == called_abort) describe_crash();
  const bool orderly = end->how == returned || end->how == called_exit;
  if (orderly) {
    End kept = *end;
    if (sigsetjmp(way_out, 1) == 0) run_end(handle);
    if (end->how == crashed)
      describe_crash();
    else
      *end = kept;
  }
  // What is left of the kernels' output comes last, since nothing waited for it.
  end->left_over = flush_printed();
  if (orderly || end->how == threw) {
    std::cout.flush();
    std::clog.flush();
  }
  std::fflush(nullptr);
  end = nullptr;
}

// Returns what failed and was not handled: a kernel, a launch whose error was never queried (or any, if the program
// failed), a copy. As lines: reason, message, kernel, file, line, line of the kernel, then a module and an offset a
// line. Empty where nothing did. Valid until the next call.
SIMT_API const char* simt_take_failure(int program_failed) {
  static std::string text;
  text.clear();
  Fault fault;
  if (!finish_call(fault, program_failed != 0)) fault = refused;
  if (fault.reason.empty()) return "";
  text = fault.reason + "\n" + fault.message + "\n" + fault.kernel + "\n" + fault.file + "\n" +
         std::to_string(fault.line) + "\n" + std::to_string(fault.defined) + "\n";
  for (const auto& place : fault.code) text += place.module + "\n" + std::to_string(place.offset) + "\n";
  return text.c_str();
}

}  // extern "C"
