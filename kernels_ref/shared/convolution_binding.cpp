#include <climits>
#if BACKWARD
#include <vector>
#endif
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#if BACKWARD
// What is needed of torch/extension.h, in half its time; without Python.h no module is made, either.
#include <torch/types.h>
#if __has_include(<Python.h>)
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#endif
#endif

#include "convolution_arguments.h"

// Returns the tensor contiguous. The kernels read bare memory: refuses a tensor that is not what they take it for.
static at::Tensor checked(const at::Tensor& t, const char* name, int64_t dims, const at::Tensor& x) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == x.device(), name, " is on ", t.device(), ", x on ", x.device(), ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == at::kFloat, name, " is ", t.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(t.dim() == dims, name, " has ", t.dim(), " dimensions instead of ", dims);
    for (int64_t size : t.sizes()) TORCH_CHECK(size <= INT_MAX, name, " has a side longer than 2^31 - 1");
    return t.contiguous();
}
#if !CONV_GROUPNORM_LOGSUMEXP

// The same for one factor or summand of each channel.
static at::Tensor checked_channels(const at::Tensor& t, const char* name, int64_t channels, const at::Tensor& x) {
    const at::Tensor found = checked(t, name, 3, x);
    TORCH_CHECK(t.sizes() == at::IntArrayRef({channels, 1, 1}), name, " must be (", channels, ", 1, 1), not ",
                t.sizes());
    return found;
}
#endif

static Sizes sizes_of(const at::Tensor& x, const at::Tensor& conv_weight, int64_t groups) {
    return {x.size(0),           x.size(1),           x.size(2),           x.size(3),
            conv_weight.size(0), conv_weight.size(2), conv_weight.size(3), groups};
}

// Checks the tensors of a convolution and a GroupNorm, makes them contiguous and returns their sizes.
static Sizes check_all(at::Tensor& x, at::Tensor& conv_weight, at::Tensor& conv_bias, at::Tensor& gn_weight,
                       at::Tensor& gn_bias, int64_t groups) {
    x = checked(x, "x", 4, x);
    conv_weight = checked(conv_weight, "the convolution's weight", 4, x);
    conv_bias = checked(conv_bias, "the convolution's bias", 1, x);
    gn_weight = checked(gn_weight, "the normalisation's weight", 1, x);
    gn_bias = checked(gn_bias, "the normalisation's bias", 1, x);
    const Sizes s = sizes_of(x, conv_weight, groups);
    TORCH_CHECK(conv_weight.size(1) == s.C, "x has ", s.C, " channels, the weight is for ", conv_weight.size(1));
    TORCH_CHECK(s.H >= s.KH && s.W >= s.KW, "the image (", s.H, " x ", s.W, ") is smaller than the kernel (", s.KH,
                " x ", s.KW, ")");
    TORCH_CHECK(conv_bias.size(0) == s.OC && gn_weight.size(0) == s.OC && gn_bias.size(0) == s.OC,
                "every bias and weight needs one element for each of ", s.OC, " output channels");
    TORCH_CHECK(groups > 0 && s.OC % groups == 0, s.OC, " channels cannot be cut into ", groups, " equal groups");
    return s;
}

// Null for a gradient that is not needed.
static float* data(const at::Tensor& t) { return t.defined() && t.numel() > 0 ? t.data_ptr<float>() : nullptr; }

static void* stream() { return static_cast<void*>(c10::cuda::getCurrentCUDAStream().stream()); }
