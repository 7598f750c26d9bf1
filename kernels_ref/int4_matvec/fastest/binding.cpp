#include <climits>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "arguments.h"

// Returns the tensor contiguous. The kernels read bare memory: refuses a tensor that is not what they take it for.
static at::Tensor checked(const at::Tensor& t, const char* name, at::ScalarType type, const at::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", x on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == type, name, " is ", t.scalar_type(), ", not ", type);
    TORCH_CHECK(t.dim() == 2, name, " has ", t.dim(), " dimensions instead of 2");
    return t.contiguous();
}

at::Tensor int4_matvec_forward(at::Tensor x, at::Tensor packed, at::Tensor scales, int64_t group_size) {
    x = checked(x, "x", at::kHalf, x.device());
    packed = checked(packed, "packed", at::kInt, x.device());
    scales = checked(scales, "scales", at::kHalf, x.device());
    const int64_t batch = x.size(0), rows = packed.size(0), words = packed.size(1), groups = scales.size(1);
    TORCH_CHECK(x.size(1) == 8 * words, "x has ", x.size(1), " columns, packed has ", 8 * words);
    TORCH_CHECK(group_size > 0 && group_size % 8 == 0, "group_size is ", group_size, ", not a multiple of 8");
    TORCH_CHECK(scales.size(0) == rows && groups * group_size >= 8 * words, "scales is ", scales.sizes(),
                ": it needs a row for each row of packed, and a scale for each group");
    TORCH_CHECK(batch <= 65535 && rows <= INT_MAX / 2 && words <= INT_MAX / 64 && groups <= INT_MAX / 64 &&
                    group_size <= INT_MAX,
                "too large for this kernel's indices");

    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor y = at::empty({batch, rows}, x.options());
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error
    const Sizes s = {(int)batch, (int)rows, (int)words, (int)groups, (int)(group_size / 8)};
    const char* error = launch(x.data_ptr(), packed.data_ptr(), scales.data_ptr(), y.data_ptr(), s,
                               c10::cuda::getCurrentCUDAStream().stream());
    TORCH_CHECK(error == nullptr, "int4_matvec: ", error);
    return y;
}
