// cuda::barrier of one block, and cuda::memcpy_async with it: the copies are complete when the barrier's phase is.
#pragma once

#include <stdio.h>

#include <simt/async_copy.h>
#include <simt/libcu_sizes.h>
#include <simt/probe.h>

namespace cuda {
namespace detail {

// Counts arrivals, phase after phase. It is in shared memory and is not constructed before start().
// Arrivals publish accesses through one word in odd phases and another in even phases, so that a thread that waits for
// a phase does not acquire accesses of threads that have reached the next phase.
class Arrivals {
 public:
  // As __syncthreads for what the thread did before.
  SIMT_OWN_PROBES void start(unsigned expected) {
    SIMT_PROBE_FENCE(simt::Scope::block);
    SIMT_PROBE_ATOMIC(word(0), 4, simt::Atomic::store);
    SIMT_PROBE_ATOMIC(word(1), 4, simt::Atomic::store);
    phase_ = 0;
    expected_ = missing_ = expected;
    made_ = made;
  }
  // Counts arrivals; returns true if the phase only needs complete().
  SIMT_OWN_PROBES bool arrive(unsigned count, const char* what, int line) {
    check(what, line);
    SIMT_PROBE_FENCE(simt::Scope::block);
    SIMT_PROBE_ATOMIC(word(phase_), 4, simt::Atomic::sub);
    if (count > missing_) wrong("%s in line %d: more threads arrive than the expected %u.", what, line, expected_);
    if ((missing_ -= count) == 0) return true;
    hand_over();
    return false;
  }
  SIMT_OWN_PROBES void complete() {
    SIMT_PROBE_FENCE(simt::Scope::block);
    SIMT_PROBE_ATOMIC(word(phase_), 4, simt::Atomic::add);
    hand_over();
    missing_ = expected_;
    ++phase_;
    simt::wake(this);
  }
  SIMT_OWN_PROBES void expect_less(unsigned count) { expected_ -= count; }
  SIMT_OWN_PROBES unsigned phase() const { return phase_; }
  // Until `phase` phases are complete.
  SIMT_OWN_PROBES void wait(unsigned phase, const char* what, int line) {
    check(what, line);
    while ((int)(phase_ - phase) < 0) simt::sleep_at(this, what, line);
    SIMT_PROBE_ATOMIC(word(phase - 1), 4, simt::Atomic::load);
  }
  SIMT_OWN_PROBES bool reached(unsigned phase) const { return (int)(phase_ - phase) >= 0; }

 private:
  static constexpr unsigned made = 0x6d616465u;
  const unsigned* word(unsigned phase) const { return phase % 2 ? &expected_ : &phase_; }
  static void hand_over() {
#ifdef SIMT_CHECK
    simt::handed_over();
#endif
  }
  SIMT_APART void check(const char* what, int line) const {
    if (made_ != made)
      wrong("%s in line %d runs before init() of the barrier. Call init() in one thread, then __syncthreads() in all.",
            what, line, 0);
  }
  [[noreturn]] SIMT_NO_PROBES static void wrong(const char* form, const char* what, int line, unsigned number) {
    char text[240];
    snprintf(text, sizeof text, form, what, line, number);
    simt::misused("barrier_divergence", text, line);
  }
  unsigned phase_, expected_, missing_, made_;
};

struct Nothing {
  void operator()() const {}
};

// Writes what threads have copied for `place`.
SIMT_INLINE void end_copies_at(const void* place) {
  for (simt::Arrival to = simt::next_arrival_at(place); to.bytes; to = simt::next_arrival_at(place))
    simt::write_copy(to, simt::arrived_bits());
}

}  // namespace detail

template <thread_scope Scope, class Completion = detail::Nothing>
class barrier {
  static_assert(Scope == thread_scope_block || Scope == thread_scope_thread,
                "only barriers of one block (thread_scope_block) run on the CPU; wider ones need a GPU");

 public:
  class arrival_token {
    unsigned phase_;
    friend barrier;
    explicit arrival_token(unsigned phase) : phase_(phase) {}
  };

  barrier() = default;
  explicit barrier(::std::ptrdiff_t expected, Completion completion = Completion()) : completion_(completion) {
    arrivals_.start((unsigned)expected);
  }
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;
  SIMT_INLINE friend void init(barrier* b, ::std::ptrdiff_t expected) { b->arrivals_.start((unsigned)expected); }
  SIMT_INLINE friend void init(barrier* b, ::std::ptrdiff_t expected, Completion completion) {
    b->completion_ = completion;
    b->arrivals_.start((unsigned)expected);
  }
  static constexpr ::std::ptrdiff_t max() { return (1 << 20) - 1; }

  SIMT_INLINE arrival_token arrive(::std::ptrdiff_t count = 1, int line = __builtin_LINE()) {
    const arrival_token token(arrivals_.phase() + 1);
    come((unsigned)count, "cuda::barrier::arrive()", line);
    return token;
  }
  SIMT_INLINE void wait(arrival_token&& token, int line = __builtin_LINE()) {
    arrivals_.wait(token.phase_, "cuda::barrier::wait()", line);
  }
  SIMT_INLINE void wait_parity(bool parity, int line = __builtin_LINE()) {
    if ((arrivals_.phase() & 1) == parity)
      arrivals_.wait(arrivals_.phase() + 1, "cuda::barrier::wait_parity()", line);
    else
      arrivals_.wait(arrivals_.phase(), "cuda::barrier::wait_parity()", line);
  }
  SIMT_INLINE bool try_wait(arrival_token&& token, int line = __builtin_LINE()) {
    if (!arrivals_.reached(token.phase_)) simt::let_others_run(line);
    if (!arrivals_.reached(token.phase_)) return false;
    arrivals_.wait(token.phase_, "cuda::barrier::try_wait()", line);
    return true;
  }
  SIMT_INLINE void arrive_and_wait(int line = __builtin_LINE()) {
    const unsigned phase = arrivals_.phase() + 1;
    come(1, "cuda::barrier::arrive_and_wait()", line);
    arrivals_.wait(phase, "cuda::barrier::arrive_and_wait()", line);
  }
  SIMT_INLINE void arrive_and_drop(int line = __builtin_LINE()) {
    arrivals_.expect_less(1);
    come(1, "cuda::barrier::arrive_and_drop()", line);
  }

 private:
  SIMT_INLINE void come(unsigned count, const char* what, int line) {
    if (!arrivals_.arrive(count, what, line)) return;
    detail::end_copies_at(this);
    completion_();
    arrivals_.complete();
  }
  detail::Arrivals arrivals_;
  [[no_unique_address]] Completion completion_;
};

// The calling thread's share of a copy by all threads of a group, or a copy of its own. bytes: a number, or an
// aligned_size_t.
template <class Group, class T, class Size, thread_scope Scope, class Completion>
SIMT_INLINE void memcpy_async(const Group& group, T* target, const T* source, const Size& bytes,
                              barrier<Scope, Completion>& done, int line = __builtin_LINE()) {
  constexpr ::std::size_t piece = detail::promised<T, Size>;
  detail::check_aligned(target, source, bytes, piece, line);
  simt::begin_copy_of(piece, target, source, bytes, group.thread_rank(), group.size(), &done);
}
template <class T, class Size, thread_scope Scope, class Completion>
SIMT_INLINE void memcpy_async(T* target, const T* source, const Size& bytes, barrier<Scope, Completion>& done,
                              int line = __builtin_LINE()) {
  constexpr ::std::size_t piece = detail::promised<T, Size>;
  detail::check_aligned(target, source, bytes, piece, line);
  simt::begin_copy_of(piece, target, source, bytes, 0, 1, &done);
}

namespace std {
using namespace ::std;
template <class Completion = ::cuda::detail::Nothing> using barrier = ::cuda::barrier<thread_scope_system, Completion>;
}  // namespace std

}  // namespace cuda
