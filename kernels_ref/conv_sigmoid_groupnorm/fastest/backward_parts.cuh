constexpr int PIXELS = ROWS * X_ROW / WARPS;  // of a row: what a warp makes, in all channels
constexpr int GY_CHANNEL = 516;  // floats to the next channel of gy: a warp's reads lie in all banks
constexpr int Q_ROW = X_ROW + 2, Q_PLANE = ROWS * Q_ROW;  // gq in halves, 8 channels a pixel, 2 zeros before a row
constexpr int Q_LOW = OUT / 8 * Q_PLANE;  // 16 bytes each from the upper to the lower halves
constexpr int EDGES = ROWS * 8;  // values of gx that a thread sends to the next block, each with n
constexpr int PARTS = 4;  // parts of a row of which warps make sums of gq * x
constexpr int FRAGMENTS = 2 * (TAPS + 1) * 4;  // sums that a part has, a warp's lanes each
constexpr int MY_SUMS = FRAGMENTS / WARPS;  // of those, how many a thread looks after
static_assert(2 * Q_LOW * 16 == OUT * GY_CHANNEL * 4, "gq takes gy's place");

struct GradientShared {
    uint4 x[2 * LOW / 16];  // as in Shared; then, with `more`, the sums of gq * x of every part
    uint4 more[PARTS * FRAGMENTS * WARP / 4 - 2 * LOW / 16];
    uint4 gy[2 * Q_LOW];  // floats; then gq in halves, or as floats where halves have no room
    float2 of_gy[OUT][WARPS];  // every warp's sums of gy and gy * (s - mean)
    float4 terms[QUADS];  // of an image and four channels: rstd, mean * b * rstd^2 - a * rstd, b * rstd^2
    float2 means[QUADS];
    float warp_max[WARPS];
};

#ifdef TENSOR_CORES
__device__ __forceinline__ void load_transposed(unsigned (&m)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(at));
}

__device__ __forceinline__ void add(float (&sum)[4], const float (&part)[4], float factor = 1.0f) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[i] += part[i] * factor;
}

// Tensor cores cut their sums where float32 rounds, and errors of one sign add up over an image: so in the fp32 class
// every product of 16 is added in float32. part: both small products, or nothing yet in the tf32 class. first: there is
// no sum yet.
__device__ __forceinline__ void finish_product(float (&sum)[4], float (&part)[4], const unsigned (&high)[4],
                                               unsigned w0, unsigned w1, bool first = false) {
    if (SPLIT == 3) {
        multiply(part, high, w0, w1);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i] = first ? part[i] : sum[i] + part[i];
    } else if (first) {
        multiply_first(sum, high, w0, w1);
    } else {
        multiply(sum, high, w0, w1);
    }
}

__device__ __forceinline__ void spread(unsigned (&w)[4][2], const uint4& a, const uint4& b) {
    w[0][0] = a.x, w[0][1] = a.y, w[1][0] = a.z, w[1][1] = a.w;
    w[2][0] = b.x, w[2][1] = b.y, w[3][0] = b.z, w[3][1] = b.w;
}

// Sums of gy and gy * (s - mean) over the warp's pixels, for each channel. s: as q below. WHOLE: the row goes on beyond
// these pixels.
template <bool WHOLE>
__device__ __forceinline__ void sums_of_gy(const float (&s)[4][4][4], const float* gy, int count,
                                           GradientShared& shared) {
    const int warp = threadIdx.x / WARP, g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int o = 0; o < 4; ++o) {
        const float mean = shared.means[2 * o + t / 2].x;
        float plain[2] = {}, weighted[2] = {};
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            const int p = i / 4 * 16 + i % 4 / 2 * 8;
            if (!WHOLE && p >= count) continue;
            const float v = gy[(8 * o + i % 2) * GY_CHANNEL + p];
            plain[i % 2] += v;
            weighted[i % 2] += v * (s[i / 4][o][i % 4] - mean);
        }
#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
            for (int offset = 4; offset < WARP; offset *= 2) {
                plain[j] += __shfl_xor_sync(ALL_LANES, plain[j], offset);
                weighted[j] += __shfl_xor_sync(ALL_LANES, weighted[j], offset);
            }
            if (g == 0) shared.of_gy[8 * o + 2 * t + j][warp] = make_float2(plain[j], weighted[j]);
        }
    }
}

// Two rows of gx, from `to` on in each channel: pixels 16 i + g (and + 8, last two) of a warp, channels 2 t (and + 1).
__device__ __forceinline__ void store_gx(float* to, const Shape& s, const float (&upper)[2][4],
                                         const float (&lower)[2][4]) {
    const int column = threadIdx.x / WARP * WARP + threadIdx.x % WARP / 4, channel = 2 * (threadIdx.x % 4);
    const int plane = s.H * s.W;
    to += (size_t)channel * plane + column;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int p = i / 4 * 16 + i % 4 / 2 * 8;
        if (column + p >= s.W) continue;
        float* at = to + (i % 2 ? plane : 0) + p;
        __stcs(at, upper[i / 4][i % 4]);
        __stcs(at + s.W, lower[i / 4][i % 4]);
    }
}

// Sums of channels 8 o + 2 t (and + 1) at pixels 16 p + g (and + 8, last two), as in q[p][o][4], in double from global
// memory, for outliers, infinities and what else halves have no room for.
__device__ __noinline__ void convolve_pixels_slowly(const float* x, const float* weight, int H, int W, int oy, int ox,
                                                    float* sums) {
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll 1
    for (int i = 0; i < 64; ++i) {
        const float* w = weight + (i / 4 % 4 * 8 + 2 * t + i % 2) * IN * TAPS;
        const int column = ox + i / 16 * 16 + i % 4 / 2 * 8 + g;
        double sum = 0.0;
#pragma unroll 1
        for (int k = 0; k < IN * TAPS; ++k) {
            const size_t row = (size_t)(k / TAPS) * H + oy + k % TAPS / 3;
            sum += (double)x[row * W + min(column + k % 3, W - 1)] * w[k];
        }
        sums[i] = sum;
    }
}

// A block's part of X_ROWS rows of gx, as in sum[X_ROWS][2][4], from floats of gq.
__device__ __noinline__ void gx_slowly(const float* gq, const float* weight, const float* scale, int OW, float* sums) {
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4, warp = threadIdx.x / WARP;
#pragma unroll 1
    for (int i = 0; i < X_ROWS * 8; ++i) {
        const int column = warp * WARP + i / 4 % 2 * 16 + i % 4 / 2 * 8 + g, c = 2 * t + i % 2;
        double sum = 0.0;
#pragma unroll 1
        for (int k = 0; k < OUT * ROWS * 3; ++k) {  // channel, row and kx
            const int o = k / (ROWS * 3), r = k / 3 % ROWS, ky = i / 8 - r, at = column - k % 3;
            if (ky < 0 || ky > 2 || at < 0 || at >= OW) continue;
            const double w = (double)weight[(o * IN + c) * TAPS + ky * 3 + k % 3] * scale[o];
            sum += gq[o * GY_CHANNEL + r * X_ROW + at] * w;
        }
        sums[i] = sum;
    }
}
#endif
