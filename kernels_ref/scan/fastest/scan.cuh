#include <climits>
#include <cstdint>

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffff;
constexpr int THREADS = 256;                   // of a block
constexpr int WARPS = THREADS / WARP;
constexpr int VECTOR = 4;                      // neighbouring elements, one float4
constexpr int ROWS = 8;                        // float4 of a thread
constexpr int PART = THREADS * VECTOR * ROWS;  // elements of a block; those of a warp are neighbours
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int BLOCKS = 3;                      // a multiprocessor of Turing has 1,024 threads
#else
constexpr int BLOCKS = 4;                      // of a multiprocessor, at least: 56 registers for a thread
#endif
constexpr int WORDS = 2;                       // of a lane that looks back: 64 parts at a time
constexpr int PAUSE_NS = 20;                   // before a word that was not there is read again
constexpr int LINE = 32;                       // floats that one prefetch brings to L2
static_assert(WARPS <= WARP && (WARPS & (WARPS - 1)) == 0, "one warp adds up the sums of all");

using Word = unsigned long long;               // a double whose last two bits are a flag
constexpr Word EMPTY = 0, SUM = 1, END = 2;    // nothing yet; the sum of the part; of all up to its end
constexpr Word FLAG = 3;

__device__ __forceinline__ Word pack(Word flag, double value) {
    return ((Word)__double_as_longlong(value) & ~FLAG) | flag;
}

__device__ __forceinline__ double value_of(Word word) { return __longlong_as_double((long long)(word & ~FLAG)); }

// Value and flag are one word, which is read and written at once: no fence is needed.
__device__ __forceinline__ Word peek(const Word* at) {
    Word word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
    return word;
}

__device__ __forceinline__ void publish(Word* at, Word word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(word) : "memory");
}

__device__ __forceinline__ double warp_sum(double v) {
#pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) v += __shfl_xor_sync(ALL_LANES, v, offset);
    return v;
}

// Returns the sum of all parts before `part`. All lanes of one warp must call it.
__device__ __forceinline__ double look_back(const Word* published, int part) {
    int other = part - 1 - threadIdx.x % WARP;  // the nearest part that this lane looks at
    double sum = 0.0;                           // of what this lane has seen
    for (published += other;; published -= WORDS * WARP, other -= WORDS * WARP) {
        Word word[WORDS];
#pragma unroll
        for (int k = 0; k < WORDS; ++k) word[k] = other >= k * WARP ? EMPTY : pack(END, 0.0);
        // Each part before this one belongs to a block that has started, and will publish its sum. Only what is not
        // there yet is read again. To wait for parts before the nearest END costs nothing: that block has seen them.
        for (;;) {
            bool there = true;
#pragma unroll
            for (int k = 0; k < WORDS; ++k) {
                if (word[k] == EMPTY) word[k] = peek(published - k * WARP);
            }
#pragma unroll
            for (int k = 0; k < WORDS; ++k) there = there && word[k] != EMPTY;
            if (__all_sync(ALL_LANES, there)) break;
            __nanosleep(PAUSE_NS);
        }
#pragma unroll
        for (int k = 0; k < WORDS; ++k) {
            const unsigned ends = __ballot_sync(ALL_LANES, (word[k] & FLAG) == END);
            const int last = ends ? __ffs(ends) - 1 : WARP - 1;  // the lane with the last value that is needed
            if (threadIdx.x % WARP <= last) sum += value_of(word[k]);
            if (ends) return warp_sum(sum);
        }
    }
}

// Loads the thread's elements of a part, and 0 past the end: VECTOR neighbours in each of ROWS rows, which lie
// WARP * VECTOR apart. x points at the first one; `left` elements of the vector begin there. whole: the vector has all
// elements of the part. x is read once, and may leave L2 before y.
template <bool ALIGNED>
__device__ __forceinline__ void load(const float* x, int left, bool whole, float (&v)[ROWS][VECTOR]) {
    if (ALIGNED && whole) {
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            const float4 four = __ldcs(reinterpret_cast<const float4*>(x + row * WARP * VECTOR));
            v[row][0] = four.x, v[row][1] = four.y, v[row][2] = four.z, v[row][3] = four.w;
        }
    } else {
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
#pragma unroll
            for (int k = 0; k < VECTOR; ++k) {
                const int at = row * WARP * VECTOR + k;
                v[row][k] = at < left ? __ldcs(x + at) : 0.0f;
            }
        }
    }
}

// Stores the same elements in y, each plus `before`.
template <bool ALIGNED>
__device__ __forceinline__ void store(float* y, int left, bool whole, const float (&v)[ROWS][VECTOR], float before) {
    if (ALIGNED && whole) {
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            *reinterpret_cast<float4*>(y + row * WARP * VECTOR) =
                make_float4(v[row][0] + before, v[row][1] + before, v[row][2] + before, v[row][3] + before);
        }
    } else {
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
#pragma unroll
            for (int k = 0; k < VECTOR; ++k) {
                const int at = row * WARP * VECTOR + k;
                if (at < left) y[at] = v[row][k] + before;
            }
        }
    }
}

// Scans each four of the thread in place. Returns the sum of the warp's elements.
__device__ __forceinline__ float scan_fours(float (&v)[ROWS][VECTOR]) {
    float sum = 0.0f;
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
#pragma unroll
        for (int k = 1; k < VECTOR; ++k) v[row][k] += v[row][k - 1];
        sum += v[row][VECTOR - 1];
    }
#pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, offset);
    return sum;
}

// Scans the warp's elements in place, whose fours are scanned. The shuffles of all rows are under way together.
__device__ __forceinline__ void scan_rows(float (&v)[ROWS][VECTOR]) {
    const int lane = threadIdx.x % WARP;
    float end[ROWS];  // the sum of this and all lower lanes' fours
#pragma unroll
    for (int row = 0; row < ROWS; ++row) end[row] = v[row][VECTOR - 1];
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            const float below = __shfl_up_sync(ALL_LANES, end[row], distance);
            if (lane >= distance) end[row] += below;
        }
    }
    float before = 0.0f;  // the sum of all rows so far
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
        float lower = __shfl_up_sync(ALL_LANES, end[row], 1);  // not end - own: infinity - infinity is no number
        lower = lane == 0 ? before : before + lower;
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) v[row][k] += lower;
        before += __shfl_sync(ALL_LANES, end[row], WARP - 1);
    }
}

// y[i] = the sum of x up to i. published has an EMPTY word for each part, and started is 0. The last warp looks back and
// has no elements.
template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS + WARP, ALIGNED ? BLOCKS : 2)
    scan_kernel(const float* x, float* y, Word* published, Word* started, int64_t length) {
    __shared__ int shared_part;
    __shared__ float warp_sums[WARPS], shared_before[WARPS];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    // Blocks start in any order: a block that takes its part when it starts never waits for one that has not started.
    if (threadIdx.x == THREADS) shared_part = (int)atomicAdd(started, (Word)1);
    if (threadIdx.x < PART / LINE) {
        const int64_t likely = (int64_t)blockIdx.x * PART + threadIdx.x * LINE;
        if (likely < length) asm volatile("prefetch.global.L2 [%0];" ::"l"(x + likely));
    }
    __syncthreads();  // the part is known
    const int part = shared_part;
    const bool looks = warp == WARPS;
    const int64_t first = (int64_t)part * PART + warp * (PART / WARPS) + lane * VECTOR;
    const int left = (int)min(length - first, (int64_t)PART);
    const bool whole = (int64_t)part * PART + PART <= length;

    float v[ROWS][VECTOR];
    if (!looks) {
        load<ALIGNED>(x + first, left, whole, v);
        const float sum = scan_fours(v);
        if (lane == 0) warp_sums[warp] = sum;
    }
    __syncthreads();  // all warps have their sum
    if (looks) {
        double sum = lane < WARPS ? (double)warp_sums[lane] : 0.0;  // of this lane's warp and all lower ones
#pragma unroll
        for (int distance = 1; distance < WARPS; distance *= 2) {
            const double below = __shfl_up_sync(ALL_LANES, sum, distance);
            if (lane >= distance) sum += below;
        }
        const double all = __shfl_sync(ALL_LANES, sum, WARPS - 1);
        if (lane == 0) publish(published + part, pack(part == 0 ? END : SUM, all));
        double lower = __shfl_up_sync(ALL_LANES, sum, 1);
        if (lane == 0) lower = 0.0;
        const double before = part == 0 ? 0.0 : look_back(published, part);
        if (lane == 0 && part > 0) publish(published + part, pack(END, before + all));
        if (lane < WARPS) shared_before[lane] = (float)(before + lower);
    } else {
        scan_rows(v);
    }
    __syncthreads();  // what lies before each warp's elements is known
    if (!looks) store<ALIGNED>(y + first, left, whole, v, shared_before[warp]);
}
