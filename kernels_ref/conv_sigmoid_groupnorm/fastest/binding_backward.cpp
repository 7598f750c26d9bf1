// x to gn_weight as forward took them, means from there -> the gradients of x and conv_weight (if they are needed), of
// conv_bias, which is that of bias, too, of scale, gn_weight and gn_bias.
std::vector<at::Tensor> conv_sigmoid_groupnorm_backward(at::Tensor gy, at::Tensor x, at::Tensor means,
                                                        at::Tensor conv_weight, at::Tensor conv_bias, at::Tensor bias,
                                                        at::Tensor scale, at::Tensor gn_weight, bool need_x,
                                                        bool need_weight) {
    const Sizes s = sizes_of(x, conv_weight, means.size(1));
    gy = checked(gy, "gy", 4, x);
    for (at::Tensor* t : {&x, &conv_weight, &conv_bias, &bias, &scale, &gn_weight}) *t = t->contiguous();

    const c10::cuda::CUDAGuard guard(x.device());
    const auto made = [&](at::IntArrayRef sizes) {
        return gy.numel() == 0 ? at::zeros(sizes, x.options()) : at::empty(sizes, x.options());
    };
    at::Tensor gx = need_x ? made(x.sizes()) : at::Tensor();
    at::Tensor gweight = need_weight ? made(conv_weight.sizes()) : at::Tensor();
    at::Tensor gconv_bias = made({s.OC}), gscale = made({s.OC, 1, 1}), ggn_weight = made({s.OC});
    at::Tensor ggn_bias = made({s.OC});
    if (gy.numel() > 0) {
        Tensors t = {data(x), data(conv_weight), data(conv_bias), data(bias), data(scale), data(gn_weight)};
        t.means = data(means), t.gy = data(gy), t.gx = data(gx), t.gconv_weight = data(gweight);
        t.gconv_bias = data(gconv_bias), t.gscale = data(gscale);
        t.ggn_weight = data(ggn_weight), t.ggn_bias = data(ggn_bias);
        const auto begins = [](const float* p) { return reinterpret_cast<uintptr_t>(p); };
        const bool sixteens = (begins(t.x) | begins(t.gy)) % 16 == 0;  // they may be views
        at::Tensor workspace = at::empty({conv_sigmoid_groupnorm_backward_workspace(s, sixteens)}, x.options());
        t.workspace = data(workspace);
        const char* error = conv_sigmoid_groupnorm_backward_launch(t, s, sixteens, stream());
        TORCH_CHECK(error == nullptr, "conv_sigmoid_groupnorm, backward: ", error);
    }
    return {gx, gweight, gconv_bias, gscale, ggn_weight, ggn_bias};
}
