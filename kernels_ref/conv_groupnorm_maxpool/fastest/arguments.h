#include "../../shared/convolution_arguments.h"

struct Tensors {
    const float *x, *conv_weight, *conv_bias, *gn_weight, *gn_bias, *scale;
    float *y, *workspace;  // the workspace is aligned to 16 bytes
#if BACKWARD
    float* kept;  // what forward's fast kernels leave for backward
    // What its general kernels leave: the windows' places (see norm_scale_maxpool_clamp_kernel), the convolution's
    // result, and each group's mean and rstd (N, groups).
    int* at;
    float *v, *mean, *rstd;
    const float* gy;
    float *gx, *gconv_weight;  // null where they are not needed
    float *gconv_bias, *ggn_weight, *ggn_bias, *gscale;
#endif
};

struct Pooling {
    int64_t size;
    double clamp_min, clamp_max;
};

#if !BACKWARD
// Floats of workspace that a launch needs, and the launch, for a y that is not empty.
int64_t conv_groupnorm_maxpool_workspace(const Sizes& of, int64_t pool);
const char* conv_groupnorm_maxpool_launch(const Tensors& t, const Sizes& of, const Pooling& pool, double eps,
                                          void* stream_of_torch);
#else
// floats: what the fast kernels keep from forward for backward, need for forward, and for backward. False where the
// general kernels have to do it.
bool conv_groupnorm_maxpool_fast(const Sizes& of, int64_t pool, int64_t* floats);
const char* conv_groupnorm_maxpool_fast_forward(const Tensors& t, const Sizes& of, const Pooling& pool, double eps,
                                                void* stream_of_torch);
const char* conv_groupnorm_maxpool_fast_backward(const Tensors& t, const Sizes& of, const Pooling& pool,
                                                 void* stream_of_torch);
const char* conv_groupnorm_maxpool_general_forward(const Tensors& t, const Sizes& of, const Pooling& pool, double eps,
                                                   void* stream_of_torch);
int64_t conv_groupnorm_maxpool_general_workspace(const Sizes& of);  // floats that the general backward needs
const char* conv_groupnorm_maxpool_general_backward(const Tensors& t, const Sizes& of, const Pooling& pool,
                                                    void* stream_of_torch);
#endif
