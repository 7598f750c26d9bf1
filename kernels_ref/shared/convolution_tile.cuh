#ifdef TENSOR_CORES

// A tile of R rows. Shared memory has R + 2 rows of x as they come, [channel][row][RAW], and the same pixel by pixel in
// halves, 8 channels in 16 bytes; with SPLIT 3 once more, what those halves leave.
template <int SPLIT, int R, int WARPS>
struct Tile {
    static constexpr int ROWS = R + 2, PIXELS = ROWS * COLUMNS, PLANES = SPLIT == 3 ? 2 : 1, THREADS = WARPS * WARP;
    static constexpr int USUAL = 8;  // for numbers from 2^-5 to 2^7
    static_assert(WARPS % IN == 0 || IN % WARPS == 0, "warps share the channels of x evenly");
    static_assert(CHUNK * Weights<SPLIT, 1>::PITCH <= IN * ROWS * RAW, "the weights are staged where x comes");
    uint4* pixels;
    float* raw;
    const float* x;
    const Shape& s;
    bool vector;     // rows begin at multiples of 16 bytes
    int exponent;    // of the scale of the tile in `pixels`
#if BACKWARD && CONV_GROUPNORM_MAXPOOL
    float largest;   // of its numbers
    float least;     // of what is the largest that one thread met, without zeros; only thread 0 has it
#endif
    bool settled;    // whether the image's scale was chosen by numbers that it has
#if CONV_GROUPNORM_LOGSUMEXP
    bool uneven;     // whether the image had a tile that they are not good enough for
#endif
    int n, y0, x0;   // the tile's image and place
    int next_n, next_y0, next_x0;
#if CONV_GROUPNORM_LOGSUMEXP && BACKWARD
    float largest;   // magnitude of the tile's numbers
#endif

    __device__ __forceinline__ Tile(uint4* shared, const float* x, const Shape& s)
        : pixels(shared),
          raw(reinterpret_cast<float*>(shared + PLANES * PIXELS)),
          x(x),
          s(s),
          vector(s.W % 4 == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0),
          exponent(USUAL),
          settled(false),
#if CONV_GROUPNORM_LOGSUMEXP
          uneven(false),
#endif
          n(-1) {
    }

    // What no copy writes is zero: channels that there are not, and columns behind an image of one tile's width.
    __device__ __forceinline__ void clear() {
        for (int i = threadIdx.x; i < IN * ROWS * RAW; i += THREADS) raw[i] = 0.0f;
        for (int i = threadIdx.x; i < PLANES * ROWS * 2; i += THREADS) pixels[i / 2 * COLUMNS + WIDE + i % 2] = {};
        __syncthreads();  // all is zero
    }

    // Goes to tile i.
    __device__ __forceinline__ void start(int i) {
        const int of_image = s.tiles_x * s.tiles_y;
        next_n = i / of_image;
        next_y0 = i % of_image / s.tiles_x * R;
        next_x0 = i % of_image % s.tiles_x * WIDE;
        bring();
    }

    // Starts to bring the next tile; beyond the image come zeros. Nobody may be reading `raw`.
    __device__ __forceinline__ void bring() {
        const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
        const float* image = x + (int64_t)next_n * s.C * s.H * s.W;
        const uint32_t to = (uint32_t)__cvta_generic_to_shared(raw);
        if (vector) {
            constexpr int STEP = WARPS < IN ? 1 : WARPS / IN;  // rows
            static_assert(ROWS % STEP == 0, "warps share a channel's rows evenly");
            const int column = next_x0 + lane * 4;
            const bool in = column < s.W;
            for (int k = warp % IN; k < s.C; k += WARPS < IN ? WARPS : IN) {
                const float* from = image + ((int64_t)k * s.H + next_y0 + warp / IN) * s.W + (in ? column : 0);
                const uint32_t at = to + ((k * ROWS + warp / IN) * RAW + lane * 4) * 4;
                const int rows = s.H - next_y0 - warp / IN;  // that the image has from here
                if (rows >= ROWS) {
#pragma unroll
                    for (int r = 0; r < ROWS; r += STEP, from += STEP * s.W) copy16(at + r * RAW * 4, from, in);
                } else {
                    for (int r = 0; r < ROWS; r += STEP, from += STEP * s.W) {
                        copy16(at + r * RAW * 4, r < rows ? from : x, in && r < rows);
                    }
                }
            }
            if (s.tiles_x > 1) {
                for (int u = threadIdx.x; u < s.C * ROWS; u += THREADS) {
                    const int k = u / ROWS, row = next_y0 + u % ROWS;
                    const bool in = row < s.H && next_x0 + WIDE < s.W;
                    const float* from = image + ((int64_t)k * s.H + row) * s.W + next_x0 + WIDE;
                    copy16(to + (u * RAW + WIDE) * 4, in ? from : x, in);
                }
            }
        } else {
            for (int u = warp; u < s.C * ROWS; u += WARPS) {
                const int k = u / ROWS, row = next_y0 + u % ROWS;
                for (int c = lane; c < COLUMNS; c += WARP) {
                    const bool in = row < s.H && next_x0 + c < s.W;
                    const float* from = image + ((int64_t)k * s.H + row) * s.W + next_x0 + c;
                    copy4(to + (u * RAW + c) * 4, in ? from : x, in);
                }
            }
        }
    }

    // raw -> pixels; returns the largest magnitude that the thread met.
    __device__ __forceinline__ float halve() {
        const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
        const float up = power_of_two(exponent);
        float most = 0.0f;
        const auto pixel = [&](int r, int c) {
            const float* at = raw + r * RAW + c;
            float v[IN];
#pragma unroll
            for (int k = 0; k < IN; ++k) {
                v[k] = at[k * ROWS * RAW];
                most = fmaxf(most, fabsf(v[k]));
                v[k] *= up;
            }
            const uint4 high = {halves(v[0], v[1]), halves(v[2], v[3]), halves(v[4], v[5]), halves(v[6], v[7])};
            pixels[r * COLUMNS + c] = high;
            if constexpr (SPLIT == 3) {
                pixels[PIXELS + r * COLUMNS + c] = {rest(high.x, v[0], v[1]), rest(high.y, v[2], v[3]),
                                                    rest(high.z, v[4], v[5]), rest(high.w, v[6], v[7])};
            }
        };
        constexpr int SEGMENTS = WIDE / WARP;
#pragma unroll 2
        for (int u = warp; u < ROWS * SEGMENTS; u += WARPS) pixel(u / SEGMENTS, u % SEGMENTS * WARP + lane);
        if (s.tiles_x > 1 || !vector) {
            for (int u = threadIdx.x; u < ROWS * 2; u += THREADS) pixel(u / 2, WIDE + u % 2);
        }
        return most;
    }

#if CONV_GROUPNORM_LOGSUMEXP
    // Whether the thread meets a pixel whose numbers, when scaled, are all below 1, but not all 0: of these halves may
    // keep less than float32 does of a sum. Any window of other pixels has a number whose last digit halves keep.
    __device__ __forceinline__ bool loses() const {
        const float least = power_of_two(-exponent);
        bool any = false;
#pragma unroll 1
        for (int i = threadIdx.x; i < PIXELS; i += THREADS) {
            const float* at = raw + i / COLUMNS * RAW + i % COLUMNS;
            float most = 0.0f;
#pragma unroll
            for (int k = 0; k < IN; ++k) most = fmaxf(most, fabsf(at[k * ROWS * RAW]));
            any = any || (most > 0.0f && most < least);
        }
        return any;
    }

#endif
    // The tile that was brought is made ready, and with `more` the next one begins to come. Halves go from 2^-24 to
    // 2^16: where the tile's largest number does not lie well between, it is done again with another scale; but once
    // there were numbers, an image's scale only falls. Returns true where an image begins. All threads must call it;
    // begins and ends with a barrier.
#if CONV_GROUPNORM_LOGSUMEXP
    // Below the exponent `lowest` halves may not be good enough: there the tile is looked at.
    __device__ __forceinline__ bool ready(bool more, int lowest)
#else
    __device__ __forceinline__ bool ready(bool more)
#endif
    {
#if BACKWARD && CONV_GROUPNORM_MAXPOOL
        __shared__ float of_warp[WARPS], least_of_warp[WARPS];
#else
        __shared__ float of_warp[WARPS];
#endif
        const bool fresh = n != next_n;
        n = next_n, y0 = next_y0, x0 = next_x0;
        settled = settled && !fresh;
#if CONV_GROUPNORM_LOGSUMEXP
        uneven = uneven && !fresh;
#endif
        wait_for_copies();
        for (int attempt = 0; attempt < 2; ++attempt) {
            __syncthreads();  // all copies are there, and nobody reads the last tile any more
            const float mine = halve();
            // As integers: magnitudes are in the same order.
            const unsigned largest_of_warp = __reduce_max_sync(ALL_LANES, __float_as_uint(mine));
            if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = __uint_as_float(largest_of_warp);
#if BACKWARD && CONV_GROUPNORM_MAXPOOL
            const unsigned least = __reduce_min_sync(ALL_LANES, __float_as_uint(mine > 0.0f ? mine : INFINITY));
            if (threadIdx.x % WARP == 0) least_of_warp[threadIdx.x / WARP] = __uint_as_float(least);
#endif
            __syncthreads();  // the tile is complete
#if BACKWARD
            largest = 0.0f;
#else
            float largest = 0.0f;
#endif
#pragma unroll
            for (int w = 0; w < WARPS; ++w) largest = fmaxf(largest, of_warp[w]);
            if (largest == 0.0f && fresh) exponent = USUAL;  // with any scale, zeros are zeros
            if (largest == 0.0f || largest == INFINITY) break;
            const int higher = exponent_for(largest) - exponent;
            const bool fits = higher >= -5 && (higher <= 6 || settled);  // 2^3 ... 2^15
            settled = true;
            if (fits) break;
            exponent += higher;
        }
#if CONV_GROUPNORM_LOGSUMEXP
        if (exponent < lowest && __syncthreads_or(loses())) uneven = true;
#elif BACKWARD
        if (threadIdx.x == 0) {
            least = INFINITY;
#pragma unroll
            for (int w = 0; w < WARPS; ++w) least = fminf(least, least_of_warp[w]);
        }
#endif
        if (more) {
            next_x0 += WIDE;
            if (next_x0 >= s.OW) next_x0 = 0, next_y0 += R;
            if (next_y0 >= s.OH) next_y0 = 0, ++next_n;
            bring();
        }
        return fresh;
    }
};
#endif
