// Runs a program with its own main inside this process until it returns, calls exit or abort, or crashes.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <typeinfo>

#include <cxxabi.h>
#include <unwind.h>

#include "check/checker.h"
#include "process/clocks.h"
#include "run/fault.h"
#include "run/instruction.h"
#include "run/memory.h"
#include "run/module.h"
#include "run/options.h"
#include "run/program_stack.h"
#include "run/worker.h"

extern "C" const char* simt_take_findings();  // query.cpp

namespace simt {
namespace {

enum Crash : int { bad_address, null_pointer, no_stack, past_stack, wild_jump };
enum How : int { returned, called_exit, left_at_once, called_abort, crashed, threw, not_loaded, not_started };

constexpr int most_codes = 16;

// How the program ended; read by simt/runtime/programs.py.
struct End {
  int how;
  int status;               // of main or exit; the signal of a crash
  int left_over;            // kernels had printed what the program never waited for
  int reported;                 // the checks have a finding of the crash
  int codes;
  int crash;                // a Crash, and
  unsigned long long address;    // what was touched,
  unsigned long long code[most_codes];   // offsets in the program, the innermost first
  char text[480];           // of a crash or an exception, or why the program could not be loaded
};

// What runs: simt_run_program()'s arguments.
struct Call {
  const char* path;
  int argc;
  char** argv;
  void* handle;  // of the loaded program
};

enum Phase : int { before_start, running, ending, ended };

End* end = nullptr;
Call call{};
std::atomic<int> phase{before_start};  // ending: the first thread to end the program or to crash has set it
Mode mode = Mode::plain;  // of the program: Python changes the options when it has ended
thread_local bool is_programs_thread = false;  // the program has started it
volatile bool in_other_thread = false;  // the crash

// The command that reports a crash which this process cannot report (simt/checking/last_words.py): the first words as
// Python gives them, then the message, the exit status, a file with what the checks have found (0: none) and the places
// in the program. A signal handler adds these, so all have their room.
constexpr int most_words = 64, most_numbers = most_codes + 2;
constexpr int first_label = 3;
struct LastWords {
  char texts[16384];
  char numbers[most_numbers][24];
  const char* words[most_words + most_numbers + 2];  // from first_label on the names of the sources
  int count;
} last_words{};

Module program{};
std::mutex shared_by_threads;  // of the program; guards the next two
Fault refused;  // the first copy that was refused
std::map<std::uintptr_t, std::size_t> symbols;  // __device__ variables whose address the host has got
struct sigaction runtimes[NSIG];

constexpr int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

bool is_crash(const End& end) { return end.how == crashed || end.how == called_abort; }

// Returns whether the calling thread is the one that ends the program, which only one can.
bool begin_end() {
  int expected = running;
  return phase.compare_exchange_strong(expected, ending);
}

void add_code(std::uintptr_t code) {
  if (program.contains(code) && end->codes < most_codes) end->code[end->codes++] = code - program.base;
}

void set_alarm(int milliseconds) {
  const itimerval timer{{0, 0}, {milliseconds / 1000, milliseconds % 1000 * 1000}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

[[noreturn]] void give_up(int number, int found = 0);

// Gives up on a thread whose memory is of a part of the heap for itself, with what the checks have found.
void help() {
  int file = 0;
  if (mode == Mode::check) {
    const std::string found = simt_take_findings();  // may wait for a lock; then the next alarm gives up
    file = memfd_create("findings", 0);
    if (file < 0 || write(file, found.data(), found.size()) < 0 || lseek(file, 0, SEEK_SET) < 0) file = 0;
  }
  give_up(end->status, file);
}

void on_late_alarm(int) { give_up(end->status); }

// Has help() report a crash. If that thread cannot either, its findings are lost.
void ask_to_report() {
  signal(SIGALRM, on_late_alarm);
  set_alarm(5000);
  ask_for_help();
}

// A thread that the machine has only left no time for runs on between two alarms; one that waits for a lock does not.
void on_alarm(int) {
  static volatile int times = 0;
  if (times == 3) return ask_to_report();
  times = times + 1;
  set_alarm(250);
}

// Makes sure that this thread can report a crash: malloc, which ends the process for damage that it finds, keeps its part
// of the heap locked then. That may be this thread's part; and the runtime may have called it with locks of its own.
void expect_report() {
  ChangedOptions()->crashed = true;
  signal(SIGALRM, on_alarm);
  set_alarm(250);
  constexpr std::size_t beyond_caches = 100'000;
  void* volatile tried = std::malloc(beyond_caches);
  std::free(tried);
  now();
  next_moment();
  set_alarm(10'000);
}

// Reports a crash of another thread than main's, which goes on meanwhile.
[[noreturn]] void report_apart() {
  ChangedOptions()->crashed = true;
  in_other_thread = true;
  ask_to_report();
  park();
}

// Ends the program from wherever it is, as exit does: no function that was called is returned to. code: of an abort().
[[noreturn]] void leave(How how, int status, std::uintptr_t code = 0) {
  if (!end || is_forked()) {
    if (how != left_at_once) std::fflush(nullptr);
    _exit(how == called_abort ? 128 + SIGABRT : status);
  }
  if (is_main_thread() ? !is_on_stack() : how != called_abort) {  // nothing can be reported any more
    std::fflush(nullptr);
    _exit(status);
  }
  if (!begin_end()) park();
  end->how = how;
  end->status = status;
  add_code(code);
  if (!is_main_thread()) report_apart();
  leave_stack();
}

void keep_last_words(const char* const* words) {
  std::size_t used = 0;
  for (; *words && last_words.count < most_words; ++words) {
    const std::size_t bytes = std::strlen(*words) + 1;
    if (used + bytes > sizeof last_words.texts) break;
    char* const at = last_words.texts + used;
    last_words.words[last_words.count++] = static_cast<const char*>(std::memcpy(at, *words, bytes));
    used += bytes;
  }
}

void add_last_word(int index, unsigned long long number) {
  char* at = last_words.numbers[index] + sizeof last_words.numbers[index] - 1;
  do *--at = static_cast<char>('0' + number % 10);
  while (number /= 10);
  last_words.words[last_words.count++] = at;
}

// Returns the message about a crash, without the full stop. may_lock: whether to ask of what memory it is.
const char* describe_crash(bool may_lock) {
  if (end->how == called_abort) return "The program called abort()";
  if (end->status == SIGABRT) return "The program was aborted";
  if (end->status == SIGFPE) return "The program crashed outside of kernels: it divides an integer by zero";
  if (end->status == SIGILL)
    return "The program crashed outside of kernels: it executed an illegal instruction or a trap";
  if (may_lock && closed_to_host(end->address))
    return "Host code accesses device memory, which only kernels and cudaMemcpy can access";
  if (may_lock && is_read_by_free(end->address))
    return "Host code frees device memory with free() or delete. Free it with cudaFree";
  switch (end->crash) {
    case no_stack:
      return "The program ran out of stack outside of kernels: its recursion does not end, or a local array is too "
             "large";
    case past_stack:
      return "The program crashed outside of kernels: it reads or writes past the end of its stack. Check the indices "
             "of its local arrays";
    case wild_jump:
      return "The program crashed outside of kernels: it jumps to an address that is not one of its functions. A "
             "function pointer was never set, or a local array was written out of bounds";
    case null_pointer: return "The program crashed outside of kernels: it reads or writes through a null pointer";
    default:
      return "The program crashed outside of kernels: it reads or writes at an address where nothing is allocated";
  }
}

constexpr char damaged_text[] =
    "The program crashed outside of kernels: it has damaged the memory of the process. Check what its host code writes "
    "and frees: an index out of bounds, a pointer that was never set, or memory that is freed twice";

// Replaces the process by one that reports the crash: Python's own memory may be damaged, or locked for ever. found: the
// descriptor of a file with what the checks have found, or 0.
void give_up(int number, int found) {
  set_alarm(0);
  if (end->how == crashed || end->how == called_abort) number = end->status;
  const int status = mode == Mode::plain ? 128 + number : 1;
  last_words.words[last_words.count++] = in_other_thread ? describe_crash(false) : damaged_text;
  add_last_word(0, static_cast<unsigned>(status));
  add_last_word(1, static_cast<unsigned>(found));
  for (int i = 0; i < end->codes && i < most_codes; ++i) add_last_word(i + 2, end->code[i]);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  execv(last_words.words[0], const_cast<char**>(last_words.words));
  if (write(STDERR_FILENO, damaged_text, sizeof damaged_text - 1) < 0) _exit(status);
  _exit(status);
}

// Returns whether an instruction that caused a fault is a return, or a call or jump through a pointer.
bool is_jump([[maybe_unused]] std::uintptr_t instruction) {
#if defined(__x86_64__)
  const auto* at = reinterpret_cast<const std::uint8_t*>(instruction);
  while (*at == 0xf2 || *at == 0xf3 || *at == 0x3e || (*at & 0xf0) == 0x40) ++at;
  const unsigned part = at[1] >> 3 & 7;
  return *at == 0xc2 || *at == 0xc3 || (*at == 0xff && part >= 2 && part <= 5);
#else
  return false;  // the fault is at the address that it leads to
#endif
}

_Unwind_Reason_Code add_frame(_Unwind_Context* frame, void*) {
  int is_exact = 0;
  const std::uintptr_t code = _Unwind_GetIPInfo(frame, &is_exact);
  add_code(is_exact ? code : code - 1);
  return end->codes < most_codes ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void describe(End& end, int number, const siginfo_t* info, const ucontext_t* context) {
  end.how = crashed;
  end.status = number;
#if defined(__x86_64__)
  const std::uintptr_t instruction = context->uc_mcontext.gregs[REG_RIP], stack = context->uc_mcontext.gregs[REG_RSP];
#else
  const std::uintptr_t instruction = context->uc_mcontext.pc, stack = context->uc_mcontext.sp;
#endif
  add_code(instruction);
  const bool of_memory = number == SIGSEGV || number == SIGBUS;
  const Touched at = of_memory ? touched(info, context) : Touched{};
  const std::uintptr_t address = end.address = at.address;
  const ProgramStack& own = program_stack();
  const bool is_near =
      number == SIGSEGV && address < stack + 4096 && address + (1 << 20) > stack && at.known && info->si_code > 0;
  const bool is_past = at.known && address >= own.top && address < own.fenced_top;
  const bool is_below = at.known && address >= own.fenced_low && address < own.low;
  const bool is_wild = of_memory && (at.known ? address == instruction : is_jump(instruction));
  end.crash = is_past                       ? past_stack
              : is_near || is_below         ? no_stack
              : is_wild                     ? wild_jump
              : at.known && address < 65536 ? null_pointer
                                            : bad_address;
  if (end.crash == no_stack) return;
  // The functions that lead there, for a crash inside a library that the program called.
  _Unwind_Backtrace(add_frame, nullptr);
  if (end.codes > 0) return;
  // Where that does not find them: what may be return addresses on the stack.
  constexpr std::uintptr_t most_above = 4096, most_below = 4096;
  const bool is_own = stack >= own.low && stack < own.top;
  const std::uintptr_t first = (stack + 7) & ~std::uintptr_t(7),
                       last = is_own ? std::min(first + most_above, own.top) : first + most_above;
  for (std::uintptr_t at = first; at < last && end.codes < most_codes; at += 8)
    add_code(*reinterpret_cast<const std::uintptr_t*>(at) - 1);
  // Where a function has overwritten its return address, the calls that it made have left theirs below.
  if (end.crash != wild_jump || end.codes > 0 || !is_own) return;
  for (std::uintptr_t at = first - 8; at > std::max(first - most_below, own.low) && end.codes < most_codes; at -= 8)
    add_code(*reinterpret_cast<const std::uintptr_t*>(at) - 1);
}

void on_crash(int number, siginfo_t* info, void* raw) {
  if (this_worker && this_worker->in_kernel) return runtimes[number].sa_sigaction(number, info, raw);
  if (is_forked()) {  // as without simt
    signal(number, SIG_DFL);
    return;
  }
  if (phase == ended) {
    if (is_programs_thread) park();  // its memory may have been freed
    give_up(number);
  }
  const bool is_first = begin_end();
  static pthread_t crashing;
  if (is_first) {
    crashing = pthread_self();
    describe(*end, number, info, static_cast<const ucontext_t*>(raw));
  }
  // Where it is not the first crash: it came of describing that one, or of reporting it or the program's end.
  if (is_main_thread()) {
    if (is_on_stack()) leave_stack();
    give_up(number);
  }
  if (!is_first && !pthread_equal(pthread_self(), crashing)) park();
  report_apart();
}

void on_interrupt(int) { _exit(128 + SIGINT); }

void handle_signals() {
  install_handlers();
  struct sigaction action{};
  sigemptyset(&action.sa_mask);
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int number : crashes) sigaction(number, &action, &runtimes[number]);
  signal(SIGINT, on_interrupt);
}

// Returns what is wrong with one side of a copy, or an empty string. name: of this side, for the message. object: the bytes
// to the end of a variable of the host, as far as the compiler knows.
std::string problem(const void* pointer, const std::string& name, bool device, std::size_t bytes, std::size_t object) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  Place place = place_of(address);
  std::lock_guard lock(shared_by_threads);
  for (const auto& [base, size] : symbols)
    if (address >= base && address < base + size) place = {true, false, base, size};
  const bool inside = place.found && address >= place.base && address < place.base + place.bytes;
  const std::size_t left = place.base + place.bytes - address;
  if (inside && !place.freed)
    return bytes > left ? "its " + name + " has only " + std::to_string(left) + " bytes left" : "";
  if (!device) {
    const std::size_t room = std::min(object, left_on_heap(pointer));
    return bytes > room ? "its " + name + ", in host memory, has only " + std::to_string(room) + " bytes left" : "";
  }
  if (inside) return "its " + name + " was already freed";
  if (program.contains(address))
    return "its " + name +
           " is a variable of the program, not device memory (use cudaMemcpyToSymbol or cudaMemcpyFromSymbol for a "
           "__device__ or __constant__ variable)";
  return "its " + name + " is not device memory";
}

// Writes the message about a crash, and adds it to the findings if checks are on.
void report_crash() {
  expect_report();
  Fault fault;
  fault.message = describe_crash(end->how == crashed);
  std::snprintf(end->text, sizeof end->text, "%s", fault.message.c_str());
  if (options().mode != Mode::check || end->status == SIGABRT) return;
  fault.reason = end->status == SIGFPE    ? "division_by_zero"
                 : end->crash == no_stack ? "stack_overflow"
                                          : "illegal_address";
  fault.message += ".";
  fault.file = last_words.words[first_label];
  for (int i = 0; i < end->codes; ++i) fault.code.push_back({program.path, static_cast<std::uintptr_t>(end->code[i])});
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
void run_main() {
  call.handle = dlopen(call.path, RTLD_NOW | RTLD_LOCAL);
  if (!call.handle) {
    end->how = not_loaded;
    std::snprintf(end->text, sizeof end->text, "%s", dlerror());
    phase = ending;
    return;
  }
  const auto main = symbol<int (*const*)(int, char**, char**)>(call.handle, "simt_main");
  register_module(reinterpret_cast<const void*>(main), symbol<const char*>(call.handle, "simt_kernel_names"),
                  symbol<const char*>(call.handle, "simt_shared_names"),
                  symbol<const char*>(call.handle, "simt_kernel_heads"));
  try {
    const int status = (*main)(call.argc, call.argv, environ);
    if (!begin_end()) park();
    end->status = status;
    end->how = returned;
  } catch (...) {
    if (!begin_end()) park();
    describe_exception();
    end->how = threw;
  }
}

// Runs atexit's functions and the destructors of global objects, which may call exit again.
void run_end() {
  if (auto finish = symbol<void (*)()>(call.handle, "simt_finish")) finish();
  if (!begin_end()) park();
}

// Runs the program, and returns whether it has ended in order. In a process that the program has forked it ends that.
bool run_whole() {
  call_on_stack(run_main, false);
  const bool orderly = end->how == returned || end->how == called_exit;
  if (orderly) {
    const End kept = *end;
    phase = running;
    call_on_stack(run_end, end->how == called_exit);
    if (!is_crash(*end)) *end = kept;
  }
  if (is_forked()) {
    std::cout.flush();
    std::clog.flush();
    std::fflush(nullptr);
    _exit(end->how == threw ? 128 + SIGABRT : end->status & 0xff);
  }
  return orderly;
}

// Address space that is free again when the program has ended, if it has used up all that a limit (ulimit -v) leaves; and
// mappings, of which a process can have 65,530.
class Reserve {
 public:
  Reserve() {
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    if (limit.rlim_cur != RLIM_INFINITY)
      bytes_ += static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur / 16, 256 << 20));
    map_ = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map_ == MAP_FAILED) return;
    for (std::size_t at = 0; at < mapped_apart; at += 2 * page)
      mprotect(static_cast<char*>(map_) + at, page, PROT_READ);
  }
  ~Reserve() {
    if (map_ != MAP_FAILED) munmap(map_, bytes_);
  }
  Reserve(const Reserve&) = delete;

 private:
  static constexpr std::size_t page = 4096, mapped_apart = 256 * page;
  void* map_ = MAP_FAILED;
  std::size_t bytes_ = mapped_apart;
};

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
                             bool source_device, std::size_t bytes, std::size_t target_object,
                             std::size_t source_object, std::size_t source_bytes) {
  if (!options().program) return nullptr;
  std::string text = problem(target, source ? "target" : "memory", target_device, bytes, target_object);
  if (text.empty() && source) {
    if (source_bytes) bytes = source_bytes;
    text = problem(source, "source", source_device, bytes, source_object);
  }
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

// Called before the constructors of the program's global objects, which may crash. main: the program's simt_main.
SIMT_API void simt_note_program(const void* main) { find_library(main, program); }

// What exit, abort and their kin are in a program (simt/runtime/programs.py links it so).
[[noreturn]] SIMT_API void __wrap_exit(int status) { leave(called_exit, status); }
[[noreturn]] SIMT_API void __wrap__exit(int status) { leave(left_at_once, status); }
[[noreturn]] SIMT_API void __wrap__Exit(int status) { leave(left_at_once, status); }
[[noreturn]] SIMT_API void __wrap_quick_exit(int status) { leave(left_at_once, status); }
[[noreturn]] SIMT_API void __wrap_abort() {
  leave(called_abort, SIGABRT, reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - 1);
}

// What starts threads is in a program, likewise.
SIMT_API int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                                   void* about) {
  struct Start {
    void* (*run)(void*);
    void* about;
  };
  auto* const start = new Start{run, about};
  const auto run_with_stack = [](void* given) {
    const Start own = *static_cast<Start*>(given);
    delete static_cast<Start*>(given);
    const AlternateStack alternate;
    is_programs_thread = true;
    return own.run(own.about);
  };
  const int failed = pthread_create(thread, attributes, run_with_stack, start);
  if (failed) delete start;
  return failed;
}
#ifdef __GLIBCXX__
// std::thread::_State as libstdc++ lays it out, all versions alike; from GCC 13 on the class itself is private.
struct ThreadBody {
  virtual ~ThreadBody() = default;
  virtual void run() = 0;
};
using ThreadState = std::unique_ptr<ThreadBody>;
void start_thread(std::thread*, ThreadState, void (*)()) __asm__(
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE");
SIMT_API void wrap_start_thread(std::thread* thread, ThreadState state, void (*depends)()) __asm__(
    "__wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE");
void wrap_start_thread(std::thread* thread, ThreadState state, void (*depends)()) {
  struct WithStack final : ThreadBody {
    explicit WithStack(ThreadState given) : inner(std::move(given)) {}
    void run() override {
      const AlternateStack alternate;
      is_programs_thread = true;
      inner->run();
    }
    ThreadState inner;
  };
  start_thread(thread, std::make_unique<WithStack>(std::move(state)), depends);
}
#endif

// Runs the program's global constructors, main and destructors, and flushes its output. May be called once. reporter:
// the first words of a command; see LastWords.
SIMT_API void simt_run_program(const char* path, const char* const* reporter, int argc, char** argv, End* into) {
  static End kept{};  // a signal handler may need it when the caller has gone on
  end = &kept;
  call = {path, argc, argv, nullptr};
  keep_last_words(reporter);
  const char* const compared = std::getenv("SIMT_COMPARED");  // set by simt/checking/schedules.py
  {
    const ChangedOptions changed;
    changed->program = true;
    changed->sorted_print = compared != nullptr;
  }
  mode = options().mode;
  vary_clocks(compared && std::strcmp(compared, "other times") == 0);
  handle_signals();
  bool orderly = false;
  {
    const Reserve reserve;
    if (prepare_stack(help)) {
      phase = running;
      orderly = run_whole();
    } else {
      end->how = not_started;
    }
  }
  if (is_crash(*end))
    report_crash();
  else
    set_alarm(0);  // of the program
  // What is left of the kernels' output comes last, since nothing waited for it.
  end->left_over = flush_printed();
  if (orderly || end->how == threw) {
    std::cout.flush();
    std::clog.flush();
  }
  std::fflush(nullptr);
  phase = ended;
  *into = *end;
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
