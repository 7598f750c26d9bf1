#include <climits>
#if BACKWARD
#include <vector>
#endif
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "arguments.h"

// Returns the tensor contiguous. The kernels read bare memory: refuses a tensor that is not what they take it for.
static at::Tensor checked(const at::Tensor& t, const char* name, const at::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", x on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == at::kFloat, name, " is ", t.scalar_type(), ", not float32: use .float()");
    return t.contiguous();
}

static at::Tensor scratch_of(int64_t bytes, const at::Tensor& x) {
    TORCH_CHECK(bytes >= 0, "x has more than 2^31 - 1 parts");
    return at::empty({bytes / 8}, x.options().dtype(at::kLong));
}

#if BACKWARD
// y, and each group's mean and rstd (N, groups, 2).
std::vector<at::Tensor> groupnorm_forward(at::Tensor x, at::Tensor weight, at::Tensor bias, int64_t groups,
                                          double eps) {
#else
at::Tensor groupnorm_forward(at::Tensor x, at::Tensor weight, at::Tensor bias, int64_t groups, double eps) {
#endif
    x = checked(x, "x", x.device());
    weight = checked(weight, "weight", x.device());
    bias = checked(bias, "bias", x.device());
    TORCH_CHECK(x.dim() >= 2, "x has ", x.dim(), " dimensions: it needs a batch and channels");
    const int64_t N = x.size(0), C = x.size(1);
    TORCH_CHECK(groups > 0 && C % groups == 0, C, " channels cannot be cut into ", groups, " equal groups");
    TORCH_CHECK(weight.numel() == C && bias.numel() == C, "weight and bias need one element for each of ", C,
                " channels");
    TORCH_CHECK(N * C <= INT_MAX, "x has more than 2^31 - 1 planes (images times channels)");

    at::Tensor y = at::empty_like(x);
#if BACKWARD
    at::Tensor means = at::empty({N, groups, 2}, x.options());
    if (y.numel() == 0) return {y, means};  // a grid of no blocks is a launch error
#else
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error
#endif
    const c10::cuda::CUDAGuard guard(x.device());
    const Sizes s = {N, C, groups, x.numel() / (N * C)};
    at::Tensor scratch = scratch_of(scratch_bytes(s), x);
    Tensors t = {x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
                 scratch.data_ptr<int64_t>()};
#if BACKWARD
    t.means = means.data_ptr<float>();
#endif
    const char* error = launch(t, s, eps, c10::cuda::getCurrentCUDAStream().stream());
    TORCH_CHECK(error == nullptr, "groupnorm: ", error);
#if BACKWARD
    return {y, means};
#else
    return y;
#endif
}

#if BACKWARD
// gx, gweight and gbias; of what is not needed, a tensor of no elements.
std::vector<at::Tensor> groupnorm_backward(at::Tensor gy, at::Tensor x, at::Tensor means, at::Tensor weight,
                                           bool need_x, bool need_weights) {
    gy = checked(gy, "gy", x.device());
    TORCH_CHECK(gy.sizes() == x.sizes(), "gy is ", gy.sizes(), ", not ", x.sizes());
    x = x.contiguous();
    weight = weight.contiguous();

    at::Tensor gx = need_x ? at::empty_like(x) : at::empty({0}, x.options());
    at::Tensor gweight = at::empty({need_weights ? x.size(1) : 0}, x.options()), gbias = at::empty_like(gweight);
    if (x.numel() == 0) return {gx, gweight.zero_(), gbias.zero_()};

    const c10::cuda::CUDAGuard guard(x.device());
    const Sizes s = {x.size(0), x.size(1), means.size(1), x.numel() / (x.size(0) * x.size(1))};
    at::Tensor scratch = scratch_of(backward_scratch_bytes(s), x);
    Tensors t = {x.data_ptr<float>(), weight.data_ptr<float>()};
    t.scratch = scratch.data_ptr<int64_t>(), t.means = means.data_ptr<float>(), t.gy = gy.data_ptr<float>();
    if (need_x) t.gx = gx.data_ptr<float>();
    if (need_weights) t.gweight = gweight.data_ptr<float>(), t.gbias = gbias.data_ptr<float>();
    const char* error = launch_backward(t, s, c10::cuda::getCurrentCUDAStream().stream());
    TORCH_CHECK(error == nullptr, "groupnorm, backward: ", error);
    return {gx, gweight, gbias};
}
#endif
