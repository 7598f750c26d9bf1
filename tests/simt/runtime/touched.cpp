// Accesses that fault, and what src/run/instruction.cpp makes of each: the name, the signal, "read" or "write", and whether it was the address.
#include <setjmp.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "run/instruction.h"

static sigjmp_buf back;
static simt::Touched seen;

static void on_signal(int number, siginfo_t* info, void* context) {
  seen = simt::touched(info, static_cast<ucontext_t*>(context));
  siglongjmp(back, number);
}

template <class T> __attribute__((noinline)) void store(T* p, long i, T v) { p[i] = v; }
template <class T> __attribute__((noinline)) T load(T* p, long i) { return p[i]; }
template <class T> __attribute__((noinline)) void raise_by(T* p, long i) { p[i] += 3; }
template <class T> __attribute__((noinline)) void atomic(T* p, long i) { __atomic_fetch_add(p + i, 3, __ATOMIC_SEQ_CST); }
struct alignas(16) Four { float x, y, z, w; };

static char memory[65536] __attribute__((aligned(64)));
static volatile long kept;

// parts: how many 8-byte halves the access may have been compiled to, in any order.
template <class F>
void look(const char* name, const void* expected, F access, std::uintptr_t parts = 1) {
  seen = {};
  const int number = sigsetjmp(back, 1);
  if (number == 0) access();
  const auto address = reinterpret_cast<std::uintptr_t>(expected);
  std::printf("%s %d %s %s\n", name, number, !seen.known ? "unknown" : seen.write ? "write" : "read", (seen.address - address) % 8 == 0 && (seen.address - address) / 8 < parts ? "there" : "elsewhere");
}

int main() {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  for (int number : {SIGSEGV, SIGBUS}) sigaction(number, &action, nullptr);
  volatile long far = 1L << 47;      // behind the last address of a program
  const long f = far;
  char* there = memory + f;
  auto each = [&](auto one, const char* type) {
    using T = decltype(one);
    char name[64];
    auto* p = reinterpret_cast<T*>(memory);
    const long i = f / static_cast<long>(sizeof(T));
    std::snprintf(name, sizeof name, "store-%s", type);
    look(name, there, [&] { store<T>(p, i, T{}); });
    std::snprintf(name, sizeof name, "load-%s", type);
    look(name, there, [&] { T v = load<T>(p, i); std::memcpy((void*)&kept, &v, sizeof v < 8 ? sizeof v : 8); }, (sizeof(T) + 7) / 8);
  };
  each(1.f, "float");
  each(1., "double");
  each(char(1), "char");
  each(short(1), "short");
  each(1, "int");
  each(1L, "long");
  each(Four{}, "float4");
  look("store-atomic", there, [&] { atomic(reinterpret_cast<int*>(memory), f / 4); });
  look("store-null", nullptr, [&] { store<float>(nullptr, f - far, 1.f); });
  look("load-null", nullptr, [&] { kept = load<int>(nullptr, f - far); });
#if defined(__x86_64__)
  look("store-add-int", there, [&] { raise_by(reinterpret_cast<int*>(memory), f / 4); });
  look("store-rbp", there, [&] { asm volatile("push %%rbp; mov %0, %%rbp; movl $1, (%%rbp); pop %%rbp" ::"r"(there) : "memory"); });
  look("store-index", there, [&] { asm volatile("mov %0, %%r13; movss %%xmm9, -8(%%r13,%1,2)" ::"r"(memory), "r"(f / 2 + 4) : "r13", "memory"); });
  look("store-unaligned", memory + 4, [&] { asm volatile("movaps %%xmm0, 4(%0)" ::"r"(memory) : "memory"); });
  look("load-unaligned", memory + 20, [&] { asm volatile("addps 4(%0,%1,4), %%xmm0" ::"r"(memory), "r"(4L) : "xmm0"); });
  look("store-copy", there, [&] { asm volatile("rep movsb" ::"S"(memory), "D"(there), "c"(8) : "memory"); });
  look("load-copy", there, [&] { asm volatile("rep movsb" ::"S"(there), "D"(memory), "c"(8) : "memory"); });
#endif
}
