#include "../../shared/convolution_arguments.h"

struct Tensors {
    const float *x, *conv_weight, *conv_bias, *gn_weight, *gn_bias;
    float *y, *workspace;  // the workspace is aligned to 16 bytes
#if BACKWARD
    // What forward leaves for backward. means: each group's mean and rstd, (N, groups, 2) by the fast kernels, (2, N,
    // groups) by the general ones. largest: by the fast ones, the largest magnitude of x in each of an image's tiles,
    // negated where it is so large that halves may not be good enough for its neighbours. v: by the general ones, the
    // convolution's result.
    float *means, *largest, *v;
    const float* gy;
    float *gx, *gweight, *gconv_bias;  // null where they are not needed
    float *ggn_weight, *ggn_bias;
#endif
};

// Floats of workspace that a launch needs, and the launch, for a y that is not empty.
int64_t conv_groupnorm_logsumexp_workspace(const Sizes& of);
const char* conv_groupnorm_logsumexp_launch(const Tensors& t, const Sizes& of, double eps, void* stream_of_torch);
#if BACKWARD
int64_t conv_groupnorm_logsumexp_backward_workspace(const Sizes& of);
const char* conv_groupnorm_logsumexp_backward_launch(const Tensors& t, const Sizes& of, void* stream_of_torch);

// Whether the GPU in use can run these kernels, and they are made for the shape; tiles of an image.
bool conv_groupnorm_logsumexp_fits(const Sizes& of);
int64_t conv_groupnorm_logsumexp_tiles(const Sizes& of);

// The same for any shape.
const char* general_launch(const Tensors& t, const Sizes& of, double eps, void* stream_of_torch);
int64_t general_backward_workspace(const Sizes& of);
const char* general_backward_launch(const Tensors& t, const Sizes& of, void* stream_of_torch);
#endif
