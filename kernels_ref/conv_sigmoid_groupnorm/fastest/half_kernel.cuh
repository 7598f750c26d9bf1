// ---- half an image's channels on the chip ----

constexpr int HALVES = 2, HALF = OUT / HALVES;  // channels that a block makes at a time
constexpr int STEP = 8 * WIDE;  // pixels that a warp makes at a time
constexpr int NEVER = INT_MIN;  // x is not in halves
constexpr int ROUNDS = 2;  // pixels of x in a piece that each thread has; one warp has the rest

// How images are dealt out: a block makes a strip of some rows, piece by piece.
struct Deal {
    int rows, columns, pixels;  // of a piece: results, and (rows + 2) * (columns + 2) pixels of x
    int steps_log;  // log2 of the steps in a piece's row
    int pieces, strips, teams;  // of a strip, of an image, of all
    int channel;  // floats from a channel's sigmoids to the next: 8 channels by 4 pairs lie in all banks
};

// In shared memory it is followed by the sigmoids of all channels and by two pieces of x.
struct alignas(16) HalfShared {
    float2 line[HALF];
    float2 moments[HALF][WARPS];  // mean and squared deviations of what a warp made ...
    int made[WARPS];  // ... of so many pixels
    float2 norm[HALF];  // factor and offset from a channel's sigmoid to y
    float warp_max[WARPS];
    int one;  // the exponent of 1 in the halves of x, or NEVER
    bool fit;  // halves have room for the weights
    int strip, y0, rows;  // the block's: which one, from where in y, how many
    float reach;  // of the weights of all channels
    const float *from, *next;  // of x: the item's image, the next item's or null
    int plane, last_plane;  // the first of the item, and of what is in shared memory, of all planes of y
};
static_assert(sizeof(HalfShared) % 16 == 0, "what follows is read in vectors");

static int64_t half_bytes(const Deal& d) {
    return sizeof(HalfShared) + (int64_t)HALF * d.channel * sizeof(float) + (int64_t)2 * d.pixels * IN * sizeof(float);
}

// The same value, but the compiler cannot tell: what follows from it is computed anew where it is needed. Kept it would
// lie in local memory, and beside so much shared memory L1 is too small for that.
__device__ __forceinline__ int anew(int value) {
    if (SPLIT == 3) asm volatile("" : "+r"(value));  // one product of halves leaves registers enough
    return value;
}

// What a warp makes of a piece: STEP pixels of a row.
struct Place {
    int lane, row, step, column, count;  // column of the image, pixels from there to its end

    __device__ __forceinline__ Place(const Deal& d, const Shape& s, int rows, int piece) {
        const int thread = anew(threadIdx.x), warp = thread / WARP;
        lane = thread % WARP;
        row = warp >> d.steps_log;
        step = (warp & ((1 << d.steps_log) - 1)) * STEP;
        column = piece * d.columns + step;
        count = row < rows ? s.OW - column : 0;
    }
    __device__ __forceinline__ int g() const { return lane / 4; }
    __device__ __forceinline__ int t() const { return lane % 4; }
    __device__ __forceinline__ int matrix() const { return lane / 8; }
};

// As image_kernel, for images of which only half the channels have room: d.teams times d.strips blocks. A team makes
// every teams-th half of an image, an item. An even number of teams has one half of the channels each, an odd one first
// all images' first half, as weights are dear to load. Of a piece a warp has the same STEP pixels in all items; their
// sigmoids stay in registers until those of the last item, whose moments have arrived meanwhile, have left their place
// in shared memory for y. So an item is written while the next one is computed.
__global__ void __launch_bounds__(THREADS, 2)
    half_kernel(const float* x, const float* weight, const float* conv_bias, const float* bias, const float* scale,
                const float* gn_weight, const float* gn_bias, unsigned long long* parts, float* y, Shape s, Deal d,
                float eps) {
#ifdef TENSOR_CORES
    extern __shared__ __align__(16) unsigned char memory[];
    HalfShared& shared = *reinterpret_cast<HalfShared*>(memory);
    float* const sigmoids = reinterpret_cast<float*>(memory + sizeof(HalfShared));
    uint4* const pieces = reinterpret_cast<uint4*>(sigmoids + HALF * d.channel);
    const int team = blockIdx.x / d.strips, x_row = d.columns + 2;
    const size_t plane = (size_t)s.OH * s.OW;
    const int items = HALVES * s.N;
    const auto image_of = [&](int item) { return d.teams % 2 ? item % s.N : item / 2; };
    const auto half_of = [&](int item) { return d.teams % 2 ? item / s.N : item % 2; };
    const auto pixels_of = [&](int item) {
        return item < items ? x + (size_t)image_of(item) * IN * s.H * s.W : nullptr;
    };

    // Starts to bring a piece of an image (null: of none): a warp has a channel. 0 where the image ends.
    const auto start_copy = [&](const float* from, int piece, int buffer) {
        if (from) {
            const auto copy = [](unsigned to, const float* from, bool inside) {
                asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(inside ? 8 : 0)
                             : "memory");
            };
            const int thread = anew(threadIdx.x), lane = thread % WARP, warp = thread / WARP;
            const int p = 2 * lane, left = s.W - piece * d.columns, rows = shared.rows + 2;
            unsigned to = (unsigned)__cvta_generic_to_shared(pieces + buffer * 2 * d.pixels) + warp * d.pixels * 4;
            from += ((size_t)warp * s.H + shared.y0) * s.W + piece * d.columns;
            if (lane < d.rows + 2) {  // a row's last two pixels
                copy(to + (lane * x_row + d.columns) * 4, from + (size_t)lane * s.W + d.columns,
                     lane < rows && left > d.columns);
            }
            if (p < d.columns) {
                from += p;
                to += p * 4;
                int r = 0;
#pragma unroll 1
                for (; r < rows; ++r, from += s.W, to += x_row * 4) {
                    copy(to, from, left > p);
                    if (d.columns > 2 * WARP) copy(to + 8 * WARP, from + 2 * WARP, left > p + 2 * WARP);
                }
#pragma unroll 1
                for (; r < d.rows + 2; ++r, to += x_row * 4) {  // rows below the image
                    copy(to, from, false);
                    if (d.columns > 2 * WARP) copy(to + 8 * WARP, from, false);
                }
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    // What came -> halves, in its own place.
    const auto convert = [&](int buffer) {
        const int thread = anew(threadIdx.x), lane = thread % WARP, warp = thread / WARP;
        uint4* const to = pieces + buffer * 2 * d.pixels;
        const float* const from = reinterpret_cast<const float*>(to);
        const int rest = ROUNDS * THREADS + lane / (IN / 2), pair = lane % (IN / 2);  // a lane: two channels
        const bool has_rest = warp == WARPS - 1 && rest < d.pixels;
        float value[ROUNDS][IN], of_rest[2], largest = 0.0f;
#pragma unroll
        for (int k = 0; k < ROUNDS; ++k) {
            const int p = k * THREADS + thread;
#pragma unroll
            for (int c = 0; c < IN; ++c) {
                value[k][c] = p < d.pixels ? from[c * d.pixels + p] : 0.0f;
                largest = fmaxf(largest, fabsf(value[k][c]));
            }
        }
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            of_rest[c] = has_rest ? from[(pair * 2 + c) * d.pixels + rest] : 0.0f;
            largest = fmaxf(largest, fabsf(of_rest[c]));
        }
        largest = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(largest)));
        if (lane == 0) shared.warp_max[warp] = largest;
        __syncthreads();  // all have measured, and read what came
        largest = 0.0f;
#pragma unroll
        for (int i = 0; i < WARPS; ++i) largest = fmaxf(largest, shared.warp_max[i]);
        int one;
        bool fits = fits_halves(largest, one);
        if (fits && !(largest * shared.reach <= ENOUGH)) {
            bool cut = false;
#pragma unroll
            for (int k = 0; k < ROUNDS; ++k) {
                float seen = 0.0f;
#pragma unroll
                for (int c = 0; c < IN; ++c) seen = fmaxf(seen, fabsf(value[k][c]));
                cut = cut || may_cut(largest, seen);
            }
            float seen = fmaxf(fabsf(of_rest[0]), fabsf(of_rest[1]));
            seen = fmaxf(seen, __shfl_xor_sync(ALL_LANES, seen, 1));
            seen = fmaxf(seen, __shfl_xor_sync(ALL_LANES, seen, 2));
            fits = !__syncthreads_or(cut || may_cut(largest, seen));
        }
        if (thread == 0) shared.one = fits ? one : NEVER;
        if (!fits) return;
        const float unit = power_of_two(-one);
#pragma unroll
        for (int k = 0; k < ROUNDS; ++k) {
            const int p = k * THREADS + thread;
            if (p < d.pixels) {
                uint4 high, low;
                split(value[k][0] * unit, value[k][1] * unit, high.x, low.x);
                split(value[k][2] * unit, value[k][3] * unit, high.y, low.y);
                split(value[k][4] * unit, value[k][5] * unit, high.z, low.z);
                split(value[k][6] * unit, value[k][7] * unit, high.w, low.w);
                to[p] = high;
                if (SPLIT == 3) to[d.pixels + p] = low;
            }
        }
        if (has_rest) {
            unsigned high, low;
            split(of_rest[0] * unit, of_rest[1] * unit, high, low);
            reinterpret_cast<unsigned*>(to + rest)[pair] = high;
            if (SPLIT == 3) reinterpret_cast<unsigned*>(to + d.pixels + rest)[pair] = low;
        }
    };

    // Awaits every block's part of an item: what its sigmoids are multiplied by, and what is added -> shared.norm.
    const auto await_moments = [&] {
        constexpr int PARTS = 8;  // that a lane asks for at a time
        const int thread = anew(threadIdx.x), lane = thread % WARP, warp = thread / WARP;
        if (warp >= HALF / QUAD) return;  // a warp for each four channels
        const int strips = anew(d.strips), rows = anew(d.rows), quads = QUADS / anew(s.groups);
        const int members = strips * quads;  // parts of a group
        const int of = shared.last_plane / QUAD + warp;  // of all images' quads
        const unsigned long long* at = parts + (size_t)(of / quads * quads) * strips;
        const float usual = QUAD * rows * s.OW;  // elements of a part, but for the last
        const float last = QUAD * (s.OH - (strips - 1) * rows) * s.OW;
        const float a_group = 1.0f / (QUAD * quads * (float)(s.OH * s.OW));
        float about = 0.0f, off = 0.0f, between = 0.0f, within = 0.0f;
#pragma unroll 1
        for (int p0 = 0; p0 < members; p0 += PARTS * WARP) {
            unsigned long long part[PARTS];
            bool waiting;
            do {
                waiting = false;
#pragma unroll
                for (int i = 0; i < PARTS; ++i) {
                    const int p = p0 + i * WARP + lane;
                    part[i] = 0;
                    if (p < members) {
                        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(part[i]) : "l"(at + p) : "memory");
                    }
                    waiting = waiting || part[i] == NOT_YET;
                }
            } while (__any_sync(ALL_LANES, waiting));
            if (p0 == 0) {  // about the mean of some
                const float some = lane < members ? __uint_as_float((unsigned)part[0]) : 0.0f;
                about = warp_sum(some) * (1.0f / min(WARP, members));
            }
#pragma unroll
            for (int i = 0; i < PARTS; ++i) {
                const int p = p0 + i * WARP + lane;
                const float e = p < members ? __uint_as_float((unsigned)part[i]) - about : 0.0f;
                const bool ends = p + 1 == strips || p + 1 == 2 * strips || p + 1 == 3 * strips || p + 1 == members;
                const float size = ends ? last : usual;
                off += e * size;
                between += e * e * size;
                within += __uint_as_float((unsigned)(part[i] >> 32));
            }
        }
        const float sum = warp_sum(off);
        between = warp_sum(between);
        within = warp_sum(within);
        off = sum * a_group;
        const float squares = within + (between - sum * off);
        const float variance = squares < 0.0f ? 0.0f : squares * a_group;  // fmaxf would hide a NaN
        const float mean = about + off, rstd = rsqrtf(variance + eps);
        if (lane < QUAD) {
            const int channel = warp * QUAD + lane, o = shared.last_plane % OUT + channel;
            const float factor = rstd * gn_weight[o];
            shared.norm[channel] = make_float2(factor, gn_bias[o] - mean * factor);
        }
    };

    Weights w;
    int buffer = 0;
    if (threadIdx.x == 0) {
        shared.strip = blockIdx.x % d.strips;
        shared.y0 = shared.strip * d.rows;
        shared.rows = min(d.rows, s.OH - shared.y0);
    }
    __syncthreads();
    start_copy(pixels_of(team), 0, 0);
    find_reach(weight, scale, shared);
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();  // everybody's pixels are there
    convert(0);
    // After the last item its values are still to be written.
#pragma unroll 1
    for (int item = team; item < items + d.teams; item += d.teams) {
        const bool exists = item < items, made = item != team;  // made: the last one's values are there
        if (exists) {
            const int half = half_of(item);
            if (!made || half != shared.last_plane % OUT / HALF) {
                w.load<false>(weight, conv_bias, bias, scale, half * HALF, shared.line - half * HALF,
                              threadIdx.x < WARP);
                if (threadIdx.x == 0) shared.fit = w.fit;
            }
            if (threadIdx.x == 0) {
                shared.from = pixels_of(item);
                shared.next = pixels_of(item + d.teams);
                shared.plane = image_of(item) * OUT + half * HALF;
            }
        }
        float shift[2] = {0.0f, 0.0f}, deviations[2] = {0.0f, 0.0f}, squares[2] = {0.0f, 0.0f};
        int pixels = 0;
#pragma unroll 1
        for (int piece = 0; piece < d.pieces; ++piece, buffer ^= 1) {
            const bool ends = piece + 1 == d.pieces;
            __syncthreads();  // halves and shared.line are complete, everybody is done with the last piece
            start_copy(!exists ? nullptr : ends ? shared.next : shared.from, ends ? 0 : piece + 1, buffer ^ 1);
            if (made && piece == 0) {
                await_moments();
                __syncthreads();  // shared.norm is complete
            }
            float sum[TALL][WIDE][4];  // of channels g (and + 8, last two) at pixels 8 n + 2 t (and + 1)
            if (const Place at(d, s, shared.rows, piece); exists && at.count > 0) {
                const int one = shared.one;
                const bool halves = one != NEVER && shared.fit;
                if (halves) {
                    const int low = d.pixels * 16, pixel = at.lane % 8 + at.matrix() / 2 * 8;
                    const int end = 2 * x_row + 2 + at.lane % 8 + (SPLIT == 3 ? at.matrix() / 2 : at.matrix() % 2) * 8;
                    const unsigned tile =
                        (unsigned)__cvta_generic_to_shared(pieces + buffer * 2 * d.pixels + at.row * x_row + at.step);
                    const unsigned tiles[3] = {tile + (pixel + at.matrix() % 2 * x_row) * 16,
                                               tile + (2 * x_row + pixel + at.matrix() % 2) * 16,
                                               tile + end * 16 + (SPLIT == 3 ? at.matrix() % 2 * low : 0)};
                    convolve(w, tiles, 0, low, sum);
                } else {
                    float sums[TALL * WIDE * 4];
                    const int first = shared.plane % OUT;
                    convolve_slowly(shared.from, weight + first * IN * TAPS, s.H, s.W, shared.y0 + at.row, at.column,
                                    sums);
#pragma unroll
                    for (int i = 0; i < TALL * WIDE * 4; ++i) {
                        sum[0][i / 4][i % 4] = sums[i] * (-1.4426950408889634f * scale[first + at.g() + i % 4 / 2 * 8]);
                    }
                }
                float2 line[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    line[i] = shared.line[at.g() + 8 * i];
                    line[i].x = halves ? line[i].x * power_of_two(one) : 1.0f;
                }
#pragma unroll
                for (int i = 0; i < WIDE * 4; ++i) {
                    float& v = sum[0][i / 4][i % 4];
                    v = sigmoid_of_exponent(v * line[i % 4 / 2].x + line[i % 4 / 2].y);
                }
            }
            if (const Place at(d, s, shared.rows, piece); made && at.count > 0) {
                const int c0 = at.lane / (STEP / 2), p = at.lane % (STEP / 2) * 2;
                const float* from = sigmoids + c0 * d.channel + at.row * s.OW + at.column + p;
                float* to = y + (shared.last_plane + c0) * plane + (shared.y0 + at.row) * s.OW + at.column + p;
                if (p < at.count) {
#pragma unroll
                    for (int c = 0; c < HALF; c += WARP / (STEP / 2)) {
                        float2 v = *reinterpret_cast<const float2*>(from + c * d.channel);
                        const float2 norm = shared.norm[c0 + c];
                        v.x = v.x * norm.x + norm.y;
                        v.y = v.y * norm.x + norm.y;
                        __stcs(reinterpret_cast<float2*>(to + c * plane), v);
                    }
                }
                __syncwarp();  // all have read before any writes
            }
            if (const Place at(d, s, shared.rows, piece); exists && at.count > 0) {
                if (pixels == 0) {  // about the first pixel
#pragma unroll
                    for (int i = 0; i < 2; ++i) shift[i] = __shfl_sync(ALL_LANES, sum[0][0][i * 2], at.lane & ~3);
                }
                float* const to = sigmoids + at.g() * d.channel + at.row * s.OW + at.column + 2 * at.t();
                const auto keep = [&](auto whole) {
#pragma unroll
                    for (int i = 0; i < WIDE * 2; ++i) {
                        const int h = i / WIDE, p = i % WIDE;
                        const bool inside = whole.value || 8 * p + 2 * at.t() < at.count;  // which is even
                        const float a = sum[0][p][2 * h], b = sum[0][p][2 * h + 1];
                        const float e = inside ? a - shift[h] : 0.0f, f = inside ? b - shift[h] : 0.0f;
                        if (inside) *reinterpret_cast<float2*>(to + h * 8 * d.channel + 8 * p) = make_float2(a, b);
                        deviations[h] += e + f;
                        squares[h] += e * e;
                        squares[h] += f * f;
                    }
                };
                if (at.count >= STEP)
                    keep(std::true_type());
                else
                    keep(std::false_type());
                pixels += min(at.count, STEP);
            }
            if (exists && ends) {
                const int thread = anew(threadIdx.x), lane = thread % WARP, warp = thread / WARP;
                const int g = lane / 4, t = lane % 4;
                const float part = 1.0f / max(pixels, 1);
#pragma unroll
                for (int i = 0; i < 2; ++i) {
#pragma unroll
                    for (int offset = 1; offset < 4; offset *= 2) {
                        deviations[i] += __shfl_xor_sync(ALL_LANES, deviations[i], offset);
                        squares[i] += __shfl_xor_sync(ALL_LANES, squares[i], offset);
                    }
                    const float off = deviations[i] * part;
                    const float2 moments = make_float2(shift[i] + off, squares[i] - deviations[i] * off);
                    if (t == 0) shared.moments[g + 8 * i][warp] = moments;
                }
                if (lane == 0) shared.made[warp] = pixels;
            }
            asm volatile("cp.async.wait_group 0;" ::: "memory");
            __syncthreads();  // everybody's pixels are there; at the end moments are complete
            if (ends && threadIdx.x == 0) shared.last_plane = shared.plane;
            // A warp for four channels; a lane has what one warp made of one.
            if (const int warp = anew(threadIdx.x) / WARP; exists && ends && warp < HALF / QUAD) {
                const int lane = anew(threadIdx.x) % WARP;
                const float elements = QUAD * shared.rows * s.OW, a_part = 1.0f / elements;
                const int size = shared.made[lane % WARPS];
                const float2 m = shared.moments[warp * QUAD + lane / WARPS][lane % WARPS];
                float mean = warp_sum(m.x * size) * a_part;
                const float e = m.x - mean;
                const float off = warp_sum(e * size) * a_part;  // the mean's own rounding error
                float squares = warp_sum(m.y + e * e * size) - off * off * elements;
                mean += off;
                if (mean != mean || squares != squares) mean = squares = __uint_as_float(0x7fc00000);  // not NOT_YET
                const unsigned long long part =
                    (unsigned long long)__float_as_uint(squares) << 32 | __float_as_uint(mean);
                const size_t at = (size_t)(shared.plane / QUAD + warp) * d.strips + shared.strip;
                if (lane == 0) {
                    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(parts + at), "l"(part) : "memory");
                }
            }
            if (exists && (!ends || item + d.teams < items)) convert(buffer ^ 1);  // meanwhile the other parts arrive
        }
    }
#endif
}
