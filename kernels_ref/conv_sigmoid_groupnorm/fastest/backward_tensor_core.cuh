constexpr int G_TALL = 8, G_WIDE = 32;  // pixels that a block makes at a time, one row a warp
constexpr int G_ROW = G_WIDE + 2, G_PIXELS = (G_TALL + 2) * G_ROW;  // and those that it reads
static_assert(G_TALL == WARPS, "one row a warp");
constexpr int STEPS = TAPS * OUT / 16;  // of 16 channels of gv, for gx

#ifdef TENSOR_CORES
// CHANNELS planes of the image at `from`, (height, width) pixels, in halves -> planes of 8 channels: first the upper
// halves of all, then, if BOTH, the lower ones. ROWS_ rows of COLUMNS_ pixels from (y0, x0), 0 beyond the edges.
template <int CHANNELS, int ROWS_, int COLUMNS_, bool BOTH>
__device__ __forceinline__ void bring(const float* from, uint4* to, int height, int width, int y0, int x0, float unit) {
    constexpr int PIXELS = ROWS_ * COLUMNS_;
    for (int i = threadIdx.x; i < PIXELS * (CHANNELS / 8); i += THREADS) {
        const int p = i % PIXELS, y = y0 + p / COLUMNS_, x = x0 + p % COLUMNS_;
        const bool inside = y >= 0 && y < height && x >= 0 && x < width;
        const float* at = from + ((size_t)(i / PIXELS * 8) * height + y) * width + x;
        float v[8];
#pragma unroll
        for (int c = 0; c < 8; ++c) v[c] = inside ? __ldg(at + (size_t)c * height * width) * unit : 0.0f;
        uint4 high, low;
        split(v[0], v[1], high.x, low.x);
        split(v[2], v[3], high.y, low.y);
        split(v[4], v[5], high.z, low.z);
        split(v[6], v[7], high.w, low.w);
        to[i] = high;
        if (BOTH) to[PIXELS * (CHANNELS / 8) + i] = low;
    }
}
#endif

// gx[n, c, y, x] = sum of gv[n, o, y - ky, x - kx] * weight[o, c, ky, kx]. largest: of each image's gv.
__global__ void __launch_bounds__(THREADS, 2)
    gx_tensor_kernel(const float* gv, const float* weight, const float* largest, float* gx, Shape s) {
#ifdef TENSOR_CORES
    extern __shared__ __align__(16) unsigned char memory[];
    uint4* halves = reinterpret_cast<uint4*>(memory);  // (OUT / 8) planes of G_PIXELS pixels, twice
    __shared__ float warp_max[WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4, matrix = lane / 8;
    int weight_one;
    float most = 0.0f;
    for (int i = threadIdx.x; i < OUT * IN * TAPS; i += THREADS) most = fmaxf(most, fabsf(weight[i]));
    most = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(most)));
    if (lane == 0) warp_max[warp] = most;
    __syncthreads();  // all warps have written
    for (int i = 0; i < WARPS; ++i) most = fmaxf(most, warp_max[i]);
    const bool fits_weight = fits_halves(most, weight_one);
    const float weight_unit = fits_weight ? power_of_two(-weight_one) : 0.0f;

    // Step 2 k + i takes tap k and channels 16 i + 2 t, + 1, + 8, + 9 of gv. Lane: channel g of x.
    unsigned high[STEPS][2], low[SPLIT == 3 ? STEPS : 1][2];
#pragma unroll
    for (int k = 0; k < STEPS; ++k) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float* w = weight + ((k % 2 * 16 + i * 8 + 2 * t) * IN + g) * TAPS + k / 2;
            unsigned h, l;
            split(w[0] * weight_unit, w[IN * TAPS] * weight_unit, h, l);
            high[k][i] = h;
            if (SPLIT == 3) low[k][i] = l;
        }
    }
    const int tiles_x = (s.W + G_WIDE - 1) / G_WIDE, tiles_y = (s.H + G_TALL - 1) / G_TALL;
    const unsigned base = (unsigned)__cvta_generic_to_shared(halves);
    constexpr int PLANE = G_PIXELS * 16, LOWER = OUT / 8 * PLANE;
    for (int64_t tile = blockIdx.x; tile < (int64_t)tiles_x * tiles_y * s.N; tile += gridDim.x) {
        const int64_t n = tile / (tiles_x * tiles_y);
        const int y0 = tile / tiles_x % tiles_y * G_TALL, x0 = tile % tiles_x * G_WIDE, y = y0 + warp;
        const float* image = gv + n * OUT * s.OH * s.OW;
        int one;
        const bool fit = fits_halves(largest[n], one) && fits_weight;
        float sum[2][4] = {};  // channels 2 t, 2 t + 1 at pixels 16 i + g (and + 8, last two)
        __syncthreads();  // nobody reads the last tile any more
        if (fit) {
            bring<OUT, G_TALL + 2, G_ROW, SPLIT == 3>(image, halves, s.OH, s.OW, y0 - 2, x0 - 2, power_of_two(-one));
        }
        __syncthreads();  // halves are complete
        if (fit) {
            // matrices: 8 pixels of 8 channels, 8 pixels more, and both of the next 8 channels
            const unsigned at = base + ((warp + 2) * G_ROW + 2 + lane % 8 + matrix % 2 * 8) * 16 + matrix / 2 * PLANE;
#pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
#pragma unroll
                    for (int k = 2 * tap; k < 2 * tap + 2; ++k) {
                        const unsigned from = at - (tap / 3 * G_ROW + tap % 3) * 16 + k % 2 * 2 * PLANE + i * 256;
                        unsigned a[4];
                        load_matrices(a, from);
                        unsigned b[4];
                        if (SPLIT == 3) load_matrices(b, from + LOWER);
                        const int l = SPLIT == 3 ? k : 0;
                        float part[4];
                        if (SPLIT == 3) multiply_first(part, a, low[l][0], low[l][1]);
                        if (SPLIT == 3) multiply(part, b, high[k][0], high[k][1]);
                        finish_product(sum[i], part, a, high[k][0], high[k][1]);
                    }
                }
            }
        } else {
            for (int i = 0; i < 8; ++i) {
                const int c = 2 * t + i % 2, column = x0 + i / 4 * 16 + i % 4 / 2 * 8 + g;
                double slow = 0.0;
                for (int k = 0; k < OUT * TAPS; ++k) {
                    const int oy = y - k % TAPS / 3, ox = column - k % 3;
                    const bool inside = oy >= 0 && oy < s.OH && ox >= 0 && ox < s.OW;
                    const float w = weight[(k / TAPS * IN + c) * TAPS + k % TAPS];
                    if (inside) slow += (double)image[((size_t)(k / TAPS) * s.OH + oy) * s.OW + ox] * w;
                }
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    if (i == j) sum[j / 4][j % 4] = slow;
            }
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int c = 2 * t + i % 2, column = x0 + i / 4 * 16 + i % 4 / 2 * 8 + g;
            const float sum_of = sum[i / 4][i % 4];
            const float v = fit ? sum_of * power_of_two(one) * power_of_two(weight_one) : sum_of;
            if (y < s.H && column < s.W) gx[((n * IN + c) * s.H + y) * s.W + column] = v;
        }
    }
#endif
}

#ifdef TENSOR_CORES
// A warp's sums over two rows of a tile, as in total[TAPS][4] below, in double from global memory, for outliers,
// infinities and what else halves have no room for. gv, x: the image's.
__device__ __noinline__ void gweight_slowly(const float* gv, const float* x, int H, int W, int oy, int ox,
                                            float* sums) {
    const int lane = threadIdx.x % WARP, half = threadIdx.x / WARP % 2, OH = H - 2, OW = W - 2;
    const int rows = min(2, OH - oy), columns = min(G_WIDE, OW - ox);
#pragma unroll 1
    for (int i = 0; i < TAPS * 4; ++i) {
        const int o = half * 16 + lane / 4 + i % 4 / 2 * 8, c = 2 * (lane % 4) + i % 2;
        const float* of_gv = gv + ((size_t)o * OH + oy) * OW + ox;
        const float* of_x = x + ((size_t)c * H + oy + i / 12) * W + ox + i / 4 % 3;
        double sum = 0.0;
#pragma unroll 1
        for (int r = 0; r < rows; ++r) {
            for (int k = 0; k < columns; ++k) sum += (double)of_gv[r * OW + k] * of_x[r * W + k];
        }
        sums[i] = sum;
    }
}
#endif

// gweight[o, c, ky, kx] = sum of gv[n, o, oy, ox] * x[n, c, oy + ky, ox + kx]. Each block leaves its sum: (blocks, OUT,
// IN * TAPS). Warps: 16 channels of gv and two rows each. Three products of halves in both classes: eager has cuDNN sum
// these in float32 even where TF32 is allowed. largest: of each image's gv, and the weights' reach.
__global__ void __launch_bounds__(THREADS, 2)
    gweight_tensor_kernel(const float* gv, const float* x, const float* largest, float* parts, Shape s) {
#ifdef TENSOR_CORES
    extern __shared__ __align__(16) unsigned char memory[];
    constexpr int PIXELS = G_TALL * G_WIDE, PLANE = PIXELS * 16, LOWER = OUT / 8 * PLANE, X_LOWER = G_PIXELS * 16;
    constexpr int ROUNDS = (G_PIXELS + THREADS - 1) / THREADS;  // pixels of x that a thread brings
    uint4* gv_halves = reinterpret_cast<uint4*>(memory);
    uint4* x_halves = gv_halves + 2 * LOWER / 16;
    float* sums = reinterpret_cast<float*>(memory);  // of two warps at a time, at the end
    __shared__ float warp_max[WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4, matrix = lane / 8;
    const int half = warp % 2, row = warp / 2 * 2;
    const int tiles_x = (s.OW + G_WIDE - 1) / G_WIDE, tiles_y = (s.OH + G_TALL - 1) / G_TALL;
    const int64_t tiles = (int64_t)tiles_x * tiles_y * s.N;
    const unsigned base = (unsigned)__cvta_generic_to_shared(gv_halves);
    const unsigned x_base = (unsigned)__cvta_generic_to_shared(x_halves);
    float total[TAPS][4] = {};  // channels 16 half + g (and + 8, last two) of gv, 2 t and 2 t + 1 of x
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int64_t n = tile / (tiles_x * tiles_y);
        const int y0 = tile / tiles_x % tiles_y * G_TALL, x0 = tile % tiles_x * G_WIDE;
        const float *image = gv + n * OUT * s.OH * s.OW, *x_image = x + n * IN * s.H * s.W;
        float pixel[ROUNDS][IN], seen[ROUNDS], most = 0.0f;
#pragma unroll
        for (int k = 0; k < ROUNDS; ++k) {
            const int p = k * THREADS + threadIdx.x, y = y0 + p / G_ROW, column = x0 + p % G_ROW;
            const bool inside = p < G_PIXELS && y < s.H && column < s.W;
            seen[k] = 0.0f;
#pragma unroll
            for (int c = 0; c < IN; ++c) {
                pixel[k][c] = inside ? __ldg(x_image + ((size_t)c * s.H + y) * s.W + column) : 0.0f;
                seen[k] = fmaxf(seen[k], fabsf(pixel[k][c]));
            }
            most = fmaxf(most, seen[k]);
        }
        most = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(most)));
        if (lane == 0) warp_max[warp] = most;
        __syncthreads();  // all have measured, and nobody reads the last tile any more
#pragma unroll
        for (int i = 0; i < WARPS; ++i) most = fmaxf(most, warp_max[i]);
        int one, x_one;
        const bool fits_gv = fits_halves(largest[n], one);
        bool fit = fits_halves(most, x_one) && fits_gv;
        if (fit && !(most * largest[s.N] <= ENOUGH)) {
            bool cut = false;
#pragma unroll
            for (int k = 0; k < ROUNDS; ++k) cut = cut || may_cut(most, seen[k]);
            fit = !__syncthreads_or(cut);
        }
        if (fit) {
            const float x_unit = power_of_two(-x_one);
#pragma unroll
            for (int k = 0; k < ROUNDS; ++k) {
                const int p = k * THREADS + threadIdx.x;
                uint4 high, low;
                split(pixel[k][0] * x_unit, pixel[k][1] * x_unit, high.x, low.x);
                split(pixel[k][2] * x_unit, pixel[k][3] * x_unit, high.y, low.y);
                split(pixel[k][4] * x_unit, pixel[k][5] * x_unit, high.z, low.z);
                split(pixel[k][6] * x_unit, pixel[k][7] * x_unit, high.w, low.w);
                if (p < G_PIXELS) x_halves[p] = high, x_halves[G_PIXELS + p] = low;
            }
            bring<OUT, G_TALL, G_WIDE, true>(image, gv_halves, s.OH, s.OW, y0, x0, power_of_two(-one));
        }
        __syncthreads();  // halves are complete
        if (!fit) {
            float slow[TAPS * 4];
            gweight_slowly(image, x_image, s.H, s.W, y0 + row, x0, slow);
#pragma unroll
            for (int i = 0; i < TAPS * 4; ++i) total[i / 4][i % 4] += slow[i];
            continue;
        }
        const float back = power_of_two(one) * power_of_two(x_one);
#pragma unroll
        for (int j = 0; j < 4; ++j) {  // 16 pixels
            const int y = row + j / 2, x1 = j % 2 * 16;
            // gv, transposed: 8 channels at 8 pixels, 8 channels more, and both at the next 8 pixels
            const int pixel = y * G_WIDE + x1 + lane % 8 + matrix / 2 * 8;
            const unsigned at = base + (half * 2 + matrix % 2) * PLANE + pixel * 16;
            unsigned a[4], a_low[4];
            load_transposed(a, at);
            load_transposed(a_low, at + LOWER);
            // x, transposed: 8 pixels, 8 more, and the lower halves of both
            const int x_pixel = y * G_ROW + x1 + lane % 8 + matrix % 2 * 8;
            const unsigned x_at = x_base + x_pixel * 16 + matrix / 2 * X_LOWER;
#pragma unroll
            for (int k = 0; k < TAPS; ++k) {
                unsigned b[4];
                load_transposed(b, x_at + (k / 3 * G_ROW + k % 3) * 16);
                float part[4];  // tensor cores cut their sums, float32 rounds
                multiply_first(part, a_low, b[0], b[1]);
                multiply(part, a, b[2], b[3]);
                multiply(part, a, b[0], b[1]);
                add(total[k], part, back);
            }
        }
    }
    for (int r = 0; r < G_TALL; r += 2) {  // rows' sums, one after another
        __syncthreads();
        if (row == r) {
#pragma unroll
            for (int i = 0; i < 4 * TAPS; ++i) {
                const int o = half * 16 + g + i % 4 / 2 * 8, c = 2 * t + i % 2;
                float& at = sums[(o * IN + c) * TAPS + i / 4];
                at = (r > 0 ? at : 0.0f) + total[i / 4][i % 4];
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < OUT * IN * TAPS; i += THREADS) {
        parts[(int64_t)blockIdx.x * OUT * IN * TAPS + i] = sums[i];
    }
#endif
}
