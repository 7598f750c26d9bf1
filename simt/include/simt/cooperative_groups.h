// Cooperative groups: the block, tiles of a warp, the lanes that happen to run together, and the whole grid.
#pragma once

#include <simt/types.h>
#include <simt/warp.h>

namespace cooperative_groups {

namespace detail {
struct Make;   // makes the groups that students get from partitions
}

// A part of one warp, a block, or the grid.
class thread_group {
 public:
  inline void sync(int line = __builtin_LINE()) const;
  inline unsigned long long num_threads() const;
  unsigned long long size() const { return num_threads(); }
  inline unsigned long long thread_rank() const;
  bool is_valid() const { return !grid_ || simt::cooperative_launch(); }
  unsigned lanes() const { return lanes_; }   // of the warp, one bit each; 0 for a block and the grid

 protected:
  constexpr explicit thread_group(unsigned lanes, bool grid = false) : lanes_(lanes), grid_(grid) {}
  unsigned lanes_;
  bool grid_;
  friend detail::Make;
};

// ---- block ----

class thread_block : public thread_group {
 public:
  struct arrival_token {};

  static void sync(int line = __builtin_LINE()) { simt::barrier(line); }
  static arrival_token barrier_arrive() { return {}; }
  static void barrier_wait(arrival_token&&, int line = __builtin_LINE()) { simt::barrier(line); }
  static unsigned thread_rank() { return simt::linear_thread(); }
  static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned size() { return num_threads(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }

 private:
  constexpr thread_block() : thread_group(0) {}
  friend thread_block this_thread_block();
};

inline thread_block this_thread_block() { return {}; }

// ---- collectives on any part of a warp ----

namespace detail {

template <class T>
struct Words {
  static_assert(__is_trivially_copyable(T) && sizeof(T) <= 32,
                "a group exchanges values of at most 32 bytes that can be copied as bytes");
  static constexpr unsigned count = (sizeof(T) + 7) / 8;
  std::uint64_t word[count] = {};
};

template <class T>
T shuffled(unsigned lanes, const T& value, unsigned source, const char* what, int line) {
  Words<T> words;
  __builtin_memcpy(words.word, &value, sizeof(T));
  for (auto& word : words.word) word = simt::shuffled(lanes, word, source, sizeof(T), what, line);
  T result = value;
  __builtin_memcpy((void*)&result, words.word, sizeof(T));
  return result;
}

}  // namespace detail

// ---- tiles: `Size` neighbouring threads, a power of two up to a warp ----

template <unsigned Size, class Parent = void>
class thread_block_tile;

template <unsigned Size>
class thread_block_tile<Size, void> : public thread_group {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                "simt supports tiles of 1, 2, 4, 8, 16 or 32 threads; tiles wider than a warp need a GPU");

 public:
  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  static unsigned thread_rank() { return simt::linear_thread() % Size; }
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }

  template <class T> T shfl(T value, int rank, int line = __builtin_LINE()) const {
    return detail::shuffled(lanes_, value, simt::lane_of(simt::lane(), rank, Size), "shfl()", line);
  }
  template <class T> T shfl_up(T value, unsigned delta, int line = __builtin_LINE()) const {
    return detail::shuffled(lanes_, value, simt::lane_below(simt::lane(), delta, Size), "shfl_up()", line);
  }
  template <class T> T shfl_down(T value, unsigned delta, int line = __builtin_LINE()) const {
    return detail::shuffled(lanes_, value, simt::lane_above(simt::lane(), delta, Size), "shfl_down()", line);
  }
  template <class T> T shfl_xor(T value, unsigned lane_mask, int line = __builtin_LINE()) const {
    return detail::shuffled(lanes_, value, simt::lane_across(simt::lane(), (int)lane_mask, Size), "shfl_xor()", line);
  }
  int any(int predicate, int line = __builtin_LINE()) const { return __any_sync(lanes_, predicate, line); }
  int all(int predicate, int line = __builtin_LINE()) const { return __all_sync(lanes_, predicate, line); }
  unsigned ballot(int predicate, int line = __builtin_LINE()) const {
    return __ballot_sync(lanes_, predicate, line) >> start();
  }
  template <class T> unsigned match_any(T value, int line = __builtin_LINE()) const {
    return __match_any_sync(lanes_, value, line) >> start();
  }
  template <class T> unsigned match_all(T value, int& all, int line = __builtin_LINE()) const {
    return __match_all_sync(lanes_, value, &all, line) >> start();
  }

 protected:
  thread_block_tile(unsigned meta_rank, unsigned meta_size)
      : thread_group((Size == 32 ? ~0u : (1u << Size % 32) - 1) << start()),
        meta_rank_(meta_rank),
        meta_size_(meta_size) {}
  static unsigned start() { return simt::lane() / Size * Size; }

  unsigned meta_rank_, meta_size_;
};

template <unsigned Size, class Parent>
class thread_block_tile : public thread_block_tile<Size, void> {
  using thread_block_tile<Size, void>::thread_block_tile;
  template <unsigned N> friend thread_block_tile<N, thread_block> tiled_partition(const thread_block&);
  template <unsigned N, unsigned M, class P>
  friend thread_block_tile<N, thread_block_tile<M, P>> tiled_partition(const thread_block_tile<M, P>&);
};

template <unsigned Size>
thread_block_tile<Size, thread_block> tiled_partition(const thread_block&) {
  return {simt::linear_thread() / Size, (thread_block::num_threads() + Size - 1) / Size};
}
template <unsigned Size, unsigned ParentSize, class Grandparent>
thread_block_tile<Size, thread_block_tile<ParentSize, Grandparent>> tiled_partition(
    const thread_block_tile<ParentSize, Grandparent>&) {
  static_assert(Size <= ParentSize, "a tile can't be larger than the tile it is part of");
  return {simt::linear_thread() % ParentSize / Size, ParentSize / Size};
}

// ---- lanes that run together ----

class coalesced_group : public thread_group {
 public:
  unsigned num_threads() const { return (unsigned)__popc(lanes_); }
  unsigned size() const { return num_threads(); }
  unsigned thread_rank() const { return (unsigned)__popc(lanes_ & ((1u << simt::lane()) - 1)); }
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }

  template <class T> T shfl(T value, int rank, int line = __builtin_LINE()) const {
    return detail::shuffled(lanes_, value, lane_at(rank), "shfl()", line);
  }
  template <class T> T shfl_up(T value, unsigned delta, int line = __builtin_LINE()) const {
    const unsigned rank = thread_rank();
    return detail::shuffled(lanes_, value, delta > rank ? simt::lane() : lane_at((int)(rank - delta)), "shfl_up()",
                            line);
  }
  template <class T> T shfl_down(T value, unsigned delta, int line = __builtin_LINE()) const {
    const unsigned rank = thread_rank();
    return detail::shuffled(lanes_, value, delta >= size() - rank ? simt::lane() : lane_at((int)(rank + delta)),
                            "shfl_down()", line);
  }
  int any(int predicate, int line = __builtin_LINE()) const { return __any_sync(lanes_, predicate, line); }
  int all(int predicate, int line = __builtin_LINE()) const { return __all_sync(lanes_, predicate, line); }
  unsigned ballot(int predicate, int line = __builtin_LINE()) const {
    return by_rank(__ballot_sync(lanes_, predicate, line));
  }
  template <class T> unsigned match_any(T value, int line = __builtin_LINE()) const {
    return by_rank(__match_any_sync(lanes_, value, line));
  }
  template <class T> unsigned match_all(T value, int& all, int line = __builtin_LINE()) const {
    return by_rank(__match_all_sync(lanes_, value, &all, line));
  }

 private:
  explicit coalesced_group(unsigned lanes, unsigned meta_rank, unsigned meta_size)
      : thread_group(lanes), meta_rank_(meta_rank), meta_size_(meta_size) {}
  unsigned lane_at(int rank) const { return __fns(lanes_, 0, rank + 1) & 31u; }
  unsigned by_rank(unsigned lanes) const {
    unsigned ranks = 0;
    for (unsigned lane = 0, rank = 0; lane < 32; ++lane)
      if (lanes_ >> lane & 1) ranks |= (lanes >> lane & 1) << rank++;
    return ranks;
  }

  unsigned meta_rank_, meta_size_;
  friend detail::Make;
};

struct detail::Make {
  static thread_group part(unsigned lanes) { return thread_group(lanes); }
  static coalesced_group coalesced(unsigned lanes, unsigned meta_rank, unsigned meta_size) {
    return coalesced_group(lanes, meta_rank, meta_size);
  }
};

inline coalesced_group coalesced_threads(int line = __builtin_LINE()) {
  return detail::Make::coalesced(simt::active_mask(line), 0, 1);
}

// ---- partitions whose size is known only when they are made ----

inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
  const unsigned rank = (unsigned)parent.thread_rank();
  if (!parent.lanes()) {                                             // a block: neighbouring lanes, up to a warp
    const unsigned tile = size >= 32 ? ~0u : (1u << size) - 1;
    return detail::Make::part(tile << simt::lane() / size * size % 32);
  }
  unsigned lanes = 0;
  for (unsigned lane = 0, at = 0; lane < 32; ++lane)
    if (parent.lanes() >> lane & 1 && at++ / size == rank / size) lanes |= 1u << lane;
  return detail::Make::part(lanes);
}
inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
  const thread_group part = tiled_partition(static_cast<const thread_group&>(parent), size);
  return detail::Make::coalesced(part.lanes(), parent.thread_rank() / size, (parent.size() + size - 1) / size);
}

// Threads of the group with the same label; groups are numbered by the first lane of each.
template <class Group, class T>
coalesced_group labeled_partition(const Group& group, T label, int line = __builtin_LINE()) {
  static_assert(
      requires { group.meta_group_size(); },
      "labeled_partition works on a tile or a coalesced group, not on a block or the grid");
  static_assert(sizeof(T) <= 8, "a label has at most 8 bytes");
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &label, sizeof(T));
  const simt::Exchange met = simt::exchange(group.lanes(), bits, "labeled_partition()", line);
  const unsigned own = simt::matching(met, bits);
  unsigned rank = 0, count = 0;
  for (unsigned rest = met.present; rest; ++count) {
    const unsigned same = simt::matching(met, simt::put_in(met.value, __builtin_ctz(rest)));
    if (same == own) rank = count;
    rest &= ~same;
  }
  return detail::Make::coalesced(own, rank, count);
}
template <class Group>
coalesced_group binary_partition(const Group& group, bool predicate, int line = __builtin_LINE()) {
  static_assert(
      requires { group.meta_group_size(); },
      "binary_partition works on a tile or a coalesced group, not on a block or the grid");
  const simt::Exchange met = simt::exchange(group.lanes(), predicate, "binary_partition()", line);
  return detail::Make::coalesced(simt::matching(met, predicate), predicate, 2);
}

inline thread_block_tile<1, thread_block> this_thread() { return tiled_partition<1>(this_thread_block()); }

// ---- grid ----

class grid_group : public thread_group {
 public:
  constexpr grid_group() : thread_group(0, true) {}
  void sync(int line = __builtin_LINE()) const { simt::grid_barrier(line); }
  static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
  static unsigned long long size() { return num_threads(); }
  static unsigned long long block_rank() {
    return (1ull * blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  static unsigned long long thread_rank() { return block_rank() * thread_block::num_threads() + simt::linear_thread(); }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 dim_threads() { return {gridDim.x * blockDim.x, gridDim.y * blockDim.y, gridDim.z * blockDim.z}; }
  static dim3 block_index() { return blockIdx; }
  static dim3 thread_index() {
    return {blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
            blockIdx.z * blockDim.z + threadIdx.z};
  }
};

inline grid_group this_grid() { return {}; }

void thread_group::sync(int line) const {
  if (lanes_)
    simt::exchange(lanes_, 0, "sync()", line);
  else if (grid_)
    simt::grid_barrier(line);
  else
    simt::barrier(line);
}
unsigned long long thread_group::num_threads() const {
  return lanes_ ? (unsigned)__popc(lanes_) : grid_ ? grid_group::num_threads() : thread_block::num_threads();
}
unsigned long long thread_group::thread_rank() const {
  return lanes_  ? (unsigned)__popc(lanes_ & ((1u << simt::lane()) - 1))
         : grid_ ? grid_group::thread_rank()
                 : simt::linear_thread();
}

// ---- free functions on any group ----

template <class Group> void sync(const Group& group, int line = __builtin_LINE()) { group.sync(line); }
template <class Group> auto thread_rank(const Group& group) { return group.thread_rank(); }
template <class Group> auto group_size(const Group& group) { return group.size(); }

template <class Group, class F, class... A>
void invoke_one(const Group& group, F&& call, A&&... arguments) {
  if (group.thread_rank() == 0) call(static_cast<A&&>(arguments)...);
}
template <class Group, class F>
auto invoke_one_broadcast(const Group& group, F&& call, int line = __builtin_LINE()) -> decltype(call()) {
  decltype(call()) result{};
  if (group.thread_rank() == 0) result = call();
  return group.shfl(result, 0, line);
}

}  // namespace cooperative_groups
