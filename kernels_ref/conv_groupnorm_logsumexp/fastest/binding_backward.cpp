#include "../../shared/convolution_binding.cpp"
#include "arguments.h"

// Returns y, and what backward needs besides: x, contiguous, and by the fast kernels each group's mean and rstd
// (N, groups, 2), the largest magnitudes of parts of each image of x, and an empty tensor; by the general ones mean and
// rstd (2, N, groups), an empty tensor, and the convolution's result.
std::vector<at::Tensor> forward(at::Tensor x, at::Tensor conv_weight, at::Tensor conv_bias, at::Tensor gn_weight,
                                at::Tensor gn_bias, int64_t groups, double eps) {
    const Sizes s = check_all(x, conv_weight, conv_bias, gn_weight, gn_bias, groups);
    TORCH_CHECK(s.H * s.W <= INT_MAX, "a channel of x has more than 2^31 - 1 pixels");
    const int64_t OH = s.H - s.KH + 1, OW = s.W - s.KW + 1;

    const c10::cuda::CUDAGuard guard(x.device());
    const auto empty = [&](at::IntArrayRef sizes) { return at::empty(sizes, x.options()); };
    const bool fast = conv_groupnorm_logsumexp_fits(s);
    at::Tensor y = empty({s.N, 1, OH, OW}), means = fast ? empty({s.N, groups, 2}) : empty({2, s.N, groups});
    at::Tensor largest = fast ? empty({s.N, conv_groupnorm_logsumexp_tiles(s)}) : empty({0});
    at::Tensor v = fast ? empty({0}) : empty({s.N, s.OC, OH, OW});
    if (s.N > 0) {  // a grid of no blocks is a launch error
        at::Tensor workspace = empty({fast ? conv_groupnorm_logsumexp_workspace(s) : 0});
        const Tensors t = {data(x), data(conv_weight), data(conv_bias), data(gn_weight), data(gn_bias),
                           data(y), data(workspace),   data(means),     data(largest),   data(v)};
        const char* error =
            fast ? conv_groupnorm_logsumexp_launch(t, s, eps, stream()) : general_launch(t, s, eps, stream());
        TORCH_CHECK(error == nullptr, "conv_groupnorm_logsumexp: ", error);
    }
    return {y, x, means, largest, v};
}

// The gradients of x, conv_weight, conv_bias (empty where they are not needed), gn_weight and gn_bias.
std::vector<at::Tensor> backward(at::Tensor gy, at::Tensor y, at::Tensor x, at::Tensor means, at::Tensor largest,
                                 at::Tensor v, at::Tensor conv_weight, at::Tensor conv_bias, at::Tensor gn_weight,
                                 at::Tensor gn_bias, int64_t groups, bool need_x, bool need_weight, bool need_bias) {
    const Sizes s = sizes_of(x, conv_weight, groups);
    gy = checked(gy, "gy", 4, x);
    for (at::Tensor* t : {&conv_weight, &conv_bias, &gn_weight, &gn_bias}) *t = t->contiguous();

    const c10::cuda::CUDAGuard guard(x.device());
    const auto like = [&](const at::Tensor& t, bool needed) {  // without images every sum is 0
        return !needed ? at::empty({0}, t.options()) : s.N > 0 ? at::empty_like(t) : at::zeros_like(t);
    };
    at::Tensor gx = like(x, need_x), gweight = like(conv_weight, need_weight), gbias = like(conv_bias, need_bias);
    at::Tensor ggn_weight = like(gn_weight, true), ggn_bias = like(gn_bias, true);
    if (s.N > 0) {
        const bool fast = v.numel() == 0;
        const int64_t floats = fast ? conv_groupnorm_logsumexp_backward_workspace(s) : general_backward_workspace(s);
        at::Tensor workspace = at::empty({floats}, x.options());
        Tensors t = {data(x), data(conv_weight), data(conv_bias), data(gn_weight), data(gn_bias),
                     data(y), data(workspace),   data(means),     data(largest),   data(v)};
        t.gy = data(gy), t.gx = data(gx), t.gweight = data(gweight), t.gconv_bias = data(gbias);
        t.ggn_weight = data(ggn_weight), t.ggn_bias = data(ggn_bias);
        const char* error =
            fast ? conv_groupnorm_logsumexp_backward_launch(t, s, stream()) : general_backward_launch(t, s, stream());
        TORCH_CHECK(error == nullptr, "conv_groupnorm_logsumexp, backward: ", error);
    }
    return {gx, gweight, gbias, ggn_weight, ggn_bias};
}
