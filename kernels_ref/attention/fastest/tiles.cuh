constexpr int WARPS = 4;
constexpr int THREADS = 32 * WARPS;
constexpr int CHUNK = 16;                                    // keys whose scores a warp has at a time
constexpr int BLOCKS = 2;                                    // of a multiprocessor
constexpr int STAGES = 3;                                    // tiles of the ring
template <int D> constexpr int M = D <= 64 ? 2 : 1;          // times 16 queries of a warp
template <int D> constexpr int QUERIES = 16 * M<D> * WARPS;  // of a block
template <int D> constexpr int TILE = D <= 64 ? 64 : 32;     // keys and values
template <int D> constexpr int ROW = 2 * D;                  // bytes of a key
template <int D> constexpr int STAGE_BYTES = 2 * TILE<D> * ROW<D>;
constexpr float HEADROOM = 4.0f;  // the largest exponential is 2^-HEADROOM when the bound has risen

// Returns where the 16-byte chunk `c` of a row lies in it: eight rows have the same chunk in different banks.
template <int D>
__device__ __forceinline__ int swizzled(int row, int c) {
    return D == 32 ? c ^ row / 2 % 4 : c ^ row % 8;
}

// Where this thread copies keys and values from and to.
template <int D>
struct Copies {
    static constexpr int CHUNKS = D / 8, LINES = THREADS / CHUNKS;  // of a row; rows that all threads copy at a time
    const __half *k, *v;  // what this thread copies of its first row of the next tile
    int left;  // rows from that one on
    unsigned to;

    __device__ __forceinline__ Copies(const __half* keys, const __half* values, unsigned ring, int length, int depth) {
        const int row = threadIdx.x / CHUNKS, c = threadIdx.x % CHUNKS;
        left = length - row;
        k = keys + (int64_t)row * depth + 8 * c;
        v = values + (int64_t)row * depth + 8 * c;
        to = ring + row * ROW<D> + swizzled<D>(row, c) * 16;
    }

    // Begins to copy the next tile to a place of the ring; what lies past the end, or past the depth, is 0.
    __device__ __forceinline__ void copy(int place, int depth) {
        const unsigned at = to + place * STAGE_BYTES<D>;
        if (depth == D && left > TILE<D> - LINES) {  // all is there, and rows lie a constant apart
#pragma unroll
            for (int i = 0; i < TILE<D>; i += LINES) {
                copy_16(at + i * ROW<D>, k + i * D);
                copy_16(at + (TILE<D> + i) * ROW<D>, v + i * D);
            }
        } else {
#pragma unroll
            for (int i = 0; i < TILE<D>; i += LINES) {
                const bool exists = i < left && threadIdx.x % CHUNKS * 8 < depth;
                copy_16(at + i * ROW<D>, exists ? k + (int64_t)i * depth : k, exists);
                copy_16(at + (TILE<D> + i) * ROW<D>, exists ? v + (int64_t)i * depth : v, exists);
            }
        }
        left -= TILE<D>;
        k += (int64_t)TILE<D> * depth;
        v += (int64_t)TILE<D> * depth;
    }
};

// Loads the fragments of 16 M rows of `depth` halves, of which `first` is this warp's first. Zeros follow a row, and
// rows past the end repeat the last one.
template <int D>
__device__ __forceinline__ void load_rows(unsigned (&rows)[M<D>][D / 16][4], const __half* from, int first, int length,
                                          int depth) {
    const int lane = threadIdx.x % 32, n0 = lane / 4, two = lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < M<D>; ++m) {
#pragma unroll
        for (int c = 0; c < D / 16; ++c) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = min(first + 16 * m + n0 + i % 2 * 8, length - 1), d = 16 * c + two + i / 2 * 8;
                const __half* const two_halves = from + (int64_t)row * depth + d;
                rows[m][c][i] = d < depth ? *reinterpret_cast<const unsigned*>(two_halves) : 0;
            }
        }
    }
}

// Stores what this lane has of a row of sums, r of the two, times a factor.
template <int D>
__device__ __forceinline__ void store_row(__half* row, const float (&sums)[D / 8][4], int r, float factor, int depth) {
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
        const unsigned both = pack(sums[n][2 * r] * factor, sums[n][2 * r + 1] * factor);
        if (n * 8 < depth) *reinterpret_cast<unsigned*>(row + n * 8 + threadIdx.x % 4 * 2) = both;
    }
}

// scores (16 M, 16) += queries (16 M, D) times keys (16, D) transposed. keys: the address of this lane's row of the
// first matrices, which are eight keys, their next eight numbers, and both of the next eight keys.
template <int D>
__device__ __forceinline__ void add_products(float (&scores)[M<D>][2][4], const unsigned (&queries)[M<D>][D / 16][4],
                                             unsigned keys) {
#pragma unroll
    for (int c = 0; c < D / 16; ++c) {
        unsigned b[4];
        load_matrices(b, keys ^ c * 32);
#pragma unroll
        for (int m = 0; m < M<D>; ++m) {
            multiply(scores[m][0], queries[m][c], b[0], b[1]);
            multiply(scores[m][1], queries[m][c], b[2], b[3]);
        }
    }
}

// scores (16 M, 16) = queries (16 M, D) times keys (16, D) transposed.
template <int D>
__device__ __forceinline__ void multiply_keys(float (&scores)[M<D>][2][4], const unsigned (&queries)[M<D>][D / 16][4],
                                              unsigned keys) {
#pragma unroll
    for (int m = 0; m < M<D>; ++m) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) scores[m][n][i] = 0.0f;
        }
    }
    add_products<D>(scores, queries, keys);
}

// sums (16 M, D) += weights (16 M, 16) times values (16, D). values: the address of this lane's row of the first
// matrices, which are eight values, the next eight, and both of their next eight numbers.
template <int D>
__device__ __forceinline__ void multiply_values(float (&sums)[M<D>][D / 8][4], const unsigned (&weights)[M<D>][4],
                                                unsigned values) {
#pragma unroll
    for (int c = 0; c < D / 16; ++c) {
        unsigned b[4];
        load_transposed(b, values ^ c * 32);
#pragma unroll
        for (int m = 0; m < M<D>; ++m) {
            multiply(sums[m][2 * c], weights[m], b[0], b[1]);
            multiply(sums[m][2 * c + 1], weights[m], b[2], b[3]);
        }
    }
}

// What a warp keeps of its queries. A lane has two of each 16: n and n + 8, where n is lane / 4.
template <int D>
struct State {
    float sums[M<D>][D / 8][4];  // of values, each times its exponential
    float total[M<D>][2];  // of the exponentials of this lane's keys
    float bound[M<D>][2];  // subtracted from all exponents
};

// Raises the bounds of the queries that have an exponent above 0, and shrinks their sums. is_first: sets all bounds.
template <int D>
__device__ __forceinline__ void raise(State<D>& s, float (&exponents)[M<D>][2][4], bool is_first) {
#pragma unroll
    for (int m = 0; m < M<D>; ++m) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float largest = fmaxf(fmaxf(exponents[m][0][2 * r], exponents[m][0][2 * r + 1]),
                                  fmaxf(exponents[m][1][2 * r], exponents[m][1][2 * r + 1]));
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, 1));
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, 2));
            const bool rises = largest > (is_first ? -INFINITY : 0.0f);
            const float rise = rises ? largest + HEADROOM : 0.0f;
            const float shrink = is_first ? 0.0f : power(-rise);  // a first bound far below 0 would make it infinite
            s.bound[m][r] += rise;
            s.total[m][r] *= shrink;
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                exponents[m][n][2 * r] -= rise;
                exponents[m][n][2 * r + 1] -= rise;
            }
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
                s.sums[m][n][2 * r] *= shrink;
                s.sums[m][n][2 * r + 1] *= shrink;
            }
        }
    }
}

// Turns scores into exponents of 2.
template <int D>
__device__ __forceinline__ void subtract_bound(float (&scores)[M<D>][2][4], const float (&bound)[M<D>][2],
                                               float scale) {
#pragma unroll
    for (int m = 0; m < M<D>; ++m) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) scores[m][n][i] = __fmaf_rn(scores[m][n][i], scale, -bound[m][i / 2]);
        }
    }
}

// Computes the exponentials as halves, and their sums as floats. Returns bits that have 0x4000 in one half if any of the
// exponentials is 2 or more: such a half has the highest bit of its exponent.
template <int D>
__device__ __forceinline__ unsigned exponentiate(unsigned (&weights)[M<D>][4], float (&more)[M<D>][2],
                                                 const float (&exponents)[M<D>][2][4]) {
    unsigned bits = 0;
#pragma unroll
    for (int m = 0; m < M<D>; ++m) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float four[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) four[i] = power(exponents[m][i / 2][2 * r + i % 2]);
            more[m][r] = (four[0] + four[1]) + (four[2] + four[3]);
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                weights[m][2 * n + r] = pack(four[2 * n], four[2 * n + 1]);
                bits |= weights[m][2 * n + r];
            }
        }
    }
    return bits;
}

// Sets the scores of keys that a query does not see to -infinity. key: the first of this lane; query: its first one.
template <int D>
__device__ __forceinline__ void mask(float (&scores)[M<D>][2][4], int key, int query, int length, bool causal) {
#pragma unroll
    for (int m = 0; m < M<D>; ++m) {
        // The first key that this lane's queries do not see.
        const int end[2] = {causal ? min(length, query + 16 * m + 1) : length,
                            causal ? min(length, query + 16 * m + 9) : length};
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if (key + n * 8 + i % 2 >= end[i / 2]) scores[m][n][i] = -INFINITY;
            }
        }
    }
}

// Adds the values of 16 keys, whose scores are given, and computes the scores of the next 16 with next_scores(). MASKED:
// some of the keys are not seen by some of the queries. is_first: no bound is set yet.
template <int D, bool MASKED, class Next>
__device__ __forceinline__ void add_chunk(State<D>& s, float (&scores)[M<D>][2][4],
                                          const unsigned (&queries)[M<D>][D / 16][4], unsigned keys, unsigned values,
                                          int key, int query, int length, float scale, bool causal, bool is_first,
                                          const Next& next_scores) {
    unsigned weights[M<D>][4];
    float more[M<D>][2];
    if (MASKED) mask<D>(scores, key, query, length, causal);
    subtract_bound<D>(scores, s.bound, scale);
    const unsigned bits = exponentiate<D>(weights, more, scores);
    next_scores();
    if (is_first || __any_sync(0xffffffff, (bits & 0x40004000) != 0)) {
        float again[M<D>][2][4];  // computed again, as to keep them would take registers that are always needed
        multiply_keys<D>(again, queries, keys);
        if (MASKED) mask<D>(again, key, query, length, causal);
        subtract_bound<D>(again, s.bound, scale);
        raise<D>(s, again, is_first);
        exponentiate<D>(weights, more, again);
    }
#pragma unroll
    for (int m = 0; m < M<D>; ++m) {
#pragma unroll
        for (int r = 0; r < 2; ++r) s.total[m][r] += more[m][r];
    }
    multiply_values<D>(s.sums, weights, values);
}

// q, k, v, out (heads of all images, length, depth), where depth is at most D and a multiple of 8; zeros fill the rest.
// A block has QUERIES queries, `tiles` blocks have those of a head. scale: of the exponents of 2.
#if BACKWARD
// lse (heads, length): the natural logarithm of the sum of each query's exponentials.
#endif
template <int D>
__global__ void __launch_bounds__(THREADS, BLOCKS)
#if BACKWARD
    tiles_kernel(const __half* q, const __half* k, const __half* v, __half* out, float* lse, int length, int depth,
                 int tiles, float scale, bool causal) {
#else
    tiles_kernel(const __half* q, const __half* k, const __half* v, __half* out, int length, int depth, int tiles,
                 float scale, bool causal) {
#endif
#ifdef AMPERE
    extern __shared__ __align__(256) unsigned char memory[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n0 = lane / 4, two = lane % 4 * 2;
    const int64_t head = (int64_t)(blockIdx.x / tiles) * length * depth;
    const int order = blockIdx.x % tiles, tile = causal ? tiles - 1 - order : order;
    const int first_query = tile * QUERIES<D> + warp * 16 * M<D>;
    const int end = causal ? min(length, (tile + 1) * QUERIES<D>) : length;  // no query sees a key from here on
    const int count = (end + TILE<D> - 1) / TILE<D>;
    const unsigned ring = (unsigned)__cvta_generic_to_shared(memory);
    Copies<D> copies(k + head, v + head, ring, length, depth);
    copies.copy(0, depth);
    commit_copies();
    if (count > 1) copies.copy(1, depth);
    commit_copies();

    unsigned queries[M<D>][D / 16][4];
    load_rows<D>(queries, q + head, first_query, length, depth);
    // This lane's rows of the first matrices of keys and of values in a tile.
    const int key_row = lane / 16 * 8 + lane % 8, value_row = lane % 16;
    const unsigned key_at = ring + key_row * ROW<D> + swizzled<D>(key_row, lane / 8 % 2) * 16;
    const unsigned value_at = ring + (TILE<D> + value_row) * ROW<D> + swizzled<D>(value_row, lane / 16) * 16;

    State<D> s = {};
    float scores[M<D>][2][4];
    wait_for_copies<1>();
    __syncthreads();  // the first tile is there
    multiply_keys<D>(scores, queries, key_at);

    // The tiles of which all keys are seen by all queries of the block come first: barriers are met in the same order.
    const int seen = causal ? min(length, tile * QUERIES<D> + 1) : length, whole = min(seen / TILE<D>, count);
    int number = 0, place = 0;
    const auto add_tile = [&](auto masked) {
        const int next_place = place + 1 == STAGES ? 0 : place + 1;
        const unsigned keys = key_at + place * STAGE_BYTES<D>, values = value_at + place * STAGE_BYTES<D>;
#pragma unroll
        for (int chunk = 0; chunk < TILE<D> / CHUNK; ++chunk) {
            const auto next_scores = [&] {
                if (chunk + 1 < TILE<D> / CHUNK) {
                    multiply_keys<D>(scores, queries, keys + (chunk + 1) * CHUNK * ROW<D>);
                } else if (number + 1 < count) {
                    wait_for_copies<0>();
                    __syncthreads();  // the next tile is there, and all are done with the one before this one
                    if (number + 2 < count) copies.copy(next_place + 1 == STAGES ? 0 : next_place + 1, depth);
                    commit_copies();
                    multiply_keys<D>(scores, queries, key_at + next_place * STAGE_BYTES<D>);
                }
            };
            // Every query sees key 0, which is in the first chunk.
            add_chunk<D, masked.value>(s, scores, queries, keys + chunk * CHUNK * ROW<D>,
                                       values + chunk * CHUNK * ROW<D>, number * TILE<D> + chunk * CHUNK + two,
                                       first_query + n0, length, scale, causal, number == 0 && chunk == 0, next_scores);
        }
        place = next_place;
    };
#pragma unroll 1
    for (; number < whole; ++number) add_tile(std::false_type{});
#pragma unroll 1
    for (; number < count; ++number) add_tile(std::true_type{});

#pragma unroll
    for (int m = 0; m < M<D>; ++m) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float all = s.total[m][r];
            all += __shfl_xor_sync(0xffffffff, all, 1);
            all += __shfl_xor_sync(0xffffffff, all, 2);
            const int query = first_query + 16 * m + n0 + 8 * r;
            if (query >= length) continue;
            store_row<D>(out + head + (int64_t)query * depth, s.sums[m], r, 1.0f / all, depth);
#if BACKWARD
            constexpr float LN_2 = 0.693147180559945309f;
            const int64_t number = (int64_t)(blockIdx.x / tiles) * length + query;
            if (two == 0) lse[number] = (s.bound[m][r] + log2f(all)) * LN_2;
#endif
        }
    }
#endif
}
