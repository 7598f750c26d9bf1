// rows (count, pitch) -> sums: of each of the first `columns` columns.
struct Columns {
    const float* rows;
    float* sums;
    int64_t count;
    int columns, pitch;
};
struct AllColumns {
    Columns of[4];
};

// A block takes 32 columns of one of them, each warp some of their rows; always in the same order.
__global__ void __launch_bounds__(THREADS) columns_kernel(const AllColumns all) {
    __shared__ double of_warp[THREADS / WARP][WARP];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const Columns& c = all.of[blockIdx.y];
    const int column = blockIdx.x * WARP + lane;
    double sum = 0.0;
    if (column < c.columns) {
#pragma unroll 8
        for (int64_t i = warp; i < c.count; i += THREADS / WARP) sum += c.rows[i * c.pitch + column];
    }
    of_warp[warp][lane] = sum;
    __syncthreads();  // all warps have written
    if (warp > 0 || column >= c.columns) return;
    for (int w = 1; w < THREADS / WARP; ++w) sum += of_warp[w][lane];
    c.sums[column] = sum;
}
