#include "../../shared/convolution_arguments.h"

struct Tensors {
    const float *x, *conv_weight, *conv_bias, *bias, *scale, *gn_weight, *gn_bias;
    float *y, *workspace;  // the workspace is aligned to 16 bytes
#if BACKWARD
    float* means;  // (N, groups, 2): each group's mean and rstd
    const float* gy;
    float *gx, *gconv_weight, *gconv_bias, *gscale, *ggn_weight, *ggn_bias;  // gconv_bias is that of bias as well
#endif
};

// Floats of workspace that a launch needs, and the launch, for a y that is not empty.
int64_t conv_sigmoid_groupnorm_workspace(const Sizes& of);
const char* conv_sigmoid_groupnorm_launch(const Tensors& t, const Sizes& of, double epsilon, void* stream_of_torch);
#if BACKWARD
// sixteens: x and gy begin at multiples of 16 bytes. gx and gconv_weight may be null.
int64_t conv_sigmoid_groupnorm_backward_workspace(const Sizes& of, bool sixteens);
const char* conv_sigmoid_groupnorm_backward_launch(const Tensors& t, const Sizes& of, bool sixteens,
                                                   void* stream_of_torch);
#endif
