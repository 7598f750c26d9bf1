// Runs a program's code on a stack of its own.
#include "run/program_stack.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "run/fault.h"
#include "run/fiber.h"

namespace simt {
namespace {

constexpr std::size_t page = 4096;
// Where the stack is if that is free: far from device memory, so that its addresses are not taken for indices of arrays.
void* const far_away = reinterpret_cast<void*>(std::uintptr_t(1) << 45);

sem_t asked;
pthread_t main_thread;
pid_t process = 0;
ProgramStack stack{};
void* own_stack = nullptr;  // the thread's place on its own stack, while it is on the program's
char* left_at = nullptr;    // where the program's frames end, after leave_stack()
volatile bool on_stack = false;
void (*entered)();

std::size_t limit_of(decltype(RLIMIT_AS) what, std::size_t most) {
  rlimit limit{};
  getrlimit(what, &limit);
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, most));
}

// Maps the stack, as large as that of a process, with fences that an index of a local array seldom leaves.
bool map_stack() {
  constexpr std::size_t most = std::size_t(1) << 30;
  const std::size_t space = limit_of(RLIMIT_AS, ~std::size_t(0));
  const bool is_limited = space <= std::size_t(1) << 40;
  const std::size_t bytes = std::max(limit_of(RLIMIT_STACK, is_limited ? space / 16 : most), 16 * page) / page * page;
  const std::size_t fence = is_limited ? std::size_t(8) << 20 : most;
  void* const map =
      mmap(far_away, bytes + 2 * fence, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (map == MAP_FAILED) return false;
  stack.fenced_low = reinterpret_cast<std::uintptr_t>(map);
  stack.low = stack.fenced_low + fence;
  stack.top = stack.low + bytes;
  stack.fenced_top = stack.top + fence;
  return mprotect(reinterpret_cast<void*>(stack.low), bytes, PROT_READ | PROT_WRITE) == 0;
}

// Waits until it is asked. Its first malloc gives it a part of the heap for itself.
void* wait_for_call(void* help) {
  void* volatile first = std::malloc(1000);
  std::free(first);
  while (sem_wait(&asked) != 0) {}
  reinterpret_cast<void (*)()>(help)();
  park();
}

// Starts the helping thread, without which a damaged heap costs what the checks have found. The program's signals are not
// for it.
void start_helper(void (*help)()) {
  if (sem_init(&asked, 0, 0) != 0) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_t helper;
  if (pthread_create(&helper, nullptr, wait_for_call, reinterpret_cast<void*>(help)) == 0) pthread_detach(helper);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void enter() {
  entered();
  left_at = nullptr;
  void* nowhere;
  simt_switch(&nowhere, own_stack);
}

}  // namespace

bool prepare_stack(void (*help)()) {
  main_thread = pthread_self();
  process = getpid();
  use_alternate_stack();
  start_helper(help);
  return map_stack();
}

void call_on_stack(void (*entry)(), bool keep) {
  constexpr std::uintptr_t red_zone = 1024;
  const auto left = reinterpret_cast<std::uintptr_t>(left_at);
  const bool is_inside = keep && left > stack.low + 4 * page && left < stack.top;
  entered = entry;
  on_stack = true;
  simt_switch(&own_stack, new_stack_pointer(reinterpret_cast<void*>(is_inside ? left - red_zone : stack.top), enter));
  on_stack = false;
}

void leave_stack() {
  left_at = static_cast<char*>(__builtin_frame_address(0));
  void* nowhere;
  simt_switch(&nowhere, own_stack);
  __builtin_unreachable();
}

void ask_for_help() { sem_post(&asked); }

void park() {
  for (;;) pause();
}

bool is_on_stack() { return on_stack; }
bool is_main_thread() { return process && pthread_equal(pthread_self(), main_thread); }
bool is_forked() { return process && getpid() != process; }
const ProgramStack& program_stack() { return stack; }

}  // namespace simt
