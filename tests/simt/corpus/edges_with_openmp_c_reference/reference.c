#include "gradient.h"

#include <omp.h>
#include <stdlib.h>

#ifdef __cplusplus
#error "this file is C"
#endif

static inline int grey_at(const struct image *restrict in, int x, int y)
{
    if (x < 0) x = 0;
    if (y < 0) y = 0;
    if (x >= in->width) x = in->width - 1;
    if (y >= in->height) y = in->height - 1;
    const uint8_t *p = in->pixels + y * in->stride + 3 * x;
    return GREY(p[0], p[1], p[2]);
}

int gradient_reference(const struct image *in, uint8_t *out, uint64_t histogram[256])
{
    static const int weights[3] = {[0] = 1, [1] = 2, [2] = 1};
    int threads = 0;
    for (int i = 0; i < 256; i++) histogram[i] = 0;

#pragma omp parallel num_threads(3)
    {
        uint64_t *own = calloc(256, sizeof *own); /* no cast in C */
#pragma omp for schedule(static, 4)
        for (int y = 0; y < in->height; y++)
            for (int x = 0; x < in->width; x++) {
                int gx = 0, gy = 0;
                for (int k = -MASK_RADIUS; k <= MASK_RADIUS; k++) {
                    gx += weights[k + 1] * (grey_at(in, x + 1, y + k) - grey_at(in, x - 1, y + k));
                    gy += weights[k + 1] * (grey_at(in, x + k, y + 1) - grey_at(in, x + k, y - 1));
                }
                int sum = (abs(gx) + abs(gy)) / 2;
                uint8_t edge = sum > 255 ? 255 : sum;
                out[y * in->width + x] = edge;
                own[edge]++;
            }
#pragma omp critical
        {
            for (int i = 0; i < 256; i++) histogram[i] += own[i];
            threads = omp_get_num_threads();
        }
        free(own);
    }
    return threads;
}
