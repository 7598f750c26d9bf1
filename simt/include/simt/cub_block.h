// cub::BlockReduce and cub::BlockScan: each warp by shuffles, then the warps through shared memory.
// As on a GPU the storage may be used again only after __syncthreads().
#pragma once

#include <simt/cub_warp.h>

namespace cub {

// Ways to the same result; here there is one.
enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

namespace detail {

// A thread's own items, first to last.
template <class T, int items, class Op>
SIMT_INLINE T total(const T (&input)[items], Op op) {
  T sum = input[0];
  for (int i = 1; i < items; ++i) sum = op(sum, input[i]);
  return sum;
}

}  // namespace detail

// The result is thread 0's; what the others get is undefined.
template <class T, int BLOCK_DIM_X, BlockReduceAlgorithm ALGORITHM = BLOCK_REDUCE_WARP_REDUCTIONS, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1>
class BlockReduce {
  static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z, warps = (threads + 31) / 32;
  static constexpr const char* what = "cub::BlockReduce";

 public:
  struct TempStorage {
    detail::Room<T, warps> sums;
  };
  SIMT_INLINE BlockReduce() : storage_(detail::private_storage<TempStorage>()) {}
  SIMT_INLINE explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  template <class Op> SIMT_INLINE T Reduce(T input, Op op, SIMT_HERE) {
    return reduce(input, op, threads, here.number);
  }
  template <class Op> SIMT_INLINE T Reduce(T input, Op op, int num_valid, SIMT_HERE) {
    return reduce(input, op, num_valid, here.number);
  }
  template <int ITEMS, class Op> SIMT_INLINE T Reduce(T (&inputs)[ITEMS], Op op, SIMT_HERE) {
    return reduce(detail::total(inputs, op), op, threads, here.number);
  }
  SIMT_INLINE T Sum(T input, SIMT_HERE) { return reduce(input, cub::Sum(), threads, here.number); }
  SIMT_INLINE T Sum(T input, int num_valid, SIMT_HERE) { return reduce(input, cub::Sum(), num_valid, here.number); }
  template <int ITEMS> SIMT_INLINE T Sum(T (&inputs)[ITEMS], SIMT_HERE) {
    return reduce(detail::total(inputs, cub::Sum()), cub::Sum(), threads, here.number);
  }

 private:
  template <class Op> SIMT_INLINE T reduce(T input, Op op, int valid, int line) {
    detail::check_block<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>(what, line);
    const int thread = (int)simt::linear_thread(), start = thread / 32 * 32;
    const int last = valid - start < 32 ? valid - start - 1 : 31;
    T* const sums = storage_.sums.values();
    T sum = detail::tree<32>(input, op, last < 0 ? 0u : (unsigned)last, what, line);
    if (thread % 32 == 0) sums[thread / 32] = sum;
    simt::barrier(line);
    if (thread == 0)
      for (int warp = 1; warp * 32 < valid && warp < warps; ++warp) sum = op(sum, sums[warp]);
    return sum;
  }
  TempStorage& storage_;
};

// A prefix functor gets the sum of the block's items, and returns what comes before them; the first warp calls it, and
// the first thread's answer counts.
template <class T, int BLOCK_DIM_X, BlockScanAlgorithm ALGORITHM = BLOCK_SCAN_RAKING, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1>
class BlockScan {
  static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z, warps = (threads + 31) / 32;
  static constexpr const char* what = "cub::BlockScan";

 public:
  struct TempStorage {
    detail::Room<T, warps> sums;
    detail::Room<T, 1> prefix;
  };
  SIMT_INLINE BlockScan() : storage_(detail::private_storage<TempStorage>()) {}
  SIMT_INLINE explicit BlockScan(TempStorage& storage) : storage_(storage) {}

  // ---- one item a thread ----

  template <class Op> SIMT_INLINE void InclusiveScan(T input, T& output, Op op, SIMT_HERE) {
    T aggregate;
    InclusiveScan(input, output, op, aggregate, here);
  }
  template <class Op> SIMT_INLINE void InclusiveScan(T input, T& output, Op op, T& block_aggregate, SIMT_HERE) {
    T before;
    scan(input, before, output, op, block_aggregate, here.number);
  }
  template <class Op, class Prefix> SIMT_INLINE void InclusiveScan(T input, T& output, Op op, Prefix& prefix,
                                                                   SIMT_HERE) {
    T before, inclusive, aggregate;
    scan(input, before, inclusive, op, aggregate, here.number);
    output = op(call_prefix(prefix, aggregate, here.number), inclusive);
  }
  template <class Op> SIMT_INLINE void ExclusiveScan(T input, T& output, T initial_value, Op op, SIMT_HERE) {
    T aggregate;
    ExclusiveScan(input, output, initial_value, op, aggregate, here);
  }
  template <class Op> SIMT_INLINE void ExclusiveScan(T input, T& output, T initial_value, Op op, T& block_aggregate,
                                                     SIMT_HERE) {
    T before, inclusive;
    scan(input, before, inclusive, op, block_aggregate, here.number);
    output = simt::linear_thread() ? op(initial_value, before) : initial_value;
  }
  // Without an initial value the first thread's result is undefined.
  template <class Op> SIMT_INLINE void ExclusiveScan(T input, T& output, Op op, SIMT_HERE) {
    T inclusive, aggregate;
    scan(input, output, inclusive, op, aggregate, here.number);
  }
  template <class Op> SIMT_INLINE void ExclusiveScan(T input, T& output, Op op, T& block_aggregate, SIMT_HERE) {
    T inclusive;
    scan(input, output, inclusive, op, block_aggregate, here.number);
  }
  template <class Op, class Prefix> SIMT_INLINE void ExclusiveScan(T input, T& output, Op op, Prefix& prefix,
                                                                   SIMT_HERE) {
    T before, inclusive, aggregate;
    scan(input, before, inclusive, op, aggregate, here.number);
    const T start = call_prefix(prefix, aggregate, here.number);
    output = simt::linear_thread() ? op(start, before) : start;
  }
  SIMT_INLINE void InclusiveSum(T input, T& output, SIMT_HERE) { InclusiveScan(input, output, cub::Sum(), here); }
  SIMT_INLINE void InclusiveSum(T input, T& output, T& block_aggregate, SIMT_HERE) {
    InclusiveScan(input, output, cub::Sum(), block_aggregate, here);
  }
  template <class Prefix> SIMT_INLINE void InclusiveSum(T input, T& output, Prefix& prefix, SIMT_HERE) {
    InclusiveScan(input, output, cub::Sum(), prefix, here);
  }
  SIMT_INLINE void ExclusiveSum(T input, T& output, SIMT_HERE) { ExclusiveScan(input, output, T{}, cub::Sum(), here); }
  SIMT_INLINE void ExclusiveSum(T input, T& output, T& block_aggregate, SIMT_HERE) {
    ExclusiveScan(input, output, T{}, cub::Sum(), block_aggregate, here);
  }
  template <class Prefix> SIMT_INLINE void ExclusiveSum(T input, T& output, Prefix& prefix, SIMT_HERE) {
    ExclusiveScan(input, output, cub::Sum(), prefix, here);
  }

  // ---- several items a thread, neighbours ----

  template <int ITEMS, class Op> SIMT_INLINE void InclusiveScan(T (&input)[ITEMS], T (&output)[ITEMS], Op op,
                                                                SIMT_HERE) {
    T aggregate;
    InclusiveScan(input, output, op, aggregate, here);
  }
  template <int ITEMS, class Op>
  SIMT_INLINE void InclusiveScan(T (&input)[ITEMS], T (&output)[ITEMS], Op op, T& block_aggregate, SIMT_HERE) {
    T before, inclusive;
    scan(detail::total(input, op), before, inclusive, op, block_aggregate, here.number);
    run_inclusive(input, output, op, before, simt::linear_thread() > 0);
  }
  template <int ITEMS, class Op, class Prefix>
  SIMT_INLINE void InclusiveScan(T (&input)[ITEMS], T (&output)[ITEMS], Op op, Prefix& prefix, SIMT_HERE) {
    T before, inclusive, aggregate;
    scan(detail::total(input, op), before, inclusive, op, aggregate, here.number);
    const T start = call_prefix(prefix, aggregate, here.number);
    run_inclusive(input, output, op, simt::linear_thread() ? op(start, before) : start, true);
  }
  template <int ITEMS, class Op>
  SIMT_INLINE void ExclusiveScan(T (&input)[ITEMS], T (&output)[ITEMS], T initial_value, Op op, SIMT_HERE) {
    T aggregate;
    ExclusiveScan(input, output, initial_value, op, aggregate, here);
  }
  template <int ITEMS, class Op>
  SIMT_INLINE void ExclusiveScan(T (&input)[ITEMS], T (&output)[ITEMS], T initial_value, Op op, T& block_aggregate,
                                 SIMT_HERE) {
    T before, inclusive;
    scan(detail::total(input, op), before, inclusive, op, block_aggregate, here.number);
    run_exclusive(input, output, op, simt::linear_thread() ? op(initial_value, before) : initial_value);
  }
  template <int ITEMS, class Op> SIMT_INLINE void ExclusiveScan(T (&input)[ITEMS], T (&output)[ITEMS], Op op,
                                                                SIMT_HERE) {
    T aggregate;
    ExclusiveScan(input, output, op, aggregate, here);
  }
  template <int ITEMS, class Op>
  SIMT_INLINE void ExclusiveScan(T (&input)[ITEMS], T (&output)[ITEMS], Op op, T& block_aggregate, SIMT_HERE) {
    T before, inclusive;
    scan(detail::total(input, op), before, inclusive, op, block_aggregate, here.number);
    const bool first = simt::linear_thread() == 0;
    T sum = input[0], next;
    if (!first) sum = op(before, sum);
    output[0] = before;
    for (int i = 1; i < ITEMS; ++i) {
      next = op(sum, input[i]);
      output[i] = sum;
      sum = next;
    }
  }
  template <int ITEMS, class Op, class Prefix>
  SIMT_INLINE void ExclusiveScan(T (&input)[ITEMS], T (&output)[ITEMS], Op op, Prefix& prefix, SIMT_HERE) {
    T before, inclusive, aggregate;
    scan(detail::total(input, op), before, inclusive, op, aggregate, here.number);
    const T start = call_prefix(prefix, aggregate, here.number);
    run_exclusive(input, output, op, simt::linear_thread() ? op(start, before) : start);
  }
  template <int ITEMS> SIMT_INLINE void InclusiveSum(T (&input)[ITEMS], T (&output)[ITEMS], SIMT_HERE) {
    InclusiveScan(input, output, cub::Sum(), here);
  }
  template <int ITEMS> SIMT_INLINE void InclusiveSum(T (&input)[ITEMS], T (&output)[ITEMS], T& block_aggregate,
                                                     SIMT_HERE) {
    InclusiveScan(input, output, cub::Sum(), block_aggregate, here);
  }
  template <int ITEMS, class Prefix> SIMT_INLINE void InclusiveSum(T (&input)[ITEMS], T (&output)[ITEMS],
                                                                   Prefix& prefix, SIMT_HERE) {
    InclusiveScan(input, output, cub::Sum(), prefix, here);
  }
  template <int ITEMS> SIMT_INLINE void ExclusiveSum(T (&input)[ITEMS], T (&output)[ITEMS], SIMT_HERE) {
    ExclusiveScan(input, output, T{}, cub::Sum(), here);
  }
  template <int ITEMS> SIMT_INLINE void ExclusiveSum(T (&input)[ITEMS], T (&output)[ITEMS], T& block_aggregate,
                                                     SIMT_HERE) {
    ExclusiveScan(input, output, T{}, cub::Sum(), block_aggregate, here);
  }
  template <int ITEMS, class Prefix> SIMT_INLINE void ExclusiveSum(T (&input)[ITEMS], T (&output)[ITEMS],
                                                                   Prefix& prefix, SIMT_HERE) {
    ExclusiveScan(input, output, cub::Sum(), prefix, here);
  }

 private:
  // before: op over the items of all threads before this one (undefined for thread 0); inclusive: with its own.
  template <class Op> SIMT_INLINE void scan(T input, T& before, T& inclusive, Op op, T& aggregate, int line) {
    detail::check_block<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>(what, line);
    const int thread = (int)simt::linear_thread(), warp = thread / 32, lane = thread % 32;
    T* const sums = storage_.sums.values();
    T own = detail::ladder<32>(input, op, what, line);
    T previous = detail::shuffled(~0u, own, lane ? (unsigned)lane - 1 : 0u, what, line);
    if (lane == 31 || thread == threads - 1) sums[warp] = own;
    simt::barrier(line);
    T ahead = sums[0], all = sums[0];
    for (int w = 1; w < warps; ++w) {
      if (w == warp) ahead = all;
      all = op(all, sums[w]);
    }
    if (warp) {
      previous = lane ? op(ahead, previous) : ahead;
      own = op(ahead, own);
    }
    before = thread ? previous : detail::undefined<T>();
    inclusive = own;
    aggregate = all;
  }
  template <class Prefix> SIMT_INLINE T call_prefix(Prefix& prefix, const T& aggregate, int line) {
    T* const shared = storage_.prefix.values();
    if (simt::linear_thread() < 32) {
      const T start = prefix(aggregate);
      if (simt::linear_thread() == 0) *shared = start;
    }
    simt::barrier(line);
    return *shared;
  }
  // input and output may be the same array.
  template <int ITEMS, class Op>
  SIMT_INLINE static void run_inclusive(T (&input)[ITEMS], T (&output)[ITEMS], Op op, const T& before,
                                        bool has_before) {
    T sum = input[0];
    if (has_before) sum = op(before, sum);
    output[0] = sum;
    for (int i = 1; i < ITEMS; ++i) output[i] = sum = op(sum, input[i]);
  }
  template <int ITEMS, class Op> SIMT_INLINE static void run_exclusive(T (&input)[ITEMS], T (&output)[ITEMS], Op op,
                                                                       T sum) {
    for (int i = 0; i < ITEMS; ++i) {
      const T next = op(sum, input[i]);
      output[i] = sum;
      sum = next;
    }
  }
  TempStorage& storage_;
};

}  // namespace cub
