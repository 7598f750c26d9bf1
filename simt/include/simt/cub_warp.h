// cub::WarpReduce and cub::WarpScan: lanes of a warp add up by shuffles.
#pragma once

#include <simt/cub_values.h>

namespace cub {
namespace detail {

// The lanes of the calling lane's logical warp, and its place there.
template <int Threads>
struct Logical {
  static_assert(Threads >= 1 && Threads <= 32, "a logical warp has 1 to 32 threads");
  SIMT_INLINE static unsigned rank() { return simt::lane() % Threads; }
  SIMT_INLINE static unsigned first() { return simt::lane() - rank(); }
  SIMT_INLINE static unsigned lanes() { return (Threads == 32 ? ~0u : (1u << Threads % 32) - 1) << first(); }
};

// Out of line, since they touch nothing but the lanes' own values.
// Lane l gets the values of lanes l … last(l), for as far as powers of two reach: what all need is at the first.
template <int Threads, class T, class Op>
__attribute__((noinline)) T tree(T value, Op op, unsigned last, const char* what, int line) {
  const unsigned rank = Logical<Threads>::rank(), first = Logical<Threads>::first(), lanes = Logical<Threads>::lanes();
  for (unsigned step = 1; step < Threads; step *= 2) {
    const unsigned from = rank + step;
    const T other = shuffled(lanes, value, from < Threads ? first + from : simt::lane(), what, line);
    if (from <= last) value = op(value, other);
  }
  return value;
}

// Lane l gets the values of lanes 0 … l.
template <int Threads, class T, class Op>
__attribute__((noinline)) T ladder(T value, Op op, const char* what, int line) {
  const unsigned rank = Logical<Threads>::rank(), lanes = Logical<Threads>::lanes();
  for (unsigned step = 1; step < Threads; step *= 2) {
    const T other = shuffled(lanes, value, rank >= step ? simt::lane() - step : simt::lane(), what, line);
    if (rank >= step) value = op(other, value);
  }
  return value;
}

}  // namespace detail

// The result is the first lane's (of each segment); what the others get is undefined.
template <class T, int LOGICAL_WARP_THREADS = 32>
class WarpReduce {
  typedef detail::Logical<LOGICAL_WARP_THREADS> Warp;
  static constexpr const char* what = "cub::WarpReduce";

 public:
  struct TempStorage {};
  explicit WarpReduce(TempStorage&) {}

  template <class Op> T Reduce(T input, Op op, SIMT_HERE) {
    return detail::tree<LOGICAL_WARP_THREADS>(input, op, end, what, here.number);
  }
  template <class Op> T Reduce(T input, Op op, int valid_items, SIMT_HERE) {
    return detail::tree<LOGICAL_WARP_THREADS>(input, op, (unsigned)valid_items - 1, what, here.number);
  }
  T Sum(T input, SIMT_HERE) { return Reduce(input, cub::Sum(), here); }
  T Sum(T input, int valid_items, SIMT_HERE) { return Reduce(input, cub::Sum(), valid_items, here); }

  // A flag marks the first item of each segment, or the last.
  template <class Flag, class Op> T HeadSegmentedReduce(T input, Flag head, Op op, SIMT_HERE) {
    const std::uint64_t heads = flags(head, here.number) >> (Warp::rank() + 1);
    return detail::tree<LOGICAL_WARP_THREADS>(input, op, heads ? Warp::rank() + (unsigned)__builtin_ctzll(heads) : end,
                                              what, here.number);
  }
  template <class Flag, class Op> T TailSegmentedReduce(T input, Flag tail, Op op, SIMT_HERE) {
    const std::uint64_t tails = flags(tail, here.number) >> Warp::rank();
    return detail::tree<LOGICAL_WARP_THREADS>(input, op, tails ? Warp::rank() + (unsigned)__builtin_ctzll(tails) : end,
                                              what, here.number);
  }
  template <class Flag> T HeadSegmentedSum(T input, Flag head, SIMT_HERE) {
    return HeadSegmentedReduce(input, head, cub::Sum(), here);
  }
  template <class Flag> T TailSegmentedSum(T input, Flag tail, SIMT_HERE) {
    return TailSegmentedReduce(input, tail, cub::Sum(), here);
  }

 private:
  static constexpr unsigned end = LOGICAL_WARP_THREADS - 1;
  // One bit a rank.
  static std::uint64_t flags(bool flag, int line) {
    return simt::voters(simt::exchange(Warp::lanes(), flag, what, line)) >> Warp::first();
  }
};

template <class T, int LOGICAL_WARP_THREADS = 32>
class WarpScan {
  typedef detail::Logical<LOGICAL_WARP_THREADS> Warp;
  static constexpr const char* what = "cub::WarpScan";

 public:
  struct TempStorage {};
  explicit WarpScan(TempStorage&) {}

  template <class Op> SIMT_INLINE void InclusiveScan(T input, T& output, Op op, SIMT_HERE) {
    output = detail::ladder<LOGICAL_WARP_THREADS>(input, op, what, here.number);
  }
  template <class Op> SIMT_INLINE void InclusiveScan(T input, T& output, Op op, T& aggregate, SIMT_HERE) {
    output = detail::ladder<LOGICAL_WARP_THREADS>(input, op, what, here.number);
    aggregate = last(output, here.number);
  }
  template <class Op> SIMT_INLINE void InclusiveScan(T input, T& output, T initial, Op op, SIMT_HERE) {
    output = op(initial, detail::ladder<LOGICAL_WARP_THREADS>(input, op, what, here.number));
  }
  template <class Op> SIMT_INLINE void InclusiveScan(T input, T& output, T initial, Op op, T& aggregate, SIMT_HERE) {
    const T inclusive = detail::ladder<LOGICAL_WARP_THREADS>(input, op, what, here.number);
    aggregate = last(inclusive, here.number);
    output = op(initial, inclusive);
  }
  // Without an initial value the first lane's result is undefined.
  template <class Op> SIMT_INLINE void ExclusiveScan(T input, T& output, Op op, SIMT_HERE) {
    output = before(detail::ladder<LOGICAL_WARP_THREADS>(input, op, what, here.number), here.number);
  }
  template <class Op> SIMT_INLINE void ExclusiveScan(T input, T& output, Op op, T& aggregate, SIMT_HERE) {
    const T inclusive = detail::ladder<LOGICAL_WARP_THREADS>(input, op, what, here.number);
    aggregate = last(inclusive, here.number);
    output = before(inclusive, here.number);
  }
  template <class Op> SIMT_INLINE void ExclusiveScan(T input, T& output, T initial, Op op, SIMT_HERE) {
    output = from(initial, detail::ladder<LOGICAL_WARP_THREADS>(input, op, what, here.number), op, here.number);
  }
  template <class Op> SIMT_INLINE void ExclusiveScan(T input, T& output, T initial, Op op, T& aggregate, SIMT_HERE) {
    const T inclusive = detail::ladder<LOGICAL_WARP_THREADS>(input, op, what, here.number);
    aggregate = last(inclusive, here.number);
    output = from(initial, inclusive, op, here.number);
  }
  template <class Op> SIMT_INLINE void Scan(T input, T& inclusive, T& exclusive, Op op, SIMT_HERE) {
    inclusive = detail::ladder<LOGICAL_WARP_THREADS>(input, op, what, here.number);
    exclusive = before(inclusive, here.number);
  }
  template <class Op> SIMT_INLINE void Scan(T input, T& inclusive, T& exclusive, T initial, Op op, SIMT_HERE) {
    const T own = detail::ladder<LOGICAL_WARP_THREADS>(input, op, what, here.number);
    exclusive = from(initial, own, op, here.number);
    inclusive = op(initial, own);
  }
  SIMT_INLINE void InclusiveSum(T input, T& output, SIMT_HERE) { InclusiveScan(input, output, cub::Sum(), here); }
  SIMT_INLINE void InclusiveSum(T input, T& output, T& aggregate, SIMT_HERE) {
    InclusiveScan(input, output, cub::Sum(), aggregate, here);
  }
  SIMT_INLINE void ExclusiveSum(T input, T& output, SIMT_HERE) { ExclusiveScan(input, output, T{}, cub::Sum(), here); }
  SIMT_INLINE void ExclusiveSum(T input, T& output, T& aggregate, SIMT_HERE) {
    ExclusiveScan(input, output, T{}, cub::Sum(), aggregate, here);
  }
  SIMT_INLINE T Broadcast(T input, unsigned source, SIMT_HERE) {
    return detail::shuffled(Warp::lanes(), input, Warp::first() + source, what, here.number);
  }

 private:
  static T last(const T& inclusive, int line) {
    return detail::shuffled(Warp::lanes(), inclusive, Warp::first() + LOGICAL_WARP_THREADS - 1, what, line);
  }
  static T before(const T& inclusive, int line) {
    const T previous =
        detail::shuffled(Warp::lanes(), inclusive, Warp::rank() ? simt::lane() - 1 : simt::lane(), what, line);
    return Warp::rank() ? previous : detail::undefined<T>();
  }
  template <class Op> static T from(const T& initial, const T& inclusive, Op op, int line) {
    const T previous =
        detail::shuffled(Warp::lanes(), inclusive, Warp::rank() ? simt::lane() - 1 : simt::lane(), what, line);
    return Warp::rank() ? op(initial, previous) : initial;
  }
};

}  // namespace cub
