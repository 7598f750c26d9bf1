constexpr int OFFSETS_THREADS = 256;
constexpr int GRADIENT_BLOCKS = 2;  // of a multiprocessor, in gradients_kernel
constexpr int PADDING = 64;  // the offsets of a head are a multiple of it: a tile has as many as it has queries
constexpr float LOG2_E = 1.44269504088896341f;

// All heads of all images: q, k, v, go, gq, gk and gv are (heads, length, depth); go is the gradient of out, gq that of
// q, and so on. offsets (heads, padded): x is added to a query's exponents of 2, y to its gradients of probabilities.
struct Heads {
    const __half *q, *k, *v, *go;
    __half *gq, *gk, *gv;
    const float2* offsets;
    int length, depth, padded;
    int tiles;  // blocks of a head
    float scale;
    bool causal;
};

// Computes the offsets of each query: minus the binary logarithm of the sum of its exponentials, and minus the product
// of its rows of out and go, which softmax's backward subtracts. Queries past the end get a probability of 0.
template <int D>
__global__ void __launch_bounds__(OFFSETS_THREADS) offsets_kernel(const __half* out, const __half* go, const float* lse,
                                                                  float2* offsets, int length, int depth, int padded) {
    constexpr int CHUNKS = D / 8, ROWS = OFFSETS_THREADS / CHUNKS;  // 16-byte chunks of a row, rows of a block
    static_assert(PADDING % ROWS == 0, "a block has rows of two heads");
    const int blocks = padded / ROWS;  // of a head
    const int64_t head = blockIdx.x / blocks;
    const int query = blockIdx.x % blocks * ROWS + threadIdx.x / CHUNKS, d = threadIdx.x % CHUNKS * 8;
    float dot = 0.0f;
    if (query < length && d < depth) {
        const int64_t at = (head * length + query) * depth + d;
        const uint4 a = *reinterpret_cast<const uint4*>(out + at), b = *reinterpret_cast<const uint4*>(go + at);
        const __half2 *x = reinterpret_cast<const __half2*>(&a), *y = reinterpret_cast<const __half2*>(&b);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2 one = __half22float2(x[i]), other = __half22float2(y[i]);
            dot += one.x * other.x + one.y * other.y;
        }
    }
#pragma unroll
    for (int distance = CHUNKS / 2; distance > 0; distance /= 2) dot += __shfl_xor_sync(0xffffffff, dot, distance);
    if (d > 0) return;
    const float exponent = query < length ? -lse[head * length + query] * LOG2_E : -INFINITY;
    offsets[head * padded + query] = {exponent, -dot};
}

// Packs 16 M rows of 16 numbers as the first factor of a product.
template <int D>
__device__ __forceinline__ void pack_weights(unsigned (&weights)[M<D>][4], const float (&numbers)[M<D>][2][4]) {
#pragma unroll
    for (int m = 0; m < M<D>; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            weights[m][i] = pack(numbers[m][i / 2][i % 2 * 2], numbers[m][i / 2][i % 2 * 2 + 1]);
        }
    }
}

// Turns gradients of probabilities, to which the offsets have been added, into gradients of scores.
template <int D>
__device__ __forceinline__ void multiply_probabilities(float (&gradients)[M<D>][2][4],
                                                       const float (&probabilities)[M<D>][2][4]) {
#pragma unroll
    for (int m = 0; m < M<D>; ++m) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) gradients[m][n][i] *= probabilities[m][n][i];
        }
    }
}

// The lambdas of these functions are always inlined. A call would need in memory the arrays that they share with the function.

// Computes gk and gv. A block has QUERIES keys and loops over tiles of queries. The scores are transposed, each row
// belongs to a key: so they are in the registers that the products with the rows of go and q read.
// block: its number among those for keys.
template <int D>
__device__ __forceinline__ void compute_key_gradients(const Heads& a, int block, const unsigned char* memory) {
    // Places for the offsets of two tiles follow the ring. All warps have read those of a tile before the barrier after
    // which the copies of the tile after the next one begin.
    constexpr int RING = STAGES * STAGE_BYTES<D>;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n0 = lane / 4, two = lane % 4 * 2;
    const int head_number = block / a.tiles, tile = block % a.tiles;
    const int64_t head = (int64_t)head_number * a.length * a.depth;
    const int first_key = tile * QUERIES<D> + warp * 16 * M<D>;
    const int begin = a.causal ? tile * QUERIES<D> / TILE<D> * TILE<D> : 0;  // the first query that sees a key
    const int count = (a.length - begin + TILE<D> - 1) / TILE<D>;
    const int partly = a.causal ? min(QUERIES<D> / TILE<D>, count) : 0;  // tiles whose queries do not see all keys
    const unsigned ring = (unsigned)__cvta_generic_to_shared(memory);
    // Begins to copy a tile to a place of the ring. Copies is built each time because registers are scarce.
    const auto copy_tile = [&](int number, int place) __attribute__((always_inline)) {
        const int first = begin + number * TILE<D>;
        const int64_t at = head + (int64_t)first * a.depth;
        Copies<D>(a.q + at, a.go + at, ring, a.length - first, a.depth).copy(place, a.depth);
        if (threadIdx.x < TILE<D> / 2) {
            copy_16(ring + RING + number % 2 * TILE<D> * 8 + threadIdx.x * 16,
                    a.offsets + (int64_t)head_number * a.padded + first + 2 * threadIdx.x);
        }
    };
    copy_tile(0, 0);
    commit_copies();
    if (count > 1) copy_tile(1, 1);
    commit_copies();

    unsigned keys[M<D>][D / 16][4], values[M<D>][D / 16][4];
    load_rows<D>(keys, a.k + head, first_key, a.length, a.depth);
    load_rows<D>(values, a.v + head, first_key, a.length, a.depth);
    // This lane's rows of the first matrices of a tile, as they are and transposed. The rows of go follow those of q.
    const int row = lane / 16 * 8 + lane % 8, column = lane % 16;
    const unsigned row_at = ring + row * ROW<D> + swizzled<D>(row, lane / 8 % 2) * 16;
    const unsigned column_at = ring + column * ROW<D> + swizzled<D>(column, lane / 16) * 16;
    constexpr int GO = TILE<D> * ROW<D>;

    float gk[M<D>][D / 8][4] = {}, gv[M<D>][D / 8][4] = {}, scores[M<D>][2][4];
    const float scale = a.scale * LOG2_E;
    wait_for_copies<1>();
    __syncthreads();  // the first tile is there
    multiply_keys<D>(scores, keys, row_at);

    int number = 0, place = 0;
    const auto add_tile = [&](auto masked) __attribute__((always_inline)) {
        const int next_place = place + 1 == STAGES ? 0 : place + 1;
        const unsigned rows = row_at + place * STAGE_BYTES<D>, columns = column_at + place * STAGE_BYTES<D>;
        const int distance = begin + number * TILE<D> + two - first_key - n0;  // of the lane's first query and key
        const float4* const two_offsets = reinterpret_cast<const float4*>(memory + RING + number % 2 * TILE<D> * 8);
#pragma unroll
        for (int chunk = 0; chunk < TILE<D> / CHUNK; ++chunk) {
            const int at = chunk * CHUNK * ROW<D>;
            float slopes[M<D>][2][4];
            unsigned weights[M<D>][4];
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                const float4 offset = two_offsets[(chunk * CHUNK + n * 8 + two) / 2];  // of two queries
#pragma unroll
                for (int m = 0; m < M<D>; ++m) {
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        slopes[m][n][i] = i % 2 ? offset.w : offset.y;
                        scores[m][n][i] = __fmaf_rn(scores[m][n][i], scale, i % 2 ? offset.z : offset.x);
                        const int query = chunk * CHUNK + n * 8 + i % 2, key = 16 * m + i / 2 * 8;  // after them
                        if (masked.value && query + distance < key) scores[m][n][i] = -INFINITY;
                        scores[m][n][i] = power(scores[m][n][i]);
                    }
                }
            }
            add_products<D>(slopes, values, rows + GO + at);
            pack_weights<D>(weights, scores);
            multiply_values<D>(gv, weights, columns + GO + at);
            multiply_probabilities<D>(slopes, scores);
            pack_weights<D>(weights, slopes);
            if (chunk + 1 < TILE<D> / CHUNK) {
                multiply_keys<D>(scores, keys, rows + at + CHUNK * ROW<D>);
            } else if (number + 1 < count) {
                wait_for_copies<0>();
                __syncthreads();  // the next tile is there, and all are done with the one before this one
                multiply_keys<D>(scores, keys, row_at + next_place * STAGE_BYTES<D>);
                if (number + 2 < count) copy_tile(number + 2, next_place + 1 == STAGES ? 0 : next_place + 1);
                commit_copies();
            }
            multiply_values<D>(gk, weights, columns + at);
        }
        place = next_place;
    };
#pragma unroll 1
    for (; number < partly; ++number) add_tile(std::true_type{});
#pragma unroll 1
    for (; number < count; ++number) add_tile(std::false_type{});

#pragma unroll
    for (int m = 0; m < M<D>; ++m) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int key = first_key + 16 * m + n0 + 8 * r;
            if (key >= a.length) continue;
            store_row<D>(a.gk + head + (int64_t)key * a.depth, gk[m], r, a.scale, a.depth);
            store_row<D>(a.gv + head + (int64_t)key * a.depth, gv[m], r, 1.0f, a.depth);
        }
    }
}

// Computes gq. A block has QUERIES queries and loops over tiles of keys.
// block: its number among those for queries.
template <int D>
__device__ __forceinline__ void compute_query_gradients(const Heads& a, int block, const unsigned char* memory) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n0 = lane / 4, two = lane % 4 * 2;
    const int head_number = block / a.tiles, order = block % a.tiles;
    const int64_t head = (int64_t)head_number * a.length * a.depth;
    const int tile = a.causal ? a.tiles - 1 - order : order;
    const int first_query = tile * QUERIES<D> + warp * 16 * M<D>;
    const int end = a.causal ? min(a.length, (tile + 1) * QUERIES<D>) : a.length;  // no query sees a key from here on
    const int count = (end + TILE<D> - 1) / TILE<D>;
    const unsigned ring = (unsigned)__cvta_generic_to_shared(memory);
    const auto copy_tile = [&](int number, int place) __attribute__((always_inline)) {
        const int first = number * TILE<D>;
        const int64_t at = head + (int64_t)first * a.depth;
        Copies<D>(a.k + at, a.v + at, ring, a.length - first, a.depth).copy(place, a.depth);
    };
    copy_tile(0, 0);
    commit_copies();
    if (count > 1) copy_tile(1, 1);
    commit_copies();

    unsigned queries[M<D>][D / 16][4], gradients[M<D>][D / 16][4];  // gradients: rows of go
    load_rows<D>(queries, a.q + head, first_query, a.length, a.depth);
    load_rows<D>(gradients, a.go + head, first_query, a.length, a.depth);
    float2 offsets[M<D>][2];
#pragma unroll
    for (int m = 0; m < M<D>; ++m) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int query = min(first_query + 16 * m + n0 + 8 * r, a.length - 1);
            offsets[m][r] = a.offsets[(int64_t)head_number * a.padded + query];
        }
    }
    // This lane's rows of the first matrices of a tile, as they are and transposed. The values follow the keys.
    const int row = lane / 16 * 8 + lane % 8, column = lane % 16;
    const unsigned row_at = ring + row * ROW<D> + swizzled<D>(row, lane / 8 % 2) * 16;
    const unsigned column_at = ring + column * ROW<D> + swizzled<D>(column, lane / 16) * 16;
    constexpr int VALUES = TILE<D> * ROW<D>;

    float gq[M<D>][D / 8][4] = {}, scores[M<D>][2][4];
    const float scale = a.scale * LOG2_E;
    wait_for_copies<1>();
    __syncthreads();  // the first tile is there
    multiply_keys<D>(scores, queries, row_at);

    // The tiles of which all keys are seen by all queries of the block come first: barriers are met in the same order.
    const int seen = a.causal ? min(a.length, tile * QUERIES<D> + 1) : a.length, whole = min(seen / TILE<D>, count);
    int number = 0, place = 0;
    const auto add_tile = [&](auto masked) __attribute__((always_inline)) {
        const int next_place = place + 1 == STAGES ? 0 : place + 1;
        const unsigned rows = row_at + place * STAGE_BYTES<D>, columns = column_at + place * STAGE_BYTES<D>;
#pragma unroll
        for (int chunk = 0; chunk < TILE<D> / CHUNK; ++chunk) {
            const int at = chunk * CHUNK * ROW<D>;
            float slopes[M<D>][2][4], probabilities[M<D>][2][4];
            unsigned weights[M<D>][4];
            if (masked.value) {
                mask<D>(scores, number * TILE<D> + chunk * CHUNK + two, first_query + n0, a.length, a.causal);
            }
#pragma unroll
            for (int m = 0; m < M<D>; ++m) {
#pragma unroll
                for (int n = 0; n < 2; ++n) {
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        slopes[m][n][i] = offsets[m][i / 2].y;
                        probabilities[m][n][i] = power(__fmaf_rn(scores[m][n][i], scale, offsets[m][i / 2].x));
                    }
                }
            }
            add_products<D>(slopes, gradients, rows + VALUES + at);
            if (chunk + 1 < TILE<D> / CHUNK) {
                multiply_keys<D>(scores, queries, rows + at + CHUNK * ROW<D>);
            } else if (number + 1 < count) {
                wait_for_copies<0>();
                __syncthreads();  // the next tile is there, and all are done with the one before this one
                multiply_keys<D>(scores, queries, row_at + next_place * STAGE_BYTES<D>);
                if (number + 2 < count) copy_tile(number + 2, next_place + 1 == STAGES ? 0 : next_place + 1);
                commit_copies();
            }
            multiply_probabilities<D>(slopes, probabilities);
            pack_weights<D>(weights, slopes);
            multiply_values<D>(gq, weights, columns + at);
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
            const int query = first_query + 16 * m + n0 + 8 * r;
            if (query < a.length) store_row<D>(a.gq + head + (int64_t)query * a.depth, gq[m], r, a.scale, a.depth);
        }
    }
}

// Computes gk and gv in the first half of the blocks, and gq in the second: one launch, so that no multiprocessor waits
// for the last blocks of the first half. Dynamic shared memory: a ring, and the offsets of two tiles.
template <int D>
__global__ void __launch_bounds__(THREADS, GRADIENT_BLOCKS) gradients_kernel(Heads a) {
#ifdef AMPERE
    extern __shared__ __align__(256) unsigned char memory[];
    const int half = gridDim.x / 2, block = blockIdx.x;
    if (block < half) {
        compute_key_gradients<D>(a, block, memory);
    } else {
        compute_query_gradients<D>(a, block - half, memory);
    }
#endif
}
