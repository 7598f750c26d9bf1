// For heads of 64 or 128 on Hopper. A warpgroup, four warps, has 64 queries. Its tensor cores read keys and values from
// shared memory by themselves (wgmma), while its warps compute exponentials.
#if defined(__SIMT__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WARPGROUPS 1
#endif

// With heads of 64, a block is one warpgroup, with 128 registers per thread and a ring of 48 KiB: a multiprocessor runs
// four blocks, and none of them waits for another one. With heads of 128, sums and queries need more registers than
// that, and a tile twice the room: two warpgroups share a ring.
template <int D> constexpr int GROUPS = D == 64 ? 1 : 2;  // warpgroups of a block
template <int D> constexpr int GROUP_BLOCKS = D == 64 ? 4 : 1;  // of a multiprocessor
template <int D> constexpr int GROUP_THREADS = 128 * GROUPS<D>;
template <int D> constexpr int GROUP_QUERIES = 64 * GROUPS<D>;
template <int D> constexpr int GROUP_TILE = D == 64 ? 64 : 128;  // keys and values that are copied at a time
constexpr int GROUP_STAGES = 3;  // tiles of the ring
template <int D> constexpr int PANEL_BYTES = GROUP_TILE<D> * 128;  // of 64 columns of a tile: rows of 128 bytes
template <int D> constexpr int GROUP_TILE_BYTES = D / 64 * PANEL_BYTES<D>;
template <int D> constexpr int GROUP_STAGE_BYTES = 2 * GROUP_TILE_BYTES<D>;

#ifdef WARPGROUPS
constexpr int STEP = 64;  // keys that are multiplied at a time
constexpr float LIMIT = 8.0f;  // exponent of 2 above which the bound rises: a half ends below 2^16

// c (64, N) = a (64, 16) times b (16, N), or += where ADDS. b: the descriptor of a matrix in shared memory, of which
// TURNED says whether its rows lie along N. c holds N / 2 numbers of a thread.
template <bool ADDS, bool TURNED>
__device__ __forceinline__ void multiply_group(float (&c)[32], const unsigned (&a)[4], uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, %37, 1, 1, %38;"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]),
          "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]),
          "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]),
          "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"((int)ADDS), "n"((int)TURNED));
}

template <bool ADDS, bool TURNED>
__device__ __forceinline__ void multiply_group(float (&c)[64], const unsigned (&a)[4], uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, %69, 1, 1, %70;"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]),
          "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]),
          "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]),
          "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]),
          "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]),
          "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]),
          "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]),
          "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"((int)ADDS), "n"((int)TURNED));
}

// Orders all writes of registers before the products that follow, which read them.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Lets the compiler compute x neither before nor after this place.
template <int N>
__device__ __forceinline__ void hold(float (&x)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) asm volatile("" : "+f"(x[i])::"memory");
}

// Waits until all groups of products but the last LEFT have written x.
template <int LEFT, int N>
__device__ __forceinline__ void wait_for_products(float (&x)[N]) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
    hold(x);
}

// Waits until all groups of copies but the last LEFT are there, those of all threads, and lets products read them. All
// threads must call it.
template <int LEFT>
__device__ __forceinline__ void receive_copies() {
    wait_for_copies<LEFT>();
    asm volatile("fence.proxy.async.shared::cta;" ::
                     : "memory");  // wgmma reads memory by another way than cp.async writes
    __syncthreads();
}

// Returns the descriptor of a matrix in shared memory: rows of 128 bytes, swizzled, eight of them every 1024 bytes, and
// the next 64 columns `panel` bytes further on.
__device__ __forceinline__ uint64_t descriptor(unsigned at, int panel) {
    return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(panel >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

// Where this thread copies keys and values from and to.
template <int D>
struct GroupCopies {
    static constexpr int CHUNKS = D / 8, LINES = GROUP_THREADS<D> / CHUNKS;  // of a row; rows that are copied at a time
    static_assert(LINES % 8 == 0 && GROUP_TILE<D> % LINES == 0, "a thread has the same place in each of its rows");
    const __half *k, *v;  // what this thread copies of its first row of the next tile
    int left;  // rows from that one on
    unsigned to;

    __device__ __forceinline__ GroupCopies(const __half* keys, const __half* values, unsigned ring, int length) {
        const int row = threadIdx.x / CHUNKS, c = threadIdx.x % CHUNKS;
        left = length - row;
        k = keys + (int64_t)row * D + 8 * c;
        v = values + (int64_t)row * D + 8 * c;
        to = ring + c / 8 * PANEL_BYTES<D> + row * 128 + (c % 8 ^ row % 8) * 16;
    }

    // Begins to copy the next tile to a place of the ring; what lies past the end is 0.
    __device__ __forceinline__ void copy(int place) {
        const unsigned at = to + place * GROUP_STAGE_BYTES<D>;
        if (left > GROUP_TILE<D> - LINES) {
#pragma unroll
            for (int i = 0; i < GROUP_TILE<D>; i += LINES) {
                copy_16(at + i * 128, k + i * D);
                copy_16(at + GROUP_TILE_BYTES<D> + i * 128, v + i * D);
            }
        } else {
#pragma unroll
            for (int i = 0; i < GROUP_TILE<D>; i += LINES) {
                copy_16(at + i * 128, i < left ? k + i * D : k, i < left);
                copy_16(at + GROUP_TILE_BYTES<D> + i * 128, i < left ? v + i * D : v, i < left);
            }
        }
        left -= GROUP_TILE<D>;
        k += GROUP_TILE<D> * D;
        v += GROUP_TILE<D> * D;
    }
};

// Loads a warpgroup's queries as the first matrices of products; rows past the end repeat the last one. first: this
// lane's first query.
template <int D>
__device__ __forceinline__ void load_queries(unsigned (&queries)[D / 16][4], const __half* q, int first, int length) {
#pragma unroll
    for (int i = 0; i < D / 4; ++i) {
        const int64_t row = min(first + i % 2 * 8, length - 1);
        const int column = i / 4 * 16 + i / 2 % 2 * 8 + threadIdx.x % 4 * 2;
        queries[i / 4][i % 4] = *reinterpret_cast<const unsigned*>(q + row * D + column);
    }
}

// What a thread keeps of its two queries, n and n + 8 of the warp's, where n is lane / 4.
template <int D>
struct GroupState {
    float sums[D / 2];  // of values, each times its exponential: two of each eight columns for each query
    float total[2];  // of the exponentials of this lane's keys
    float bound[2];  // subtracted from all exponents
    float shrink[2];  // what sums are to be multiplied by, once they are there
};

// Sets the scores of keys that a query does not see to -infinity. key: the first of this lane; query: its first one.
__device__ __forceinline__ void mask_group(float (&scores)[STEP / 2], int key, int query, int length, bool causal) {
    // The first key that this lane's queries do not see.
    const int end[2] = {causal ? min(length, query + 1) : length, causal ? min(length, query + 9) : length};
#pragma unroll
    for (int i = 0; i < STEP / 2; ++i) {
        if (key + i / 4 * 8 + i % 2 >= end[i / 2 % 2]) scores[i] = -INFINITY;
    }
}

// Turns scores into exponentials, and adds those to the total. Where one of them would be above 2^LIMIT, the bounds of
// the warp's queries rise to their largest scores. Returns whether they did. A first bound is -infinity.
template <int D>
__device__ __forceinline__ bool exponentiate_group(GroupState<D>& s, float (&scores)[STEP / 2], float scale) {
    float largest[2] = {fmaxf(scores[0], scores[1]), fmaxf(scores[2], scores[3])};
#pragma unroll
    for (int i = 4; i < STEP / 2; i += 4) {
        largest[0] = fmaxf(largest[0], fmaxf(scores[i], scores[i + 1]));
        largest[1] = fmaxf(largest[1], fmaxf(scores[i + 2], scores[i + 3]));
    }
    const bool rises =
        fmaxf(__fmaf_rn(largest[0], scale, -s.bound[0]), __fmaf_rn(largest[1], scale, -s.bound[1])) > LIMIT;
    const bool any = __any_sync(0xffffffff, rises);
    if (any) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float top = fmaxf(largest[r], __shfl_xor_sync(0xffffffff, largest[r], 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 2)) * scale;
            const float bound = fmaxf(s.bound[r], top);
            s.shrink[r] = power(s.bound[r] - bound);
            s.total[r] *= s.shrink[r];
            s.bound[r] = bound;
        }
    }
#pragma unroll
    for (int i = 0; i < STEP / 2; ++i) scores[i] = power(__fmaf_rn(scores[i], scale, -s.bound[i / 2 % 2]));
#pragma unroll
    for (int i = 0; i < STEP / 2; i += 4) {
        s.total[0] += scores[i] + scores[i + 1];
        s.total[1] += scores[i + 2] + scores[i + 3];
    }
    return any;
}

// The accumulators' layout is that of the first matrix of a product.
__device__ __forceinline__ void pack_group(unsigned (&weights)[STEP / 16][4], const float (&exponentials)[STEP / 2]) {
#pragma unroll
    for (int i = 0; i < STEP / 4; ++i) weights[i / 4][i % 4] = pack(exponentials[2 * i], exponentials[2 * i + 1]);
}

// Begins scores (64, STEP) = queries (64, D) times keys (STEP, D) transposed.
template <int D>
__device__ __forceinline__ void begin_scores(float (&scores)[STEP / 2], const unsigned (&queries)[D / 16][4],
                                             uint64_t keys) {
#pragma unroll
    for (int c = 0; c < D / 16; ++c) {
        const uint64_t at = keys + (c / 4 * PANEL_BYTES<D> + c % 4 * 32 >> 4);
        if (c == 0)
            multiply_group<false, false>(scores, queries[c], at);
        else
            multiply_group<true, false>(scores, queries[c], at);
    }
    commit_products();
}

// Begins sums (64, D) += weights (64, STEP) times values (STEP, D).
template <int D>
__device__ __forceinline__ void begin_sums(float (&sums)[D / 2], const unsigned (&weights)[STEP / 16][4],
                                           uint64_t values) {
#pragma unroll
    for (int c = 0; c < STEP / 16; ++c) multiply_group<true, true>(sums, weights[c], values + (c * 2048 >> 4));
    commit_products();
}

// Stores the results of this lane's queries.
template <int D>
#if BACKWARD
__device__ __forceinline__ void store_results(const GroupState<D>& s, __half* out, float* lse, int first, int length) {
#else
__device__ __forceinline__ void store_results(const GroupState<D>& s, __half* out, int first, int length) {
#endif
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        float all = s.total[r];
        all += __shfl_xor_sync(0xffffffff, all, 1);
        all += __shfl_xor_sync(0xffffffff, all, 2);
        const int query = first + 8 * r;
        if (query >= length) continue;
        const float factor = 1.0f / all;
        __half* const row = out + (int64_t)query * D + threadIdx.x % 4 * 2;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
            const unsigned both = pack(s.sums[4 * n + 2 * r] * factor, s.sums[4 * n + 2 * r + 1] * factor);
            *reinterpret_cast<unsigned*>(row + n * 8) = both;
        }
#if BACKWARD
        constexpr float LN_2 = 0.693147180559945309f;
        if (threadIdx.x % 4 == 0) lse[query] = (s.bound[r] + log2f(all)) * LN_2;
#endif
    }
}
#endif

// q, k, v, out (heads of all images, length, D). A block has GROUP_QUERIES<D> queries, `tiles` blocks have those of a
// head. scale: of the exponents of 2.
#if BACKWARD
// lse (heads, length): the natural logarithm of the sum of each query's exponentials.
#endif
template <int D>
__global__ void __launch_bounds__(GROUP_THREADS<D>, GROUP_BLOCKS<D>)
#if BACKWARD
    groups_kernel(const __half* q, const __half* k, const __half* v, __half* out, float* lse, int length, int tiles,
                  float scale, bool causal) {
#else
    groups_kernel(const __half* q, const __half* k, const __half* v, __half* out, int length, int tiles, float scale,
                  bool causal) {
#endif
#ifdef WARPGROUPS
    extern __shared__ __align__(1024) unsigned char group_memory[];
    const int group = __shfl_sync(0xffffffff, (int)threadIdx.x / 128, 0), lane = threadIdx.x % 32, two = lane % 4 * 2;
    const int64_t head = (int64_t)(blockIdx.x / tiles) * length * D;
    const int order = blockIdx.x % tiles, tile = causal ? tiles - 1 - order : order;
    const int group_query = tile * GROUP_QUERIES<D> + group * 64;
    const int first_query = group_query + threadIdx.x / 32 % 4 * 16 + lane / 4;
    const int end = causal ? min(length, (tile + 1) * GROUP_QUERIES<D>) : length;  // no query sees a key from here on
    constexpr int STEPS = GROUP_TILE<D> / STEP;  // of a tile
    const int count = (end + STEP - 1) / STEP;  // steps of the block
    const int own_count = causal ? min(count, (group_query + 63) / STEP + 1) : count;  // with keys that this group sees
    const int whole = (causal ? min(length, group_query + 1) : length) / STEP;  // with keys that all its queries see
    const unsigned ring = (unsigned)__cvta_generic_to_shared(group_memory);
    GroupCopies<D> copies(k + head, v + head, ring, length);
    copies.copy(0);
    commit_copies();
    if (count > STEPS) copies.copy(1);
    commit_copies();
    unsigned queries[D / 16][4];
    load_queries<D>(queries, q + head, first_query, length);

    const uint64_t first_keys = descriptor(ring, PANEL_BYTES<D>);
    uint64_t keys = first_keys;
    GroupState<D> s = {};
    s.bound[0] = s.bound[1] = -INFINITY;
    float scores[STEP / 2];
    unsigned weights[STEP / 16][4];
    receive_copies<1>();
    begin_products();
    begin_scores<D>(scores, queries, keys);
    wait_for_products<0>(scores);
    if (whole == 0) mask_group(scores, two, first_query, length, causal);
    exponentiate_group<D>(s, scores, scale);
    pack_group(weights, scores);
    int place = 0;
#pragma unroll 1
    for (int number = 1; number <= count; ++number) {
        const uint64_t values = keys + (GROUP_TILE_BYTES<D> >> 4);  // of the step before
        if (number % STEPS != 0) {
            keys += STEP * 128 >> 4;
        } else {
            place = place + 1 == GROUP_STAGES ? 0 : place + 1;
            keys = first_keys + place * (GROUP_STAGE_BYTES<D> >> 4);
            if (number < count) {
                receive_copies<0>();  // all are done with the tile before the last one as well
                if (number + STEPS < count) copies.copy(place + 1 == GROUP_STAGES ? 0 : place + 1);
                commit_copies();
            }
        }
        if (number < own_count) {
            begin_products();
            begin_scores<D>(scores, queries, keys);
            begin_sums<D>(s.sums, weights, values);
            wait_for_products<1>(scores);
            if (number >= whole) mask_group(scores, number * STEP + two, first_query, length, causal);
            const bool shrinks = exponentiate_group<D>(s, scores, scale);
            hold(scores);
            // Either branch waits, so that no exponential is computed after the wait.
            if (!shrinks) {
                wait_for_products<0>(s.sums);
            } else {
                wait_for_products<0>(s.sums);
#pragma unroll
                for (int i = 0; i < D / 2; ++i) s.sums[i] *= s.shrink[i / 2 % 2];
            }
            pack_group(weights, scores);
        } else if (number == own_count) {
            begin_products();
            begin_sums<D>(s.sums, weights, values);
            wait_for_products<0>(s.sums);
        }
    }
#if BACKWARD
    store_results<D>(s, out + head, lse + (int64_t)(blockIdx.x / tiles) * length, first_query, length);
#else
    store_results<D>(s, out + head, first_query, length);
#endif
#endif
}
