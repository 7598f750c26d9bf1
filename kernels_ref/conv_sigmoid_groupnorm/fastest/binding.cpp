#include "../../shared/convolution_binding.cpp"
#include "arguments.h"

#if BACKWARD
// y, and (N, groups, 2): each group's mean and rstd.
std::vector<at::Tensor> conv_sigmoid_groupnorm_forward(at::Tensor x, at::Tensor conv_weight, at::Tensor conv_bias,
                                                       at::Tensor bias, at::Tensor scale, at::Tensor gn_weight,
                                                       at::Tensor gn_bias, int64_t groups, double eps) {
#else
at::Tensor conv_sigmoid_groupnorm_forward(at::Tensor x, at::Tensor conv_weight, at::Tensor conv_bias, at::Tensor bias,
                                          at::Tensor scale, at::Tensor gn_weight, at::Tensor gn_bias, int64_t groups,
                                          double eps) {
#endif
    const Sizes s = check_all(x, conv_weight, conv_bias, gn_weight, gn_bias, groups);
    bias = checked_channels(bias, "bias", s.OC, x);
    scale = checked_channels(scale, "scale", s.OC, x);
    TORCH_CHECK(s.N * s.OC <= INT_MAX, "the output has more than 2^31 - 1 planes (images times channels)");

    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor y = at::empty({s.N, s.OC, s.H - s.KH + 1, s.W - s.KW + 1}, x.options());
#if BACKWARD
    at::Tensor means = at::empty({s.N, groups, 2}, x.options());
    if (y.numel() == 0) return {y, means};  // a grid of no blocks is a launch error
#else
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error
#endif
    at::Tensor workspace = at::empty({conv_sigmoid_groupnorm_workspace(s)}, x.options());
    Tensors t = {data(x),         data(conv_weight), data(conv_bias), data(bias),     data(scale),
                 data(gn_weight), data(gn_bias),     data(y),         data(workspace)};
#if BACKWARD
    t.means = data(means);
#endif
    const char* error = conv_sigmoid_groupnorm_launch(t, s, eps, stream());
    TORCH_CHECK(error == nullptr, "conv_sigmoid_groupnorm: ", error);
#if BACKWARD
    return {y, means};
#else
    return y;
#endif
}
