#include "gradient.h"

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

#ifdef __CUDACC__
#error "a .cpp file is not compiled as CUDA"
#endif

Picture::Picture(int w, int h) {
    width = w;
    height = h;
    stride = (3u * w + 63) / 64 * 64;
    pixels = static_cast<std::uint8_t *>(std::malloc(stride * h));
    if (!pixels) throw std::bad_alloc();
}

Picture::~Picture() { std::free(pixels); }

void Picture::paint(unsigned seed) {
    std::fill(pixels, pixels + stride * height, std::uint8_t(0));
#pragma omp parallel for collapse(2)
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            std::uint8_t *p = pixels + y * stride + 3 * x;
            const bool inside = (x - width / 2) * (x - width / 2) + (y - height / 2) * (y - height / 2) < height * height / 9;
            p[0] = std::uint8_t(inside ? 200 : x + seed);
            p[1] = std::uint8_t(inside ? 90 + y : 3 * y);
            p[2] = std::uint8_t((x * 5 ^ y * 3) + seed);
        }
}
