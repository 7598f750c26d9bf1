#ifdef TENSOR_CORES

// Pixels below each other in x, of all channels.
struct Column {
    float value[HEIGHT][IN];

    __device__ __forceinline__ static int row() { return threadIdx.x / X_ROW * HEIGHT; }
    __device__ __forceinline__ static int column() { return threadIdx.x % X_ROW; }

    // From the image at x, whose pixel at (y0, x0) is the tile's first; 0 where it ends.
    __device__ __forceinline__ void load(const float* x, const Shape& s, int y0, int x0) {
        const int y = y0 + row(), first = x0 + column();
        const float* at = x + (size_t)y * s.W + first;
#pragma unroll
        for (int r = 0; r < HEIGHT; ++r) {
            const bool inside = y + r < s.H && first < s.W;
#pragma unroll
            for (int c = 0; c < IN; ++c) value[r][c] = inside ? __ldg(at + ((size_t)c * s.H + r) * s.W) : 0.0f;
        }
    }

    // From what start_copy brought: X_ROWS whole rows of each channel, one after another. Anything where they end.
    __device__ __forceinline__ void load(const float* copied, const Shape& s) {
        const float* at = copied + row() * s.W + column();
#pragma unroll
        for (int r = 0; r < HEIGHT; ++r)
#pragma unroll
            for (int c = 0; c < IN; ++c) value[r][c] = at[c * X_ROWS * X_ROW + r * s.W];
    }

#if BACKWARD
    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < HEIGHT * IN; ++i) value[i / IN][i % IN] = 0.0f;
    }

#endif
    // Leaves the warp's largest magnitude in shared.warp_max. exists: false for pixels that nobody needs.
    template <typename Memory>
    __device__ __forceinline__ void measure(Memory& shared, bool exists = true) const {
        float largest = 0.0f;  // of all but NaN, which is NaN in halves as well
#pragma unroll
        for (int i = 0; i < HEIGHT * IN; ++i) largest = fmaxf(largest, fabsf(value[i / IN][i % IN]));
        largest = __uint_as_float(__reduce_max_sync(ALL_LANES, exists ? __float_as_uint(largest) : 0u));
        if (threadIdx.x % WARP == 0) shared.warp_max[threadIdx.x / WARP] = largest;
    }

    // Whether a result may see nothing in this column but what halves of such a tile cut off.
    __device__ __forceinline__ bool cut(float largest) const {
        static_assert(HEIGHT == 4 && ROWS == 2, "a thread has what two results see");
        float of_row[HEIGHT] = {};
#pragma unroll
        for (int i = 0; i < HEIGHT * IN; ++i) of_row[i / IN] = fmaxf(of_row[i / IN], fabsf(value[i / IN][i % IN]));
        const float both = fmaxf(of_row[1], of_row[2]);
        return may_cut(largest, fmaxf(of_row[0], both)) || may_cut(largest, fmaxf(both, of_row[3]));
    }

    // Every thread's pixels -> halves, when all have measured. BOTH: also the lower ones. Returns whether they have
    // room for the tile and keep its digits. 2^one: what they count in. reach: of the weights.
    template <bool BOTH, typename Memory>
    __device__ __forceinline__ bool store(Memory& shared, int& one, float reach, bool exists = true) const {
        float largest = 0.0f;
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp) largest = fmaxf(largest, shared.warp_max[warp]);
        if (!fits_halves(largest, one)) return false;
        if (!(largest * reach <= ENOUGH) && __syncthreads_or(exists && cut(largest))) return false;
        const float unit = power_of_two(-one);
        uint4* to = shared.x + row() * X_ROW + column();
#pragma unroll
        for (int r = 0; r < HEIGHT; ++r) {
            uint4 high, low;
            split(value[r][0] * unit, value[r][1] * unit, high.x, low.x);
            split(value[r][2] * unit, value[r][3] * unit, high.y, low.y);
            split(value[r][4] * unit, value[r][5] * unit, high.z, low.z);
            split(value[r][6] * unit, value[r][7] * unit, high.w, low.w);
            to[r * X_ROW] = high;
            if (BOTH) to[LOW / 16 + r * X_ROW] = low;
        }
        return true;
    }
};
#endif
