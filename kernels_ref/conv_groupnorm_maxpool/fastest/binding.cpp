#include "../../shared/convolution_binding.cpp"
#include "arguments.h"

#if BACKWARD
// y, and what backward needs: from the fast kernels one tensor, from the general ones at, v, mean and rstd.
std::vector<at::Tensor> forward(at::Tensor x, at::Tensor conv_weight, at::Tensor conv_bias, at::Tensor gn_weight,
                                at::Tensor gn_bias, at::Tensor scale, int64_t groups, double eps, int64_t pool,
                                double clamp_min, double clamp_max) {
#else
at::Tensor conv_groupnorm_maxpool_forward(at::Tensor x, at::Tensor conv_weight, at::Tensor conv_bias,
                                          at::Tensor gn_weight, at::Tensor gn_bias, at::Tensor scale, int64_t groups,
                                          double eps, int64_t pool, double clamp_min, double clamp_max) {
#endif
    const Sizes s = check_all(x, conv_weight, conv_bias, gn_weight, gn_bias, groups);
    scale = checked_channels(scale, "scale", s.OC, x);
    TORCH_CHECK(s.N * s.OC <= INT_MAX, "the output has more than 2^31 - 1 planes (images times channels)");
    const int64_t OH = s.H - s.KH + 1, OW = s.W - s.KW + 1;
#if BACKWARD
    TORCH_CHECK(s.H * s.W <= INT_MAX, "a channel of x has more than 2^31 - 1 pixels");
    constexpr int64_t WIDEST = 46340;  // a place in a window is an int
#else
    constexpr int64_t WIDEST = INT_MAX;
#endif
    TORCH_CHECK(pool > 0 && pool <= OH && pool <= OW && pool <= WIDEST, "a pooling window of ", pool,
                " does not fit into the convolution's output (", OH, " x ", OW, ")");

    const c10::cuda::CUDAGuard guard(x.device());
    const auto empty = [&](at::IntArrayRef sizes) { return at::empty(sizes, x.options()); };
    at::Tensor y = empty({s.N, s.OC, OH / pool, OW / pool});
    Tensors t = {data(x), data(conv_weight), data(conv_bias), data(gn_weight), data(gn_bias), data(scale), data(y)};
    const Pooling pooling = {pool, clamp_min, clamp_max};
    const char* error = nullptr;
#if BACKWARD
    int64_t floats[3];
    std::vector<at::Tensor> made;
    if (conv_groupnorm_maxpool_fast(s, pool, floats)) {
        at::Tensor kept = empty({floats[0]}), workspace = empty({floats[1]});
        made = {y, kept};
        t.kept = data(kept), t.workspace = data(workspace);
        error = conv_groupnorm_maxpool_fast_forward(t, s, pooling, eps, stream());
    } else {
        at::Tensor places = at::empty(y.sizes(), x.options().dtype(at::kInt)), v = empty({s.N, s.OC, OH, OW});
        at::Tensor mean = empty({s.N, groups}), rstd = empty({s.N, groups});
        made = {y, places, v, mean, rstd};
        if (y.numel() == 0) return made;  // a grid of no blocks is a launch error
        t.at = places.data_ptr<int>(), t.v = data(v), t.mean = data(mean), t.rstd = data(rstd);
        error = conv_groupnorm_maxpool_general_forward(t, s, pooling, eps, stream());
    }
#else
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error
    at::Tensor workspace = empty({conv_groupnorm_maxpool_workspace(s, pool)});
    t.workspace = data(workspace);
    error = conv_groupnorm_maxpool_launch(t, s, pooling, eps, stream());
#endif
    TORCH_CHECK(error == nullptr, "conv_groupnorm_maxpool: ", error);
#if BACKWARD
    return made;
#else
    return y;
#endif
}
