// cuda::atomic and cuda::atomic_ref: the processor's atomic operations, with the memory orders of the C++ standard.
#pragma once

#include <stdio.h>

#include <atomic>
#include <type_traits>

#include <simt/libcu_sizes.h>
#include <simt/hints.h>
#include <simt/probe.h>

namespace cuda {

using ::std::memory_order;
using ::std::memory_order_acq_rel;
using ::std::memory_order_acquire;
using ::std::memory_order_consume;
using ::std::memory_order_relaxed;
using ::std::memory_order_release;
using ::std::memory_order_seq_cst;

namespace detail {

SIMT_INLINE constexpr simt::Scope reach(thread_scope scope) {
  return scope == thread_scope_system   ? simt::Scope::system
         : scope == thread_scope_device ? simt::Scope::device
                                        : simt::Scope::block;
}
SIMT_INLINE constexpr bool releases(memory_order order) {
  return order == memory_order_release || order == memory_order_acq_rel || order == memory_order_seq_cst;
}
// The memory order of a failed compare-exchange, which stores nothing.
SIMT_INLINE constexpr memory_order without_release(memory_order order) {
  return order == memory_order_acq_rel   ? memory_order_acquire
         : order == memory_order_release ? memory_order_relaxed
                                         : order;
}

// The operations on one place in memory.
template <class T, thread_scope Scope>
struct Operation {
  static_assert(__is_trivially_copyable(T), "an atomic's type is one that can be copied as bytes");
  static_assert(sizeof(T) <= 8 && (sizeof(T) & (sizeof(T) - 1)) == 0,
                "an atomic has 1, 2, 4 or 8 bytes here; wider ones need a GPU");
  static constexpr bool integer = ::std::is_integral_v<T> && !::std::is_same_v<T, bool>;
  static constexpr bool number = integer || ::std::is_floating_point_v<T>;
  typedef ::std::conditional_t<::std::is_pointer_v<T>, ::std::ptrdiff_t, T> Difference;

#define SIMT_TELL(kind)                                \
  if (releases(order)) SIMT_PROBE_FENCE(reach(Scope)); \
  SIMT_PROBE_ATOMIC(p, sizeof(T), simt::Atomic::kind)

  SIMT_OWN_PROBES static T load(T* p, memory_order order) {
    SIMT_PROBE_ATOMIC(p, sizeof(T), simt::Atomic::load);
    T value;
    __atomic_load(p, &value, (int)order);
    return value;
  }
  SIMT_OWN_PROBES static void store(T* p, T value, memory_order order) {
    SIMT_TELL(store);
    __atomic_store(p, &value, (int)order);
  }
  SIMT_OWN_PROBES static T exchange(T* p, T value, memory_order order) {
    SIMT_TELL(exchange);
    T old;
    __atomic_exchange(p, &value, &old, (int)order);
    return old;
  }
  SIMT_OWN_PROBES static bool compare(T* p, T& expected, T desired, memory_order order, memory_order otherwise) {
    SIMT_TELL(compare);
    return __atomic_compare_exchange(p, &expected, &desired, false, (int)order, (int)otherwise);
  }

  // Compares and exchanges until no other thread interferes.
#define SIMT_UPDATE(name, kind, Operand, expression)                                        \
  SIMT_OWN_PROBES static T name(T* p, Operand value, memory_order order) {                  \
    SIMT_TELL(kind);                                                                        \
    T old, next;                                                                            \
    __atomic_load(p, &old, __ATOMIC_RELAXED);                                               \
    do next = T(expression);                                                                \
    while (!__atomic_compare_exchange(p, &old, &next, true, (int)order, __ATOMIC_RELAXED)); \
    return old;                                                                             \
  }
  SIMT_UPDATE(add, add, Difference, old + value)
  SIMT_UPDATE(sub, sub, Difference, old - value)
  SIMT_UPDATE(least, min, T, value < old ? value : old)
  SIMT_UPDATE(largest, max, T, old < value ? value : old)
  SIMT_UPDATE(conjunction, and_, T, old& value)
  SIMT_UPDATE(disjunction, or_, T, old | value)
  SIMT_UPDATE(difference, xor_, T, old ^ value)
#undef SIMT_UPDATE
#undef SIMT_TELL
};

// The interface that atomic and atomic_ref share. Self::place() is the address.
template <class Self, class T, thread_scope Scope>
class Operations {
  typedef Operation<T, Scope> On;
  T* at() const { return static_cast<const Self*>(this)->place(); }

 public:
  typedef T value_type;
  typedef typename On::Difference difference_type;
  static constexpr bool is_always_lock_free = true;
  bool is_lock_free() const { return true; }

#define SIMT_ORDER memory_order order = memory_order_seq_cst
  SIMT_INLINE T load(SIMT_ORDER) const { return On::load(at(), order); }
  SIMT_INLINE operator T() const { return On::load(at(), memory_order_seq_cst); }
  SIMT_INLINE void store(T value, SIMT_ORDER) const { On::store(at(), value, order); }
  SIMT_INLINE T exchange(T value, SIMT_ORDER) const { return On::exchange(at(), value, order); }
#define SIMT_COMPARE(name)                                                                          \
  SIMT_INLINE bool name(T& expected, T desired, memory_order order, memory_order otherwise) const { \
    return On::compare(at(), expected, desired, order, otherwise);                                  \
  }                                                                                                 \
  SIMT_INLINE bool name(T& expected, T desired, SIMT_ORDER) const {                                 \
    return On::compare(at(), expected, desired, order, without_release(order));                     \
  }
  SIMT_COMPARE(compare_exchange_weak)
  SIMT_COMPARE(compare_exchange_strong)
#undef SIMT_COMPARE

#define SIMT_FETCH(name, operation, Operand, condition)                         \
  SIMT_INLINE T name(Operand value, SIMT_ORDER) const {                         \
    static_assert(condition, #name " does not work on an atomic of this type"); \
    return On::operation(at(), value, order);                                   \
  }
  SIMT_FETCH(fetch_add, add, difference_type, On::number || ::std::is_pointer_v<T>)
  SIMT_FETCH(fetch_sub, sub, difference_type, On::number || ::std::is_pointer_v<T>)
  SIMT_FETCH(fetch_min, least, T, On::number)
  SIMT_FETCH(fetch_max, largest, T, On::number)
  SIMT_FETCH(fetch_and, conjunction, T, On::integer)
  SIMT_FETCH(fetch_or, disjunction, T, On::integer)
  SIMT_FETCH(fetch_xor, difference, T, On::integer)
#undef SIMT_FETCH
  SIMT_INLINE T operator+=(difference_type value) const { return T(fetch_add(value) + value); }
  SIMT_INLINE T operator-=(difference_type value) const { return T(fetch_sub(value) - value); }
  SIMT_INLINE T operator&=(T value) const { return T(fetch_and(value) & value); }
  SIMT_INLINE T operator|=(T value) const { return T(fetch_or(value) | value); }
  SIMT_INLINE T operator^=(T value) const { return T(fetch_xor(value) ^ value); }
  SIMT_INLINE T operator++() const { return T(fetch_add(1) + 1); }
  SIMT_INLINE T operator--() const { return T(fetch_sub(1) - 1); }
  SIMT_INLINE T operator++(int) const { return fetch_add(1); }
  SIMT_INLINE T operator--(int) const { return fetch_sub(1); }

  // Waits until the value changes. No notification is needed: the waiting thread polls.
  SIMT_INLINE void wait(T old, SIMT_ORDER, int line = __builtin_LINE()) const {
    for (T now = load(order); __builtin_memcmp(&now, &old, sizeof(T)) == 0; now = load(order))
      simt::let_others_run(line);
  }
#undef SIMT_ORDER
  void notify_one() const {}
  void notify_all() const {}
};

}  // namespace detail

// A value that is accessed by atomic operations only.
template <class T, thread_scope Scope = thread_scope_system>
class atomic : public detail::Operations<atomic<T, Scope>, T, Scope> {
 public:
  atomic() = default;
  constexpr atomic(T value) : value_(value) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
  SIMT_INLINE T operator=(T value) {
    this->store(value);
    return value;
  }

 private:
  friend detail::Operations<atomic, T, Scope>;
  T* place() const { return &value_; }
  alignas(sizeof(T)) mutable T value_;
};

// Atomic operations on an ordinary object.
template <class T, thread_scope Scope = thread_scope_system>
class atomic_ref : public detail::Operations<atomic_ref<T, Scope>, T, Scope> {
 public:
  static constexpr ::std::size_t required_alignment = sizeof(T);
  SIMT_INLINE explicit atomic_ref(T& object, int line = __builtin_LINE()) : place_(&object) {
    if ((::std::size_t)place_ % sizeof(T)) misaligned(line);
  }
  atomic_ref(const atomic_ref&) = default;
  atomic_ref& operator=(const atomic_ref&) = delete;
  SIMT_INLINE T operator=(T value) const {
    this->store(value);
    return value;
  }

 private:
  friend detail::Operations<atomic_ref, T, Scope>;
  T* place() const { return place_; }
  [[noreturn]] static void misaligned(int line) {
    char text[160];
    snprintf(text, sizeof text, "The atomic_ref in line %d needs an address that is a multiple of %zu bytes.", line,
             sizeof(T));
    simt::misused("misaligned", text, line);
  }
  T* const place_;
};

inline void atomic_thread_fence(memory_order order, thread_scope scope = thread_scope_system) {
  if (order == memory_order_relaxed) return;
  if (scope == thread_scope_system)
    __threadfence_system();
  else if (scope == thread_scope_device)
    __threadfence();
  else
    __threadfence_block();
}
inline void atomic_signal_fence(memory_order) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

namespace std {
using namespace ::std;
using ::cuda::atomic_signal_fence;
using ::cuda::atomic_thread_fence;
using ::std::memory_order;
template <class T> using atomic = ::cuda::atomic<T, thread_scope_system>;
template <class T> using atomic_ref = ::cuda::atomic_ref<T, thread_scope_system>;
}  // namespace std

}  // namespace cuda
