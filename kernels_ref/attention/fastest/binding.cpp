#include <climits>
#if BACKWARD
#include <vector>
#endif
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "arguments.h"

// Returns the tensor contiguous, from a multiple of 16 bytes on. The kernels read bare memory: refuses a tensor that is
// not what they take it for.
static at::Tensor checked(const at::Tensor& t, const char* name, const at::Tensor& q) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == q.device(), name, " is on ", t.device(), ", q on ", q.device(), ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == at::kHalf, name, " is ", t.scalar_type(), ", not float16: use .half()");
    TORCH_CHECK(t.dim() == 4, name, " has ", t.dim(), " dimensions instead of 4");
    TORCH_CHECK(t.sizes() == q.sizes(), name, " is ", t.sizes(), " and q is ", q.sizes(), ": they must be equal");
    const at::Tensor whole = t.contiguous();
    return reinterpret_cast<uintptr_t>(whole.data_ptr()) % 16 == 0 ? whole : whole.clone();
}

// Refuses sizes that the kernels do not take.
static Sizes sizes_of(const at::Tensor& q) {
    TORCH_CHECK(q.size(3) <= MOST_DEPTH, "a head of ", q.size(3), ": this kernel has room for ", MOST_DEPTH);
    TORCH_CHECK(q.size(2) <= INT_MAX / 2, "too long for this kernel's indices");
    return {q.size(0) * q.size(1), (int)q.size(2), (int)q.size(3)};
}

#if BACKWARD
// Returns out and lse (N, heads, length), the logarithm of the sum of each query's exponentials.
std::vector<at::Tensor> attention_forward(at::Tensor q, at::Tensor k, at::Tensor v, bool causal) {
#else
at::Tensor attention_forward(at::Tensor q, at::Tensor k, at::Tensor v, bool causal) {
#endif
    const c10::cuda::CUDAGuard guard(q.device());
    k = checked(k, "k", q);
    v = checked(v, "v", q);
    q = checked(q, "q", q);
    at::Tensor out = at::empty(q.sizes(), q.options());
#if BACKWARD
    at::Tensor lse = at::empty({q.size(0), q.size(1), q.size(2)}, q.options().dtype(at::kFloat));
    if (out.numel() == 0) return {out, lse};  // a grid of no blocks is a launch error
    Tensors t = {q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr()};
    t.lse = lse.data_ptr<float>();
#else
    if (out.numel() == 0) return out;  // a grid of no blocks is a launch error
    const Tensors t = {q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr()};
#endif
    const char* error = launch(t, sizes_of(q), causal, c10::cuda::getCurrentCUDAStream().stream());
    TORCH_CHECK(error == nullptr, "attention: ", error);
#if BACKWARD
    return {out, lse};
#else
    return out;
#endif
}

#if BACKWARD
// Returns the gradients of q, k and v. out, lse: what forward returned.
std::vector<at::Tensor> attention_backward(at::Tensor go, at::Tensor q, at::Tensor k, at::Tensor v, at::Tensor out,
                                           at::Tensor lse, bool causal) {
    const c10::cuda::CUDAGuard guard(q.device());
    go = checked(go, "go", q);
    k = checked(k, "k", q);
    v = checked(v, "v", q);
    q = checked(q, "q", q);
    at::Tensor gq = at::empty(q.sizes(), q.options()), gk = at::empty(q.sizes(), q.options()),
               gv = at::empty(q.sizes(), q.options());
    if (q.numel() == 0) return {gq, gk, gv};
    const Sizes s = sizes_of(q);
    at::Tensor scratch = at::empty({scratch_floats(s)}, lse.options());
    const Tensors t = {q.data_ptr(),  k.data_ptr(),  v.data_ptr(),  out.data_ptr(), lse.data_ptr<float>(),
                       go.data_ptr(), gq.data_ptr(), gk.data_ptr(), gv.data_ptr(),  scratch.data_ptr<float>()};
    const char* error = launch_backward(t, s, causal, c10::cuda::getCurrentCUDAStream().stream());
    TORCH_CHECK(error == nullptr, "attention, backward: ", error);
    return {gq, gk, gv};
}
#endif
