// The part of the runtime that compiled kernels and the device headers use: launches, barriers, warp exchanges, faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <simt/probe.h>
#ifdef SIMT_COUNT
#include <simt/recorder.h>
#endif
#include <simt/types.h>

#ifndef SIMT_API
#define SIMT_API __attribute__((visibility("default")))
#endif
#define SIMT_INLINE inline __attribute__((always_inline))

typedef struct CUstream_st* cudaStream_t;

namespace simt {

// Poison, the bit patterns of memory that was never written: NaN as float32, with a payload that says which memory it
// was. Each half is a NaN as well, for float16 and bfloat16.
inline constexpr std::uint32_t global_poison = 0x7FC67FC6u;
inline constexpr std::uint32_t shared_poison = 0x7FC57FC5u;
inline constexpr std::uint32_t local_poison = 0x7FC47FC4u;  // of a local variable, in a checked build

// Where a launch is in the student's source. `parameters` lists the kernel's parameter names, comma separated.
struct Site {
  const char* kernel;
  const char* file;
  int line;
  const char* parameters;
  int defined;  // line of the kernel's own definition
  int max_threads;  // from __launch_bounds__, 0 if there is none
  bool is_library = false;  // a function of cub or thrust for the whole device (device_call.h)
};

struct Config {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
};

SIMT_INLINE Config config(dim3 grid, dim3 block, std::size_t shared = 0, cudaStream_t stream = nullptr) {
  return {grid, block, shared, stream};
}

// Which thread of the current block starts next. The thread loop below is compiled into the student's
// module, so that a kernel without barriers becomes an ordinary loop.
struct Cursor {
  unsigned next, count;  // position in the starting order, threads in the block
  unsigned current;  // linear index of the running thread
  const unsigned* order;  // starting order, or null for 0, 1, 2, …
  const uint3* places;  // threadIdx of each thread
  unsigned waiting;  // how many threads of the block wait at something
  unsigned waited;  // not 0 once any thread of the block has waited
  unsigned flat;  // not 0 in a one-dimensional block that starts in the natural order
};
extern __thread __attribute__((tls_model("initial-exec"), visibility("default"))) Cursor cursor;

SIMT_API void thread_ended(unsigned linear);  // in a block where some have waited

// One pointer argument of a launch, kept to name tensors in a fault.
struct Argument {
  const void* pointer;  // null for an argument that is no pointer
  std::size_t element;  // bytes of what it points to
  const bool* padding = nullptr;  // of each of these bytes: whether it is padding; null if none is, or it is not known
  bool scalar = false;  // what it points to is one number, of which no part is padding or may be left unused
};

struct Launch {
  Site site;
  Config config;
  void (*threads)(void*);  // runs threads until none is left to start
  void* body;
  const void* function;  // the kernel's address where it is known, else null
  const Argument* arguments;
  unsigned argument_count;
  bool cooperative;
};

// Each returns the CUDA error that a launch answers, 0 if there is none; that of its kernel comes later. The second only
// tells whether the launch is possible.
SIMT_API int run(const Launch& launch);
SIMT_API int try_launch(const Launch& launch);

// See simt/frontend/whole_values.py.
template <class T>
SIMT_INLINE std::remove_cvref_t<T> whole(std::remove_cvref_t<T> value) {
  return value;
}

// See simt/frontend/returned_values.py.
template <class T>
SIMT_INLINE T returned(T value) {
  return value;
}

#if defined(SIMT_CHECK) && defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define SIMT_KNOWS_PADDING
#endif
#endif

// Whether the type ends with an array without a length (simt/frontend/flexible_arrays.py).
template <class T>
concept Flexible = requires { T::simt_flexible; };

// Returns Argument::padding for pointers to a type.
template <class T>
const bool* padding_of() {
#ifdef SIMT_KNOWS_PADDING
  if constexpr (std::is_class_v<T> && std::is_trivially_copyable_v<T> && !Flexible<T> && sizeof(T) <= 1024) {
    static bool is_padding[sizeof(T)];
    static const bool any = [] {
      alignas(T) unsigned char bytes[sizeof(T)];
      bool found = false;
      for (unsigned char& byte : bytes) byte = 1;
      __builtin_clear_padding((T*)bytes);
      for (std::size_t i = 0; i < sizeof(T); ++i) found |= is_padding[i] = bytes[i] == 0;
      return found;
    }();
    return any ? is_padding : nullptr;
  }
#endif
  return nullptr;
}

// See simt/frontend/hidden_casts.py. `(T*)p` becomes `(T*)(Hidden)p`, which converts whatever a cast to a pointer does.
struct Hidden {
  const volatile void* pointer;
  template <class S>
  SIMT_INLINE explicit Hidden(S&& value) : pointer((const volatile void*)value) {
    __asm__("" : "+r"(pointer));
  }
  template <class T>
  SIMT_INLINE operator T*() const {
    return (T*)pointer;
  }
};
template <class T, class S>
SIMT_INLINE T hidden_cast(S&& value) {
  T pointer = reinterpret_cast<T>(value);
  __asm__("" : "+r"(pointer));
  return pointer;
}

template <class T>
SIMT_INLINE Argument argument_of(const T&) {
  return {nullptr, 0};
}
template <class T>
SIMT_INLINE Argument argument_of(T* const& pointer) {
  return {(const void*)pointer, sizeof(T), padding_of<std::remove_cv_t<T>>(), std::is_arithmetic_v<T>};
}
SIMT_INLINE Argument argument_of(void* const& pointer) { return {pointer, 1}; }
SIMT_INLINE Argument argument_of(const void* const& pointer) { return {pointer, 1}; }

// Whether C++ passes an object of class T by its address, because a constructor that copies or moves it, or its
// destructor, has code. CUDA runs this code on the host only: a kernel gets the bytes of the host's copy.
template <class T>
constexpr bool is_passed_by_address() {
  if constexpr (!std::is_class_v<T> && !std::is_union_v<T>) {
    return false;
  } else {
    constexpr bool copied = std::is_copy_constructible_v<T>, moved = std::is_move_constructible_v<T>;
    return !std::is_trivially_destructible_v<T> || !(copied || moved) ||
           (copied && !std::is_trivially_copy_constructible_v<T>) ||
           (moved && !std::is_trivially_move_constructible_v<T>);
  }
}

// The bytes of such an object. Copying them runs none of its code.
template <class T>
struct Bits {
  alignas(T) unsigned char bytes[sizeof(T)];
  SIMT_NO_PROBES explicit Bits(const T& object) {
    __builtin_memcpy(bytes, (const void*)__builtin_addressof(object), sizeof bytes);
  }
};
template <class T>
using Kept = std::conditional_t<is_passed_by_address<T>(), Bits<T>, T>;
template <class T>
using Passed = std::conditional_t<is_passed_by_address<T>(), T&, T>;
template <class... P>
inline constexpr bool has_bits = (is_passed_by_address<P>() || ...);

// A kernel of which a parameter is such an object. Each thread calls it with the address of its own copy of the bytes.
template <class... P>
struct BitsCall {
  void (*kernel)(P...);
  SIMT_APART void operator()(Kept<P>... copies) const {
    auto* call = (void (*)(Passed<P>...))kernel;
    __asm__("" : "+r"(call));  // the compiler must not see that the type is another one
    call(reinterpret_cast<Passed<P>&&>(copies)...);
  }
};
template <class... P>
auto call_of(void (*kernel)(P...)) {
  if constexpr (has_bits<P...>)
    return BitsCall<P...>{kernel};
  else
    return kernel;
}
template <class F>
inline constexpr bool is_bits_call = false;
template <class... P>
inline constexpr bool is_bits_call<BitsCall<P...>> = true;

template <class F, class... P>
struct Body {
  F& call;
  std::tuple<P...>& values;

#ifdef SIMT_PROBED
  // Outside the loop: the kernel sees a thread's own variables (threadIdx) as constants.
  static __attribute__((noinline)) void one(Body& body) { std::apply(body.call, body.values); }
#else
  static SIMT_INLINE void one(Body& body) { std::apply(body.call, body.values); }
#endif

  SIMT_NO_PROBES static void threads(void* self) {
    Body& body = *static_cast<Body*>(self);
    Cursor& at = cursor;
    const uint3* const places = at.places;
    const unsigned* const order = at.order;
    const unsigned count = at.count;
    const bool flat = at.flat;
    // `next` stays in a register while no thread waits: only a thread that waits lets others start.
    for (unsigned next = at.next; next < count;) {
      unsigned linear = next;
      if (__builtin_expect(flat, 1)) {
        SIMT_THREAD_INDEX.x = linear;
      } else {
        if (order) linear = order[next];
        SIMT_THREAD_INDEX = places[linear];
      }
      at.next = ++next;
      at.current = linear;
#ifdef SIMT_COUNT
      begin_events(linear);
#endif
      one(body);
#ifdef SIMT_COUNT
      suspend_events(linear);
#endif
      if (__builtin_expect(at.waited, 0)) {
        thread_ended(linear);
        next = at.next;
      }
    }
  }
};

// Work that is kept to run later, as a node of a graph.
struct Work {
  virtual void run() = 0;
};
template <class F>
Work* defer(F function) {
  struct Deferred : Work {
    F function;
    explicit Deferred(F function) : function(function) {}
    void run() override { (void)function(); }
  };
  return new Deferred(function);
}
// Records what a stream gets while it is captured (graphs.h). type: a cudaGraphNodeType.
struct CaptureBase {
  bool invalid = false, ended = false;
  virtual void add(int type, Work* work) = 0;
};
inline int captures = 0;  // in progress
inline CaptureBase* capture_of(cudaStream_t stream);  // null for a stream that is not captured
template <class F, class... P>
Work* defer_launch(const Site& site, const void* function, F& call, Config config, bool cooperative,
                   std::tuple<P...>& values);

template <class F, class... P>
int launch_body(const Site& site, const void* function, F& call, const Config& config, bool cooperative,
                std::tuple<P...>& values) {
  Argument arguments[sizeof...(P) + 1] = {};
  std::apply(
      [&](const P&... each) {
        unsigned i = 0;
        ((arguments[i++] = argument_of(each)), ...);
        (void)i;
      },
      values);
  Body<F, P...> body{call, values};
  const Launch launch = {site,     config,    &Body<F, P...>::threads, &body,
                         function, arguments, (unsigned)sizeof...(P),  cooperative};
  CaptureBase* recorder = captures ? capture_of(config.stream) : nullptr;
  if (!recorder) return run(launch);
  const int error = try_launch(launch);
  if (!error) recorder->add(0, defer_launch(site, function, call, config, cooperative, values));
  return error;
}

template <class F, class... P>
Work* defer_launch(const Site& site, const void* function, F& call, Config config, bool cooperative,
                   std::tuple<P...>& values) {
  config.stream = nullptr;
  if constexpr (!std::is_empty_v<F> && !std::is_pointer_v<F> && !is_bits_call<F>) {
    // The launch names the kernel by a variable, which may change or end before the work runs.
    if (function) {
      auto* kernel = (void (*)(P...))function;
      return defer_launch(site, function, kernel, config, cooperative, values);
    }
  }
  return defer([=]() mutable {
    std::tuple<P...> copies(values);
    launch_body(site, function, call, config, cooperative, copies);
  });
}

// The launch of a kernel that has_bits. The arguments are the host's copies.
template <class... P>
int launch_bits(const Site& site, const void* function, void (*kernel)(P...), const Config& config,
                const std::type_identity_t<P>&... arguments) {
  auto call = call_of(kernel);
  std::tuple<Kept<P>...> values(static_cast<Kept<P>>(arguments)...);
  return launch_body(site, function, call, config, false, values);
}

// kernel<<<…>>>(arguments) with a kernel whose parameter types are known: arguments convert once, as in a call.
template <class F, class... P>
struct TypedLaunch {
  Site site;
  const void* function;
  F call;
  Config config;
  void operator()(P... arguments) {
    if constexpr (has_bits<P...>) {
      launch_bits(site, function, (void (*)(P...))function, config, arguments...);
    } else {
      std::tuple<P...> values(static_cast<P>(arguments)...);
      launch_body(site, function, call, config, false, values);
    }
  }
};

// Returns the kernel's address, converted to the type of the first argument, or with its own type if that is AnyKernel*.
// The kernel is a name that may stand for several functions or a template: no overload fits if none of them has the type.
struct AnyKernel {};
template <class F>
F* instance(F*, std::type_identity_t<F>* kernel) {
  return kernel;
}
template <class... P>
auto instance(AnyKernel*, void (*kernel)(P...)) {
  return kernel;
}
template <class Find, class... A>
constexpr bool takes_bits() {
  if constexpr (std::is_invocable_v<Find&, AnyKernel*>) {
    return []<class... P>(void (*)(P...)) {
      return has_bits<P...> && sizeof...(P) == sizeof...(A);
    }(std::invoke_result_t<Find&, AnyKernel*>());
  }
  return false;
}

// The same where the kernel is a template whose parameters are deduced from the arguments. find: calls instance() with
// its argument and the kernel.
template <class F, class Find>
struct DeducedLaunch {
  Site site;
  F call;
  Find find;
  Config config;
  template <class... A>
  void operator()(A... arguments) {
    if constexpr (takes_bits<Find, A...>()) {
      return launch_as(find((AnyKernel*)nullptr), arguments...);
    } else if constexpr (has_bits<A...> && std::is_invocable_v<Find&, void (*)(A...)>) {
      return launch_as(find((void (*)(A...)) nullptr), arguments...);
    } else {
      std::tuple<A...> values(arguments...);
      launch_body(site, nullptr, call, config, false, values);
    }
  }
  template <class... P>
  void launch_as(void (*kernel)(P...), const std::type_identity_t<P>&... arguments) {
    launch_bits(site, nullptr, kernel, config, arguments...);
  }
};

template <class F, class... P>
TypedLaunch<F, P...> launch(Site site, void (*kernel)(P...), F call, Config config) {
  return {site, (const void*)kernel, call, config};
}
struct NotFound {};
template <class F>
DeducedLaunch<F, NotFound> launch(Site site, F call, Config config) {
  return {site, call, {}, config};
}
template <class F, class Find>
  requires(!std::is_pointer_v<F>)
DeducedLaunch<F, Find> launch(Site site, F call, Find find, Config config) {
  return {site, call, find, config};
}

// ---- inside a kernel; `line` is the line of the call in the student's source ----

extern "C" SIMT_API void simt_barrier(int line);
SIMT_INLINE void barrier(int line) { simt_barrier(line); }  // __syncthreads
enum class Vote { count, all, any };
SIMT_API int barrier_vote(Vote vote, bool predicate, int line);
SIMT_API void grid_barrier(int line);  // cooperative launches only

// The values of a warp's lanes: value[l] is lane l's, valid if bit l of `present` is set.
// Stays valid until the calling lane's next collective.
struct Exchange {
  const std::uint64_t* value;
  unsigned present;
};
// `mask` must name the calling lane; waits for every lane of the mask that has not returned.
// `what` names the operation (for messages, and lanes of one exchange must agree on it).
SIMT_API Exchange exchange(unsigned mask, std::uint64_t value, const char* what, int line);
SIMT_API unsigned active_mask(int line);

SIMT_API void mark_local(void* variable, std::size_t bytes, const char* name);
// In a checked build: the function ends without the return that it needs.
SIMT_API void no_result(const char* function);
// What the frontend writes before the } of such a function. function: __PRETTY_FUNCTION__
constexpr void reach_end(const char* function) {
  if (!std::is_constant_evaluated()) no_result(function);
}
SIMT_API void handed_over();  // in a checked build: the calling thread has not published its further accesses
SIMT_API void read_of_unwritten(unsigned source, const char* what,
                                int line);  // a shuffle reads a variable that its lane never wrote
SIMT_API void read_of_absent(unsigned mask, unsigned source, const char* what,
                             int line);  // a shuffle reads a lane that does not take part
SIMT_API void* dynamic_shared();
SIMT_API void* dynamic_shared(const char* name,
                              std::size_t element);  // in a checked build: with the kernel's name for it
SIMT_API std::size_t dynamic_shared_size();
SIMT_API bool cooperative_launch();
SIMT_API bool in_kernel();  // false on the host
[[noreturn]] SIMT_API void device_assert(const char* expression, int line);  // on the host it throws
[[noreturn]] SIMT_API void trap(int line);
// Reports a device function that was used incorrectly. reason: of simt.KernelError; text: whole sentences.
[[noreturn]] SIMT_API void misused(const char* reason, const char* text, int line);

// Parks the calling thread until another one of its block calls wake(place). what: the operation, for messages.
SIMT_API void sleep_at(const volatile void* place, const char* what, int line);
SIMT_API void wake(const volatile void* place);
// Lets other threads of this and other blocks run first. Called in loops that wait for a change in memory.
SIMT_API void let_others_run(int line);

// Asynchronous copies of the calling thread, of at most 16 bytes each: read when they are started, written by the
// header once their batch has been waited for. Batches are counted from 1.
typedef unsigned __int128 CopyBits;
struct Arrival {
  void* target;
  std::size_t bytes;  // 0: nothing has arrived
};
SIMT_API void copy_later(void* target, std::size_t bytes, CopyBits bits);
SIMT_API unsigned commit_copies();  // ends the batch; returns its number
SIMT_API unsigned committed_copies();  // number of the last batch that was ended, or 0
SIMT_API Arrival next_arrival(unsigned batch);  // takes the oldest copy of a batch up to this one
// The same with a place in shared memory (a barrier, a stage) for which the block's threads copy together.
SIMT_API void copy_later_at(const volatile void* place, void* target, std::size_t bytes, CopyBits bits);
SIMT_API Arrival next_arrival_at(const volatile void* place);
SIMT_API CopyBits arrived_bits();  // what the copy that was taken last holds
SIMT_API bool in_shared(const void* address);  // the running block's shared memory, static or dynamic
SIMT_API int print(const char* format, ...) __attribute__((format(printf, 1, 2)));

// The replacement of assert and CUDA_KERNEL_ASSERT. text: the condition as the source has it.
#define SIMT_ASSERT_TEXT(text, ...) ((__VA_ARGS__) ? (void)0 : ::simt::device_assert(text, __LINE__))
#define SIMT_ASSERT(...) SIMT_ASSERT_TEXT(#__VA_ARGS__, __VA_ARGS__)

#ifdef SIMT_PROBED
// The same variable, constant as a thread sees it: reading a constant is no access to probe.
extern const __thread
    __attribute__((tls_model("initial-exec"), visibility("default"))) Cursor own_cursor __asm__("_ZN4simt6cursorE");
SIMT_INLINE unsigned linear_thread() { return own_cursor.current; }
SIMT_INLINE unsigned lane() { return own_cursor.current % 32; }
#else
SIMT_INLINE unsigned linear_thread() { return cursor.current; }
SIMT_INLINE unsigned lane() { return cursor.current % 32; }
#endif

// In a checked build this follows the declaration of a local variable without a value: reading the poison is a finding.
template <class T>
SIMT_INLINE void local(T& variable, const char* name) {
#ifdef SIMT_CHECK
  if constexpr (std::is_trivially_default_constructible_v<T> && std::is_trivially_copyable_v<T> &&
                !std::is_const_v<T>) {
    mark_local((void*)&variable, sizeof variable, name);
#ifdef SIMT_KNOWS_PADDING
    if constexpr (std::is_class_v<std::remove_all_extents_t<T>> && !Flexible<std::remove_all_extents_t<T>>)
      __builtin_clear_padding((std::remove_cv_t<T>*)&variable);  // nothing writes it, and a copy reads it
#endif
  }
#else
  (void)variable, (void)name;
#endif
}

}  // namespace simt
