// ---- the convolution on tensor cores: up to 8 channels, a 3x3 kernel ----

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define TENSOR_CORES
#endif

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffff;
constexpr int IN = 8, CHUNK = 64;      // channels of x; channels of the result that a block makes
constexpr int WIDE = 128;              // pixels of a tile's row
constexpr int COLUMNS = WIDE + 2;      // ... of x that they need
constexpr int RAW = WIDE + 4;          // ... and of x as it comes from memory

// What is known of some numbers: how many, their mean, and the sum of their squared deviations from it.
struct Moments {
    float count, mean, squares;
};

// x (N, C, H, W) -> (N, OC, OH, OW), in `tiles` tiles, of which an image has tiles_x next to each other and tiles_y
// below each other. Each of `blocks` blocks makes some that follow each other, image after image.
struct Shape {
    int C, H, W, OC, OH, OW, tiles_x, tiles_y, tiles, blocks;
};

__host__ __device__ inline int first_tile(const Shape& s, int block) { return (int64_t)block * s.tiles / s.blocks; }
__host__ __device__ inline int block_of(const Shape& s, int tile) {
    const int64_t last = ((int64_t)tile + 1) * s.blocks - 1;
    return last <= UINT32_MAX ? (uint32_t)last / (uint32_t)s.tiles : last / s.tiles;
}

// Shared memory for a tile of so many rows.
__host__ __device__ constexpr int tile_bytes(int split, int rows) {
    return (rows + 2) * ((split == 3 ? 2 : 1) * COLUMNS * IN * 2 + IN * RAW * 4);
}
