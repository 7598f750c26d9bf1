// ---- any image: the convolution twice ----

// LAST: normalised values -> y; else each tile's moments in every channel -> parts (N, OUT, tiles). Blocks take tiles
// of ROWS x COLUMNS of all images in turn. lines (N, OUT): factor and offset from a channel's sigmoid to y.
template <bool LAST>
__global__ void __launch_bounds__(THREADS, 2)
    tiles_kernel(const float* x, const float* weight, const float* conv_bias, const float* bias, const float* scale,
                 const float2* lines, float2* parts, float* y, Shape s) {
#ifdef TENSOR_CORES
    extern __shared__ __align__(16) unsigned char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int segment = warp % SEGMENTS, first = warp / SEGMENTS * 16 * TALL;
    const int row = segment / (SEGMENTS / ROWS), column = segment % (SEGMENTS / ROWS) * SEGMENT;
    const int64_t tiles = (int64_t)s.tiles_x * s.tiles_y;
    const size_t plane = (size_t)s.OH * s.OW;
    Weights w;
    find_reach(weight, scale, shared);
    w.load<false>(weight, conv_bias, bias, scale, first, shared.line, warp % SEGMENTS == 0);
    if (threadIdx.x < 2) {  // read for results that nobody keeps
        shared.x[X_ROWS * X_ROW + threadIdx.x] = make_uint4(0, 0, 0, 0);
        if (SPLIT == 3) shared.x[LOW / 16 + X_ROWS * X_ROW + threadIdx.x] = make_uint4(0, 0, 0, 0);
    }
    for (int64_t tile = blockIdx.x; tile < tiles * s.N; tile += gridDim.x) {
        const int64_t n = tile / tiles;
        const int x0 = tile % tiles % s.tiles_x * COLUMNS, y0 = tile % tiles / s.tiles_x * ROWS;
        const int rows = min(ROWS, s.OH - y0), columns = min(COLUMNS, s.OW - x0);
        const float* image = x + n * IN * s.H * s.W;
        int one;
        Column pixels;
        pixels.load(image, s, y0, x0);
        pixels.measure(shared);
        __syncthreads();  // all have measured, and nobody reads the last tile any more
        const bool fits = pixels.store<SPLIT == 3>(shared, one, shared.reach);
        __syncthreads();  // halves are complete
        if (row < rows && column < columns) {
            float* to = shared.sigmoid + row * S_ROW + column;
            constexpr int MAKE = LAST ? SIGMOIDS : MOMENTS;
            make_segment<MAKE>(w, shared, fits, one, first, segment, row, column, columns - column, to, image, weight,
                               scale, s, y0 + row, x0 + column);
        }
        __syncthreads();  // sigmoids and moments are complete
        if (LAST) {
#pragma unroll
            for (int c = 0; c < MINE; ++c) {
                const int channel = warp * MINE + c;
                const float* from = shared.sigmoid + channel * S_CHANNEL + lane;
                const float2 k = lines[n * OUT + channel];
                float* to = y + (n * OUT + channel) * plane + (size_t)y0 * s.OW + x0 + lane;
                for (int r = 0; r < rows; ++r, to += s.OW) {
#pragma unroll
                    for (int i = 0; i < X_ROW / WARP; ++i) {
                        if (i * WARP + lane < columns) to[i * WARP] = from[r * S_ROW + i * WARP] * k.x + k.y;
                    }
                }
            }
        } else if (threadIdx.x < OUT * SEGMENTS) {  // a lane has a channel's segment; its neighbours have the others
            const int channel = threadIdx.x / SEGMENTS, i = threadIdx.x % SEGMENTS;
            const int inside = max(0, min(SEGMENT, columns - i % (SEGMENTS / ROWS) * SEGMENT));
            const int count = i / (SEGMENTS / ROWS) < rows ? inside : 0;
            const float2 m = count > 0 ? shared.moments[channel][i] : make_float2(0.0f, 0.0f);
            const float part = 1.0f / (rows * columns);
            float mean = m.x * count;
#pragma unroll
            for (int offset = 1; offset < SEGMENTS; offset *= 2) mean += __shfl_xor_sync(ALL_LANES, mean, offset);
            mean *= part;
            const float e = m.x - mean;
            float off = e * count, squares = m.y + e * e * count;
#pragma unroll
            for (int offset = 1; offset < SEGMENTS; offset *= 2) {
                off += __shfl_xor_sync(ALL_LANES, off, offset);
                squares += __shfl_xor_sync(ALL_LANES, squares, offset);
            }
            off *= part;
            const float2 moments = make_float2(mean + off, squares - off * off * (rows * columns));
            if (i == 0) parts[(n * OUT + channel) * tiles + tile % tiles] = moments;
        }
    }
#endif
}

// What is known of some numbers: how many, their mean, and the sum of their squared deviations from it.
struct Moments {
    float count, mean, squares;
};

// ... while parts are put together.
#if BACKWARD
using Wide = double;  // the errors of a mean and of rstd are errors of one sign in all of a group
struct WideMoments {
    Wide count, mean, squares;
};
#else
using Wide = float;
using WideMoments = Moments;
#endif

// Moments of both together (Chan, Golub and LeVeque, 1979).
__device__ WideMoments merged(const WideMoments& a, const WideMoments& b) {
    const Wide count = a.count + b.count;
    if (count == 0) return a;
    const Wide d = b.mean - a.mean, part = b.count / count;
    return {count, a.mean + d * part, a.squares + b.squares + d * d * a.count * part};
}

// Moments of what all of the block's threads have, for thread 0. Always in the same order.
__device__ WideMoments block_merged(WideMoments m) {
    __shared__ WideMoments of_warp[WARPS];
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        m = merged(m, {__shfl_down_sync(ALL_LANES, m.count, offset), __shfl_down_sync(ALL_LANES, m.mean, offset),
                       __shfl_down_sync(ALL_LANES, m.squares, offset)});  // lane 0 ends with those of its warp
    }
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = m;
    __syncthreads();  // all warps have written
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < WARPS; ++warp) m = merged(m, of_warp[warp]);
    }
    return m;
}

#if BACKWARD
// One block a group: parts -> lines, as above, and means (N, groups): mean and rstd.
__global__ void lines_kernel(const float2* parts, const float* gn_weight, const float* gn_bias, float2* lines,
                             float2* means, Shape s, float eps) {
#else
// One block a group: parts -> lines, as above.
__global__ void lines_kernel(const float2* parts, const float* gn_weight, const float* gn_bias, float2* lines, Shape s,
                             float eps) {
#endif
    const int channels = OUT / s.groups;
    const int64_t tiles = (int64_t)s.tiles_x * s.tiles_y;
    parts += blockIdx.x * channels * tiles;
    WideMoments m = {0, 0, 0};
    for (int64_t i = threadIdx.x; i < channels * tiles; i += THREADS) {
        const int64_t tile = i % tiles;
        const int rows = min((int64_t)ROWS, s.OH - tile / s.tiles_x * ROWS);
        const int columns = min((int64_t)COLUMNS, s.OW - tile % s.tiles_x * COLUMNS);
        m = merged(m, {(Wide)(rows * columns), parts[i].x, parts[i].y});
    }
    m = block_merged(m);
    if (threadIdx.x > 0) return;
    const float variance = m.squares < 0 ? 0 : m.squares / m.count;  // fmax would hide a NaN
    const float rstd = 1.0f / sqrtf(variance + eps);
#if BACKWARD
    means[blockIdx.x] = make_float2(m.mean, rstd);
#endif
    for (int c = blockIdx.x % s.groups * channels, i = 0; i < channels; ++c, ++i) {
        const float factor = rstd * gn_weight[c];
        lines[(int64_t)blockIdx.x * channels + i] = make_float2(factor, gn_bias[c] - m.mean * factor);
    }
}
