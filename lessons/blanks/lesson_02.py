"""Lesson 2: two dimensions, a tile's element, the barrier after it, and its padding's shape."""

from __future__ import annotations

import torch

from grader.notebook.fill import Blank, Call

TWO_DIMENSIONS = Blank(
    text="""
__global__ void scale_columns(const float* x, const float* factor, float* y, int rows, int columns) {
    int row = ____;
    int column = ____;
    if (row >= rows || column >= columns) return;
    y[row * columns + column] = factor[column] * x[row * columns + column];
}
""",
    declaration="torch::Tensor run(torch::Tensor x, torch::Tensor factor, int64_t across, int64_t down);",
    host="""
torch::Tensor run(torch::Tensor x, torch::Tensor factor, int64_t across, int64_t down) {
    int rows = x.size(0), columns = x.size(1);
    auto y = torch::empty_like(x);
    dim3 block(across, down);
    dim3 grid((columns + across - 1) / across, (rows + down - 1) / down);
    scale_columns<<<grid, block>>>(x.data_ptr<float>(), factor.data_ptr<float>(), y.data_ptr<float>(), rows, columns);
    return y;
}
""",
    calls=lambda: [
        Call(
            f"with {rows} rows, {columns} columns and blocks of {across} × {down} threads",
            (
                torch.arange(1.0, rows * columns + 1).reshape(rows, columns) % 11,
                torch.arange(1.0, columns + 1),
                *(across, down),
            ),
        )
        for rows, columns, across, down in ((8, 32, 32, 8), (20, 40, 32, 8), (3, 70, 16, 2))
    ],
    expected=lambda x, factor, across, down: factor * x,
    slips=(
        (
            r"introw=[^;]*threadIdx\.x[^;]*;intcolumn=[^;]*threadIdx\.y",
            "x counts rows here. `threadIdx.x` belongs to the columns, which are neighbours in memory, and the launch "
            "has its blocks along x for them.",
        ),
        (r"introw=threadIdx|intcolumn=threadIdx\.x;", "Without `blockIdx`, all blocks work on the same tile."),
        (
            r"introw=blockIdx\.y\*blockDim\.x|intcolumn=blockIdx\.x\*blockDim\.y",
            "Each block size belongs to its own dimension.",
        ),
        (r"\*32|\*8|32\*|8\*", "The block size differs between the calls. It is in `blockDim.x` and `blockDim.y`."),
    ),
    right="Rows along y, columns along x: the threads of a warp touch neighbouring addresses.",
)

TILE_ELEMENT = Blank(
    text="""
constexpr int TILE = 16;

__global__ void transpose(const float* x, float* y, int rows, int columns) {
    __shared__ float tile[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    if (row < rows && column < columns) tile[threadIdx.y][threadIdx.x] = x[row * columns + column];
    __syncthreads();
    row = blockIdx.x * TILE + threadIdx.y, column = blockIdx.y * TILE + threadIdx.x;  // of the result
    if (row < columns && column < rows) y[row * rows + column] = tile[____][____];
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    int rows = x.size(0), columns = x.size(1);
    auto y = torch::empty({columns, rows}, x.options());
    dim3 grid((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    transpose<<<grid, dim3(TILE, TILE)>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, columns);
    return y;
}
""",
    calls=lambda: [
        Call(f"with {rows} rows and {columns} columns", (torch.arange(1.0, rows * columns + 1).reshape(rows, columns),))
        for rows, columns in ((16, 16), (20, 35))
    ],
    expected=lambda x: x.T.contiguous(),
    slips=(
        (
            r"tile\[threadIdx\.y\]\[threadIdx\.x\];\}?$|=tile\[threadIdx\.y\]\[threadIdx\.x\];",
            "This is the number that the thread stored itself: the tiles change places, and inside them nothing does.",
        ),
        (
            r"tile\[(row|column)",
            "`row` and `column` count in the whole matrix. Inside the tile, count with `threadIdx`.",
        ),
    ),
    right="Both the load and the store are coalesced; only the tile is read across.",
)

BARRIER = Blank(
    text="""
__global__ void reverse_blocks(const float* x, float* y) {
    __shared__ float part[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    part[threadIdx.x] = x[i];
    ____;
    y[i] = part[63 - threadIdx.x];
}
""",
    declaration="torch::Tensor run(torch::Tensor x);",
    host="""
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    reverse_blocks<<<x.numel() / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>());
    return y;
}
""",
    calls=lambda: [Call("with 3 blocks of 64 threads", (torch.arange(192.0),))],
    expected=lambda x: x.reshape(-1, 64).flip(1).flatten(),
    slips=(
        (r"__syncwarp", "Thread 0 reads what thread 63 wrote, and that one is in another warp."),
        (r"if\([^)]*\)__syncthreads", "Every thread of the block has to reach the barrier."),
        (r"__threadfence", "A fence orders one thread's accesses. It does not wait for other threads."),
    ),
    right="No thread reads before all have written.",
)

BLANKS = {"two_dimensions": TWO_DIMENSIONS, "barrier": BARRIER, "tile_element": TILE_ELEMENT}
