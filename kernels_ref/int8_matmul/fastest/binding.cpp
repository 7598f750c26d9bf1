#include <climits>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "arguments.h"

// Returns the tensor contiguous. The kernels read bare memory: refuses a tensor that is not what they take it for.
static at::Tensor checked(const at::Tensor& t, const char* name, at::ScalarType type, int64_t dims,
                          const at::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", x on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == type, name, " is ", t.scalar_type(), ", not ", type);
    TORCH_CHECK(t.dim() == dims, name, " has ", t.dim(), " dimensions instead of ", dims);
    return t.contiguous();
}

// Returns the tensor, or a copy that begins at a multiple of 16 bytes.
static at::Tensor aligned(const at::Tensor& t) {
    return reinterpret_cast<uintptr_t>(t.data_ptr()) % 16 == 0 ? t : t.clone();
}

at::Tensor int8_matmul_forward(at::Tensor x, at::Tensor x_scale, at::Tensor weight, at::Tensor weight_scale) {
    const c10::cuda::CUDAGuard guard(x.device());
    x = aligned(checked(x, "x", at::kChar, 2, x.device()));
    weight = aligned(checked(weight, "weight", at::kChar, 2, x.device()));
    x_scale = checked(x_scale, "x_scale", at::kFloat, 1, x.device());
    weight_scale = checked(weight_scale, "weight_scale", at::kFloat, 1, x.device());
    const int64_t batch = x.size(0), rows = weight.size(0), columns = weight.size(1);
    TORCH_CHECK(x.size(1) == columns, "x has ", x.size(1), " columns and weight ", columns, ": both must be the same");
    TORCH_CHECK(columns % 16 == 0, columns, " columns are no multiple of 16: fill the rows up with zeros");
    TORCH_CHECK(x_scale.size(0) == batch && weight_scale.size(0) == rows, "each row of x and of weight has one scale");
    TORCH_CHECK(batch <= 65535 && rows <= INT_MAX / 2 && columns < 1 << 17, "too large for this kernel's integers");

    at::Tensor y = at::empty({batch, rows}, x_scale.options());
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error
    if (columns == 0) return y.zero_();
    const Tensors t = {x.data_ptr(), x_scale.data_ptr<float>(), weight.data_ptr(), weight_scale.data_ptr<float>(),
                       y.data_ptr<float>()};
    const Sizes s = {(int)batch, (int)rows, (int)columns};
    const char* error = launch(t, s, c10::cuda::getCurrentCUDAStream().stream());
    TORCH_CHECK(error == nullptr, "int8_matmul: ", error);
    return y;
}
