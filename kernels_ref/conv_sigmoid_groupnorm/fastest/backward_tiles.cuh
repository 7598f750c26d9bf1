// One block a channel of y: rows (count, OUT, SUMS) -> every gradient but x's. gweight may be null.
__global__ void __launch_bounds__(THREADS)
    finish_kernel(const float* rows, int64_t count, const Packed* packed, const float* weight, const float* conv_bias,
                  const float* bias, const float* scale, float* gweight, float* gconv_bias, float* gscale,
                  float* ggn_weight, float* ggn_bias) {
    __shared__ float part[WARPS][SUMS], sum[SUMS];
    const int o = blockIdx.x, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int i = lane; i < SUMS; i += WARP) {
        float v = 0.0f;
        if (i <= OF_LOW) {
#pragma unroll 8
            for (int64_t r = warp; r < count; r += WARPS) v += rows[(r * OUT + o) * SUMS + i];
        }
        part[warp][i] = v;
    }
    __syncthreads();  // every warp's are there
    if (threadIdx.x < SUMS) {
        float v = 0.0f;
        for (int i = 0; i < WARPS; ++i) v += part[i][threadIdx.x];
        sum[threadIdx.x] = v;
    }
    __syncthreads();  // all sums are there
    if (gweight != nullptr && threadIdx.x < IN * TAPS) {
        gweight[o * IN * TAPS + threadIdx.x] = sum[threadIdx.x] * scale[o];
    }
    if (warp > 0) return;
    // In the tf32 class with the upper halves of the weights, and less what x's lower ones add.
    const bool upper = SPLIT == 1 && packed->conv_fits;
    const float unit = upper ? power_of_two(-packed->conv_one[o]) : 1.0f, back = 1.0f / unit;
    float products = 0.0f;
    for (int i = lane; i < IN * TAPS; i += WARP) {
        const float w = weight[o * IN * TAPS + i] * unit;
        products += sum[i] * (upper ? __half2float(__float2half_rn(w)) : w);
    }
    products = warp_sum(products);
    if (upper) products = (products - sum[OF_LOW]) * back;
    if (lane > 0) return;
    gconv_bias[o] = sum[OF_Q] * scale[o];
    gscale[o] = products + (conv_bias[o] + bias[o]) * sum[OF_Q];
    ggn_weight[o] = sum[OF_GY_SH];
    ggn_bias[o] = sum[OF_GY];
}

// ---- backward of any image: the convolution twice, gv in global memory ----

// What the kernels below leave behind for each tile and channel, to be summed: two sums, and the largest magnitude.
struct Part {
    float first, second, largest;
};

// Each tile again from x: v = conv(x) + bias, of which s = sigmoid(v * scale) and sh = (s - mean) * rstd are made anew.
// means (N, groups): mean and rstd; LAST: terms (N, groups): a and b.
// !LAST: parts: sums of gy and gy * sh. LAST: gv; parts: sums of gv and gq * v, largest of gv.
template <bool LAST>
__global__ void __launch_bounds__(THREADS, 2)
    gradient_kernel(const float* x, const float* gy, const float* weight, const float* conv_bias, const float* bias,
                    const float* scale, const float* gn_weight, const float2* means, const float2* terms, Part* parts,
                    float* gv, Shape s) {
#ifdef TENSOR_CORES
    extern __shared__ __align__(16) unsigned char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, segment = warp % SEGMENTS;
    const int first = warp / SEGMENTS * 16 * TALL;
    const int row = segment / (SEGMENTS / ROWS), column = segment % (SEGMENTS / ROWS) * SEGMENT;
    const int64_t tiles = (int64_t)s.tiles_x * s.tiles_y;
    const size_t plane = (size_t)s.OH * s.OW;
    Weights w;
    find_reach(weight, scale, shared);
    w.load<true>(weight, conv_bias, bias, scale, first, shared.line, warp % SEGMENTS == 0);
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
            make_segment<VALUES>(w, shared, fits, one, first, segment, row, column, columns - column,
                                 shared.sigmoid + row * S_ROW + column, image, weight, scale, s, y0 + row, x0 + column);
        }
        __syncthreads();  // v is complete
#pragma unroll 1
        for (int c = 0; c < MINE; ++c) {
            const int channel = warp * MINE + c, group = channel / (OUT / s.groups);
            const float* from = shared.sigmoid + channel * S_CHANNEL + lane;
            const size_t at = (n * OUT + channel) * plane + (size_t)y0 * s.OW + x0 + lane;
            const float2 m = means[n * s.groups + group];
            const float factor = scale[channel], exponent = -1.4426950408889634f * factor;
            float2 ab = make_float2(0.0f, 0.0f);
            if (LAST) ab = terms[n * s.groups + group];
            const float a = ab.x * m.y, b = ab.y * m.y * m.y, gamma = gn_weight[channel] * m.y;
            Part part = {};
            for (int r = 0; r < rows; ++r) {
                float g[X_ROW / WARP];
#pragma unroll
                for (int i = 0; i < X_ROW / WARP; ++i) {
                    g[i] = i * WARP + lane < columns ? __ldg(gy + at + (size_t)r * s.OW + i * WARP) : 0.0f;
                }
#pragma unroll
                for (int i = 0; i < X_ROW / WARP; ++i) {
                    if (i * WARP + lane >= columns) continue;
                    const float v = from[r * S_ROW + i * WARP], sigmoid = sigmoid_of_exponent(v * exponent);
                    if (LAST) {
                        // gy * 1 - a would round alike for all gy of one exponent, and sums would show it
                        const float gs = g[i] * gamma - (a + (sigmoid - m.x) * b), gq = gs * sigmoid * (1.0f - sigmoid);
                        const float result = gq * factor;
                        gv[at + (size_t)r * s.OW + i * WARP] = result;
                        part.first += result;
                        part.second += gq * v;
                        part.largest = fmaxf(part.largest, fabsf(result));
                    } else {
                        part.first += g[i];
                        part.second += g[i] * ((sigmoid - m.x) * m.y);
                    }
                }
            }
            part.first = warp_sum(part.first);
            part.second = warp_sum(part.second);
            part.largest = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(part.largest)));
            if (lane == 0) parts[(n * OUT + channel) * tiles + tile % tiles] = part;
        }
    }
#endif
}

// One block a group: parts -> sums of each channel, both (N, OUT); !LAST: terms (N, groups): a and b, the means of both
// over a group, weighted. LAST: terms: the largest gv, and 0.
template <bool LAST>
__global__ void group_sums_kernel(const Part* parts, const float* gn_weight, float* first, float* second, float2* terms,
                                  Shape s) {
    __shared__ float2 of_channel[OUT];
    const int channels = OUT / s.groups, lane = threadIdx.x % WARP;
    const int64_t tiles = (int64_t)s.tiles_x * s.tiles_y;
    for (int c = threadIdx.x / WARP; c < channels; c += WARPS) {
        const int64_t channel = (int64_t)blockIdx.x * channels + c;
        Part sum = {};
        for (int64_t i = lane; i < tiles; i += WARP) {
            const Part part = parts[channel * tiles + i];
            sum.first += part.first;
            sum.second += part.second;
            sum.largest = fmaxf(sum.largest, part.largest);
        }
        sum.first = warp_sum(sum.first);
        sum.second = warp_sum(sum.second);
#pragma unroll
        for (int offset = WARP / 2; offset > 0; offset /= 2) {
            sum.largest = fmaxf(sum.largest, __shfl_xor_sync(ALL_LANES, sum.largest, offset));
        }
        if (lane == 0) {
            first[channel] = sum.first;
            second[channel] = sum.second;
            const float gamma = gn_weight[channel % OUT];
            of_channel[c] = make_float2(LAST ? sum.largest : sum.first * gamma, LAST ? 0.0f : sum.second * gamma);
        }
    }
    __syncthreads();  // all channels are there
    if (threadIdx.x > 0) return;
    float2 all = make_float2(0.0f, 0.0f);
    for (int c = 0; c < channels; ++c) {
        all.x = LAST ? fmaxf(all.x, of_channel[c].x) : all.x + of_channel[c].x;
        all.y += of_channel[c].y;
    }
    const float part = 1.0f / ((float)channels * s.OH * s.OW);
    terms[blockIdx.x] = LAST ? all : make_float2(all.x * part, all.y * part);
}

// rows (count, columns) -> the sum of each column, one warp each, in an order of their own. Blocks of THREADS.
__global__ void columns_kernel(const float* rows, float* sums, int64_t count, int columns) {
    const int c = blockIdx.x * WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (c >= columns) return;  // a whole warp
    float sum = 0.0f;
    for (int64_t i = lane; i < count; i += WARP) sum += rows[i * columns + c];
    sum = warp_sum(sum);
    if (lane == 0) sums[c] = sum;
}

// The largest gv of every image's groups, and the weights' reach -> largest (N + 1). One block.
__global__ void largest_kernel(const float2* of_group, const float* weight, const float* scale, float* largest, int N,
                               int groups) {
    __shared__ struct {
        float warp_max[WARPS], reach;
    } shared;
    find_reach(weight, scale, shared);
    if (threadIdx.x == 0) largest[N] = shared.reach;
    for (int n = threadIdx.x; n < N; n += THREADS) {
        float most = 0.0f;
        for (int i = 0; i < groups; ++i) most = fmaxf(most, of_group[n * groups + i].x);
        largest[n] = most;
    }
}
