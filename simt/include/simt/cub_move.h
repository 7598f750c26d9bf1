// cub::BlockLoad and cub::BlockStore: each thread gets, or gives, neighbouring items, whichever way they cross memory.
#pragma once

#include <simt/cub_values.h>

namespace cub {

// direct: each thread its own neighbours. striped: item i of all threads side by side, and so kept. vectorize: direct,
// in pieces of up to 16 bytes. transpose: striped in memory, turned through shared memory; warp_transpose: by warps.
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

// ---- where item i of a thread lies ----

namespace detail {

struct Blocked {
  template <int items> SIMT_INLINE static int at(int thread, int i) { return thread * items + i; }
};
template <int threads>
struct Striped {
  template <int items> SIMT_INLINE static int at(int thread, int i) { return i * threads + thread; }
};
struct WarpStriped {
  template <int items> SIMT_INLINE static int at(int thread, int i) {
    return (thread / 32 * items + i) * 32 + thread % 32;
  }
};

// Elements beyond `valid` are left as they are.
template <class Way, class T, int items, class In>
SIMT_INLINE void take(int thread, In in, T (&to)[items], int valid = 0x7fffffff) {
  for (int i = 0; i < items; ++i) {
    const int at = Way::template at<items>(thread, i);
    if (at < valid) to[i] = in[at];
  }
}
template <class Way, class T, int items, class Out>
SIMT_INLINE void give(int thread, Out out, T (&from)[items], int valid = 0x7fffffff) {
  for (int i = 0; i < items; ++i) {
    const int at = Way::template at<items>(thread, i);
    if (at < valid) out[at] = from[i];
  }
}

template <int bytes> struct Piece {
  typedef void type;
};
template <> struct Piece<4> {
  typedef unsigned type;
};
template <> struct Piece<8> {
  typedef unsigned long type;
};
template <> struct Piece<16> {
  typedef unsigned __int128 type;
};
// What vectorize moves at a time: 4 or 2 items, as far as 16 bytes hold them.
template <class T, int items>
inline constexpr int piece_bytes = items % 4 == 0 && sizeof(T) * 4 <= 16   ? (int)sizeof(T) * 4
                                   : items % 2 == 0 && sizeof(T) * 2 <= 16 ? (int)sizeof(T) * 2
                                                                           : 0;
template <class T, int items>
inline constexpr bool pieces = piece_bytes<T, items> == 4 || piece_bytes<T, items> == 8 || piece_bytes<T, items> == 16;

template <class T, int items>
SIMT_INLINE bool take_pieces(int thread, const T* in, T (&to)[items]) {
  if constexpr (pieces<T, items>) {
    typedef typename Piece<piece_bytes<T, items>>::type P;
    if ((std::size_t)in % sizeof(P)) return false;
    const P* from = (const P*)(in + thread * items);
    for (int i = 0; i < (int)(items * sizeof(T) / sizeof(P)); ++i) {
      const P piece = from[i];
      __builtin_memcpy((char*)to + i * sizeof(P), &piece, sizeof(P));
    }
    return true;
  }
  return false;
}
template <class T, int items>
SIMT_INLINE bool give_pieces(int thread, T* out, T (&from)[items]) {
  if constexpr (pieces<T, items>) {
    typedef typename Piece<piece_bytes<T, items>>::type P;
    if ((std::size_t)out % sizeof(P)) return false;
    P* to = (P*)(out + thread * items);
    for (int i = 0; i < (int)(items * sizeof(T) / sizeof(P)); ++i) {
      P piece;
      __builtin_memcpy(&piece, (const char*)from + i * sizeof(P), sizeof(P));
      to[i] = piece;
    }
    return true;
  }
  return false;
}

// Items turned through shared memory. For powers of two above 4 one item in 32 is left out, against bank conflicts.
template <class T, int threads, int items>
struct Turn {
  static constexpr bool padded = items > 4 && (items & (items - 1)) == 0;
  static constexpr int size = threads * items + (padded ? threads * items / 32 : 0);
  Room<T, size> room;
  SIMT_INLINE static int padded_at(int at) { return padded ? at + at / 32 : at; }

  // Written in one way, read in the other; in between all that share them meet.
  template <class From, class To> SIMT_INLINE void turn(T (&values)[items], bool warp_only, int line) {
    const int thread = (int)simt::linear_thread();
    T* const shared = room.values();
    for (int i = 0; i < items; ++i) shared[padded_at(From::template at<items>(thread, i))] = values[i];
    if (warp_only)
      __syncwarp(~0u, line);
    else
      simt::barrier(line);
    for (int i = 0; i < items; ++i) values[i] = shared[padded_at(To::template at<items>(thread, i))];
  }
};
struct NoTurn {};

template <bool turns, class T, int threads, int items> struct Storage {
  typedef Turn<T, threads, items> type;
};
template <class T, int threads, int items> struct Storage<false, T, threads, items> {
  typedef NoTurn type;
};

template <class T> inline constexpr bool is_pointer = false;
template <class T> inline constexpr bool is_pointer<T*> = true;

}  // namespace detail

// block_itr: a pointer or iterator to the block's first item.
template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD, BlockLoadAlgorithm ALGORITHM = BLOCK_LOAD_DIRECT,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1>
class BlockLoad {
  static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  static constexpr bool by_warps =
      ALGORITHM == BLOCK_LOAD_WARP_TRANSPOSE || ALGORITHM == BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED;
  static constexpr bool turns = by_warps || ALGORITHM == BLOCK_LOAD_TRANSPOSE;
  static_assert(!by_warps || threads % 32 == 0, "WARP_TRANSPOSE needs whole warps");
  static constexpr const char* what = "cub::BlockLoad";

 public:
  typedef typename detail::Storage<turns, T, threads, ITEMS_PER_THREAD>::type TempStorage;
  SIMT_INLINE BlockLoad() : storage_(detail::private_storage<TempStorage>()) {}
  SIMT_INLINE explicit BlockLoad(TempStorage& storage) : storage_(storage) {}

  template <class In> SIMT_INLINE void Load(In block_itr, T (&items)[ITEMS_PER_THREAD], SIMT_HERE) {
    if constexpr (ALGORITHM == BLOCK_LOAD_VECTORIZE && detail::is_pointer<In>) {
      detail::check_block<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>(what, here.number);
      if (detail::take_pieces((int)simt::linear_thread(), block_itr, items)) return;
    }
    load(block_itr, items, 0x7fffffff, here.number);
  }
  // Items from valid_items on are left as they are, or set to a default.
  template <class In> SIMT_INLINE void Load(In block_itr, T (&items)[ITEMS_PER_THREAD], int valid_items, SIMT_HERE) {
    load(block_itr, items, valid_items, here.number);
  }
  template <class In, class Default>
  SIMT_INLINE void Load(In block_itr, T (&items)[ITEMS_PER_THREAD], int valid_items, Default oob_default, SIMT_HERE) {
    for (T& item : items) item = oob_default;
    load(block_itr, items, valid_items, here.number);
  }

 private:
  template <class In> SIMT_INLINE void load(In in, T (&items)[ITEMS_PER_THREAD], int valid, int line) {
    detail::check_block<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>(what, line);
    const int thread = (int)simt::linear_thread();
    typedef detail::Striped<threads> Striped;
    if constexpr (by_warps) {
      detail::take<detail::WarpStriped>(thread, in, items, valid);
      storage_.template turn<detail::WarpStriped, detail::Blocked>(items, true, line);
    } else if constexpr (turns) {
      detail::take<Striped>(thread, in, items, valid);
      storage_.template turn<Striped, detail::Blocked>(items, false, line);
    } else if constexpr (ALGORITHM == BLOCK_LOAD_STRIPED) {
      detail::take<Striped>(thread, in, items, valid);
    } else {
      detail::take<detail::Blocked>(thread, in, items, valid);
    }
  }
  TempStorage& storage_;
};

template <class T, int BLOCK_DIM_X, int ITEMS_PER_THREAD, BlockStoreAlgorithm ALGORITHM = BLOCK_STORE_DIRECT,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1>
class BlockStore {
  static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  static constexpr bool by_warps =
      ALGORITHM == BLOCK_STORE_WARP_TRANSPOSE || ALGORITHM == BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED;
  static constexpr bool turns = by_warps || ALGORITHM == BLOCK_STORE_TRANSPOSE;
  static_assert(!by_warps || threads % 32 == 0, "WARP_TRANSPOSE needs whole warps");
  static constexpr const char* what = "cub::BlockStore";

 public:
  typedef typename detail::Storage<turns, T, threads, ITEMS_PER_THREAD>::type TempStorage;
  SIMT_INLINE BlockStore() : storage_(detail::private_storage<TempStorage>()) {}
  SIMT_INLINE explicit BlockStore(TempStorage& storage) : storage_(storage) {}

  template <class Out> SIMT_INLINE void Store(Out block_itr, T (&items)[ITEMS_PER_THREAD], SIMT_HERE) {
    if constexpr (ALGORITHM == BLOCK_STORE_VECTORIZE && detail::is_pointer<Out>) {
      detail::check_block<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>(what, here.number);
      if (detail::give_pieces((int)simt::linear_thread(), block_itr, items)) return;
    }
    store(block_itr, items, 0x7fffffff, here.number);
  }
  template <class Out> SIMT_INLINE void Store(Out block_itr, T (&items)[ITEMS_PER_THREAD], int valid_items, SIMT_HERE) {
    store(block_itr, items, valid_items, here.number);
  }

 private:
  template <class Out> SIMT_INLINE void store(Out out, T (&items)[ITEMS_PER_THREAD], int valid, int line) {
    detail::check_block<BLOCK_DIM_X, BLOCK_DIM_Y, BLOCK_DIM_Z>(what, line);
    const int thread = (int)simt::linear_thread();
    typedef detail::Striped<threads> Striped;
    if constexpr (by_warps) {
      storage_.template turn<detail::Blocked, detail::WarpStriped>(items, true, line);
      detail::give<detail::WarpStriped>(thread, out, items, valid);
    } else if constexpr (turns) {
      storage_.template turn<detail::Blocked, Striped>(items, false, line);
      detail::give<Striped>(thread, out, items, valid);
    } else if constexpr (ALGORITHM == BLOCK_STORE_STRIPED) {
      detail::give<Striped>(thread, out, items, valid);
    } else {
      detail::give<detail::Blocked>(thread, out, items, valid);
    }
  }
  TempStorage& storage_;
};

// ---- the same as functions, without storage ----

template <class T, int ITEMS, class In>
SIMT_INLINE void LoadDirectBlocked(int thread, In in, T (&items)[ITEMS]) {
  detail::take<detail::Blocked>(thread, in, items);
}
template <class T, int ITEMS, class In>
SIMT_INLINE void LoadDirectBlocked(int thread, In in, T (&items)[ITEMS], int valid_items) {
  detail::take<detail::Blocked>(thread, in, items, valid_items);
}
template <int THREADS, class T, int ITEMS, class In>
SIMT_INLINE void LoadDirectStriped(int thread, In in, T (&items)[ITEMS]) {
  detail::take<detail::Striped<THREADS>>(thread, in, items);
}
template <int THREADS, class T, int ITEMS, class In>
SIMT_INLINE void LoadDirectStriped(int thread, In in, T (&items)[ITEMS], int valid_items) {
  detail::take<detail::Striped<THREADS>>(thread, in, items, valid_items);
}
template <class T, int ITEMS, class Out>
SIMT_INLINE void StoreDirectBlocked(int thread, Out out, T (&items)[ITEMS]) {
  detail::give<detail::Blocked>(thread, out, items);
}
template <class T, int ITEMS, class Out>
SIMT_INLINE void StoreDirectBlocked(int thread, Out out, T (&items)[ITEMS], int valid_items) {
  detail::give<detail::Blocked>(thread, out, items, valid_items);
}
template <int THREADS, class T, int ITEMS, class Out>
SIMT_INLINE void StoreDirectStriped(int thread, Out out, T (&items)[ITEMS]) {
  detail::give<detail::Striped<THREADS>>(thread, out, items);
}
template <int THREADS, class T, int ITEMS, class Out>
SIMT_INLINE void StoreDirectStriped(int thread, Out out, T (&items)[ITEMS], int valid_items) {
  detail::give<detail::Striped<THREADS>>(thread, out, items, valid_items);
}

}  // namespace cub
