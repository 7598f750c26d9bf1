/* Shared by C, C++ and CUDA. */
#ifndef GRADIENT_H_INCLUDED
#define GRADIENT_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#define MASK_RADIUS 1
#define GREY(r, g, b) ((uint8_t)((77u * (r) + 151u * (g) + 28u * (b)) >> 8))

struct image {
    int width, height;
    size_t stride;      /* bytes from row to row */
    uint8_t *pixels;    /* three bytes a pixel */
};

#ifdef __cplusplus
extern "C" {
#endif

/* reference.c: returns the number of OpenMP threads that took part */
int gradient_reference(const struct image *in, uint8_t *out, uint64_t histogram[256]);
/* gradient kernels */
int gradient_cuda(const struct image *in, uint8_t *out, uint64_t histogram[256]);

#ifdef __cplusplus
}

// picture.cpp
class Picture : public image {
public:
    Picture(int w, int h);
    ~Picture();
    Picture(const Picture &) = delete;
    void paint(unsigned seed);
};
#endif

#endif
