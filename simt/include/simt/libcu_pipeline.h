// cuda::pipeline: stages that producers fill with asynchronous copies and consumers wait for.
#pragma once

#include <simt/libcu_barrier.h>

namespace cuda {

enum class pipeline_role { producer, consumer };

namespace detail {

struct Stage {
  Arrivals produced, released;
};

}  // namespace detail

template <thread_scope Scope, unsigned char Stages>
class pipeline_shared_state {
  static_assert(Scope == thread_scope_block,
                "only pipelines of one thread or one block run on the CPU; wider ones need a GPU");

 public:
  pipeline_shared_state() = default;
  pipeline_shared_state(const pipeline_shared_state&) = delete;

  // ---- for make_pipeline ----
  detail::Stage stages[Stages];
  unsigned producers;
};

// Of one block. Each thread counts the stages that it has filled and emptied; the stages lie in shared memory.
template <thread_scope Scope>
class pipeline {
  static_assert(Scope == thread_scope_block || Scope == thread_scope_thread);

 public:
  pipeline(pipeline&&) = default;
  pipeline(const pipeline&) = delete;
  pipeline& operator=(const pipeline&) = delete;

  // Until the next stage has been released as often as it was filled.
  SIMT_INLINE void producer_acquire(int line = __builtin_LINE()) {
    filled().released.wait(head_ / count_, "cuda::pipeline::producer_acquire()", line);
  }
  SIMT_INLINE void producer_commit(int line = __builtin_LINE()) {
    detail::Stage& stage = filled();
    ++head_;
    if (!stage.produced.arrive(1, "cuda::pipeline::producer_commit()", line)) return;
    detail::end_copies_at(&stage);
    stage.produced.complete();
  }
  SIMT_INLINE void consumer_wait(int line = __builtin_LINE()) {
    emptied().produced.wait(tail_ / count_ + 1, "cuda::pipeline::consumer_wait()", line);
  }
  SIMT_INLINE void consumer_release(int line = __builtin_LINE()) {
    detail::Stage& stage = emptied();
    ++tail_;
    if (stage.released.arrive(1, "cuda::pipeline::consumer_release()", line)) stage.released.complete();
  }
  bool quit() { return false; }

  // ---- for make_pipeline and memcpy_async ----
  pipeline(detail::Stage* stages, unsigned count) : stages_(stages), count_(count) {}
  SIMT_INLINE void copy(::std::size_t piece, void* target, const void* source, ::std::size_t bytes, ::std::size_t rank,
                        ::std::size_t threads) {
    simt::begin_copy_of(piece, target, source, bytes, rank, threads, &filled());
  }

 private:
  detail::Stage& filled() { return stages_[head_ % count_]; }
  detail::Stage& emptied() { return stages_[tail_ % count_]; }
  detail::Stage* const stages_;
  const unsigned count_;
  unsigned head_ = 0, tail_ = 0;      // stages that this thread has committed, and released
};

// Of one thread, whose copies it waits for alone.
template <>
class pipeline<thread_scope_thread> {
 public:
  pipeline() = default;
  pipeline(pipeline&&) = default;
  pipeline(const pipeline&) = delete;
  pipeline& operator=(const pipeline&) = delete;

  void producer_acquire() {}
  SIMT_INLINE void producer_commit() {
    simt::commit_copies();
    ++under_way_;
  }
  SIMT_INLINE void consumer_wait() {
    if (under_way_) wait_prior(under_way_ - 1);
  }
  void consumer_release() {}
  bool quit() { return true; }

  SIMT_INLINE void wait_prior(unsigned prior) {
    simt::end_copies_prior(prior);
    if (under_way_ > prior) under_way_ = prior;
  }
  SIMT_INLINE void copy(::std::size_t piece, void* target, const void* source, ::std::size_t bytes, ::std::size_t rank,
                        ::std::size_t threads) {
    simt::begin_copy_of(piece, target, source, bytes, rank, threads);
  }

 private:
  unsigned under_way_ = 0;            // batches committed and not waited for
};

inline pipeline<thread_scope_thread> make_pipeline() { return {}; }

namespace detail {

template <class Group, thread_scope Scope, unsigned char Stages>
SIMT_INLINE pipeline<Scope> made(const Group& group, pipeline_shared_state<Scope, Stages>* state, unsigned producers,
                                 unsigned consumers, int line) {
  if (group.thread_rank() == 0)
    for (Stage& stage : state->stages) {
      stage.produced.start(producers);
      stage.released.start(consumers);
    }
  group.sync(line);
  return pipeline<Scope>(state->stages, Stages);
}
SIMT_OWN_PROBES void count_producer(unsigned* producers) {
  SIMT_PROBE_ATOMIC(producers, 4, simt::Atomic::add);
  ++*producers;
}

}  // namespace detail

// All threads of the group produce and consume; or so many produce and the others consume; or each says which.
template <class Group, thread_scope Scope, unsigned char Stages>
SIMT_INLINE pipeline<Scope> make_pipeline(const Group& group, pipeline_shared_state<Scope, Stages>* state,
                                          int line = __builtin_LINE()) {
  return detail::made(group, state, (unsigned)group.size(), (unsigned)group.size(), line);
}
template <class Group, thread_scope Scope, unsigned char Stages>
SIMT_INLINE pipeline<Scope> make_pipeline(const Group& group, pipeline_shared_state<Scope, Stages>* state,
                                          ::std::size_t producers, int line = __builtin_LINE()) {
  return detail::made(group, state, (unsigned)producers, (unsigned)(group.size() - producers), line);
}
template <class Group, thread_scope Scope, unsigned char Stages>
SIMT_INLINE pipeline<Scope> make_pipeline(const Group& group, pipeline_shared_state<Scope, Stages>* state,
                                          pipeline_role role, int line = __builtin_LINE()) {
  if (group.thread_rank() == 0) state->producers = 0;
  group.sync(line);
  if (role == pipeline_role::producer) detail::count_producer(&state->producers);
  group.sync(line);
  const unsigned producers = state->producers;
  return detail::made(group, state, producers, (unsigned)group.size() - producers, line);
}

// bytes: a number, or an aligned_size_t.
template <class Group, class T, class Size, thread_scope Scope>
SIMT_INLINE void memcpy_async(const Group& group, T* target, const T* source, const Size& bytes, pipeline<Scope>& pipe,
                              int line = __builtin_LINE()) {
  constexpr ::std::size_t piece = detail::promised<T, Size>;
  detail::check_aligned(target, source, bytes, piece, line);
  pipe.copy(piece, target, source, bytes, group.thread_rank(), group.size());
}
template <class T, class Size, thread_scope Scope>
SIMT_INLINE void memcpy_async(T* target, const T* source, const Size& bytes, pipeline<Scope>& pipe,
                              int line = __builtin_LINE()) {
  constexpr ::std::size_t piece = detail::promised<T, Size>;
  detail::check_aligned(target, source, bytes, piece, line);
  pipe.copy(piece, target, source, bytes, 0, 1);
}

// All but the newest `Prior` batches.
template <unsigned char Prior>
SIMT_INLINE void pipeline_consumer_wait_prior(pipeline<thread_scope_thread>& pipe) {
  pipe.wait_prior(Prior);
}

}  // namespace cuda
