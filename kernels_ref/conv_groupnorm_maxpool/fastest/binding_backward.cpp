// The gradients of x and conv_weight (if they are needed), conv_bias, gn_weight, gn_bias and scale. kept: what forward
// has made for this.
std::vector<at::Tensor> backward(at::Tensor gy, at::Tensor x, at::Tensor conv_weight, at::Tensor conv_bias,
                                 at::Tensor gn_weight, at::Tensor gn_bias, at::Tensor scale,
                                 std::vector<at::Tensor> kept, int64_t groups, int64_t pool, double clamp_min,
                                 double clamp_max, bool need_x, bool need_weight) {
    const Sizes s = sizes_of(x, conv_weight, groups);
    gy = checked(gy, "gy", 4, x);
    const int64_t PH = (s.H - s.KH + 1) / pool, PW = (s.W - s.KW + 1) / pool;
    TORCH_CHECK(gy.sizes() == at::IntArrayRef({s.N, s.OC, PH, PW}), "gy is ", gy.sizes());
    for (at::Tensor* t : {&x, &conv_weight, &conv_bias, &gn_weight, &gn_bias, &scale}) *t = t->contiguous();

    const c10::cuda::CUDAGuard guard(x.device());
    const auto empty = [&](at::IntArrayRef sizes) { return at::empty(sizes, x.options()); };
    at::Tensor gx = empty(need_x ? x.sizes() : at::IntArrayRef({0}));
    at::Tensor gconv_weight = empty(need_weight ? conv_weight.sizes() : at::IntArrayRef({0}));
    at::Tensor gconv_bias = empty({s.OC}), gscale = empty({s.OC, 1, 1});
    at::Tensor ggn_weight = empty({s.OC}), ggn_bias = empty({s.OC});
    std::vector<at::Tensor> made = {gx, gconv_weight, gconv_bias, ggn_weight, ggn_bias, gscale};
    if (gy.numel() == 0) {
        for (at::Tensor& t : made) t.zero_();
        return made;
    }
    Tensors t = {data(x), data(conv_weight), data(conv_bias), data(gn_weight), data(gn_bias), data(scale)};
    t.gy = data(gy), t.gx = data(gx), t.gconv_weight = data(gconv_weight), t.gconv_bias = data(gconv_bias);
    t.ggn_weight = data(ggn_weight), t.ggn_bias = data(ggn_bias), t.gscale = data(gscale);
    int64_t floats[3];
    const bool fast = conv_groupnorm_maxpool_fast(s, pool, floats);
    at::Tensor workspace = empty({fast ? floats[2] : conv_groupnorm_maxpool_general_workspace(s)});
    t.workspace = data(workspace);
    if (fast) {
        t.kept = data(kept[0]);
    } else {
        t.at = kept[0].data_ptr<int>(), t.v = data(kept[1]), t.mean = data(kept[2]), t.rstd = data(kept[3]);
    }
    const auto launch = fast ? conv_groupnorm_maxpool_fast_backward : conv_groupnorm_maxpool_general_backward;
    const char* error = launch(t, s, {pool, clamp_min, clamp_max}, stream());
    TORCH_CHECK(error == nullptr, "conv_groupnorm_maxpool, backward: ", error);
    return made;
}
