// Lets device functions of these headers report their own accesses in a checked or counted build. Empty in a plain
// build.
#pragma once

namespace simt {

// What an atomic operation does. first_8, first_16: a load by these lanes of the warp, for which all of them give an
// address.
enum class Atomic { add, sub, min, max, inc, dec, and_, or_, xor_, exchange, compare, load, store, first_8, first_16 };

// How far a fence reaches.
enum class Scope { block, device, system };

}  // namespace simt

// SIMT_NO_PROBES     a function whose own accesses and branches are not the kernel's.
// SIMT_OWN_PROBES    begins the declaration of a function that reports its access itself, by the two below. A probed
//                    build calls it from the student's line, which its return address gives.
// SIMT_APART         the same for a function that has nothing to report: it is called, never inlined.
// SIMT_COUNTED       begins the declaration of a function that a GPU has as one instruction or a few: a counted build
//                    knows its calls by its name (simt/toolchain/disassembly).
// SIMT_CALLED        begins the declaration of a function whose accesses, in a checked build, are those of the line that
//                    calls it. Its body begins with SIMT_CALL.
// SIMT_PROBE_ATOMIC  precedes the operation in such a function.
// SIMT_PROBE_FENCE   belongs in one that orders the thread's accesses before it and after it.
#ifdef SIMT_PROBED

// The mode's own probe functions (src/*/probe_*.cpp) are linked into every extension.
extern "C" {
__attribute__((visibility("hidden"))) void simt_probe_atomic(const void* address, unsigned bytes, int kind,
                                                             const void* code);
__attribute__((visibility("hidden"))) void simt_probe_fence(int scope);
}

namespace simt {
inline __attribute__((always_inline)) void probe_atomic(const volatile void* address, unsigned bytes, Atomic kind,
                                                        const void* code) {
  simt_probe_atomic((const void*)address, bytes, (int)kind, code);
}
inline __attribute__((always_inline)) void probe_fence(Scope scope) { simt_probe_fence((int)scope); }
}  // namespace simt

#ifdef __clang__
#define SIMT_NO_PROBES __attribute__((no_sanitize("thread"), no_sanitize("undefined"), no_sanitize("coverage")))
#define SIMT_APART SIMT_NO_PROBES __attribute__((noinline))
#else
#define SIMT_NO_PROBES __attribute__((no_sanitize("thread"), no_sanitize("undefined"), no_sanitize_coverage))
#define SIMT_APART SIMT_NO_PROBES __attribute__((noinline, noipa))
#endif
#define SIMT_OWN_PROBES SIMT_APART inline
#define SIMT_PROBE_ATOMIC(address, bytes, kind) ::simt::probe_atomic(address, bytes, kind, __builtin_return_address(0))
#define SIMT_PROBE_FENCE(scope) ::simt::probe_fence(scope)

#else

#define SIMT_NO_PROBES
#define SIMT_OWN_PROBES inline __attribute__((always_inline))
#define SIMT_APART __attribute__((noinline))
#define SIMT_PROBE_ATOMIC(address, bytes, kind) ((void)0)
#define SIMT_PROBE_FENCE(scope) ((void)0)

#endif

#ifdef SIMT_CHECK
namespace simt {
// Where the kernel has called the function of these headers that accesses memory now.
extern __thread __attribute__((tls_model("initial-exec"), visibility("default"))) const void* called_from;
struct Called {
  const bool outermost;
  SIMT_NO_PROBES explicit Called(const void* code) : outermost(!called_from) {
    if (outermost) called_from = code;
  }
  SIMT_NO_PROBES ~Called() {
    if (outermost) called_from = nullptr;
  }
  Called(const Called&) = delete;
};
}  // namespace simt
#define SIMT_CALLED SIMT_APART
#define SIMT_CALL const ::simt::Called called(__builtin_return_address(0))
#else
#define SIMT_CALLED
#define SIMT_CALL ((void)0)
#endif

#ifdef SIMT_COUNT
#define SIMT_COUNTED SIMT_OWN_PROBES
#define SIMT_COUNTED_APART SIMT_OWN_PROBES
#else
#define SIMT_COUNTED inline __attribute__((always_inline))
#define SIMT_COUNTED_APART inline
#endif
