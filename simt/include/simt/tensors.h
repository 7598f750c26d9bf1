// Tensors and the common factories for a submission's units, precompiled with what surrounds them (simt/prelude.h). It
// omits torch's full list of operators: the templates of a precompiled header are instantiated again in every unit, and
// all of ATen takes 1.5 s there. A source that names other operators gets prelude_full.h instead.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like_ops.h>
#include <ATen/ops/empty_ops.h>
#include <ATen/ops/empty_strided_ops.h>
#include <ATen/ops/full_like_ops.h>
#include <ATen/ops/full_ops.h>
#include <ATen/ops/linear_ops.h>
#include <ATen/ops/ones_like_ops.h>
#include <ATen/ops/ones_ops.h>
#include <ATen/ops/zeros_like_ops.h>
#include <ATen/ops/zeros_ops.h>
#include <c10/util/Exception.h>

namespace at {

#define SIMT_OPTIONS c10::optTypeMetaToScalarType(o.dtype_opt()), o.layout_opt(), o.device_opt(), o.pinned_memory_opt()
inline Tensor simt_grad(Tensor t, const TensorOptions& o) { return o.requires_grad() ? t.set_requires_grad(true) : t; }
inline Tensor empty(IntArrayRef size, TensorOptions o = {}, std::optional<MemoryFormat> format = {}) {
  return simt_grad(_ops::empty_memory_format::call(c10::fromIntArrayRefSlow(size), SIMT_OPTIONS, format), o);
}
inline Tensor zeros(IntArrayRef size, TensorOptions o = {}) {
  return simt_grad(_ops::zeros::call(c10::fromIntArrayRefSlow(size), SIMT_OPTIONS), o);
}
inline Tensor ones(IntArrayRef size, TensorOptions o = {}) {
  return simt_grad(_ops::ones::call(c10::fromIntArrayRefSlow(size), SIMT_OPTIONS), o);
}
inline Tensor full(IntArrayRef size, const Scalar& value, TensorOptions o = {}) {
  return simt_grad(_ops::full::call(c10::fromIntArrayRefSlow(size), value, SIMT_OPTIONS), o);
}
inline Tensor empty_strided(IntArrayRef size, IntArrayRef stride, TensorOptions o = {}) {
  return simt_grad(
      _ops::empty_strided::call(c10::fromIntArrayRefSlow(size), c10::fromIntArrayRefSlow(stride), SIMT_OPTIONS), o);
}
#define SIMT_LIKE(name)                                                                                   \
  inline Tensor name(const Tensor& self, TensorOptions o = {}, std::optional<MemoryFormat> format = {}) { \
    return simt_grad(_ops::name::call(self, SIMT_OPTIONS, format ? format : o.memory_format_opt()), o);   \
  }
SIMT_LIKE(empty_like)
SIMT_LIKE(zeros_like)
SIMT_LIKE(ones_like)
#undef SIMT_LIKE
inline Tensor full_like(const Tensor& self, const Scalar& value, TensorOptions o = {},
                        std::optional<MemoryFormat> format = {}) {
  return simt_grad(_ops::full_like::call(self, value, SIMT_OPTIONS, format ? format : o.memory_format_opt()), o);
}
#undef SIMT_OPTIONS

// The operators that host code calls most as functions: methods of a tensor under another name. A call that fits none of
// these does not compile here, and is compiled again with all of torch's (simt/toolchain/build.py).
#define SIMT_OF_ONE(name) \
  inline Tensor name(const Tensor& self) { return self.name(); }
SIMT_OF_ONE(abs)
SIMT_OF_ONE(exp)
SIMT_OF_ONE(log)
SIMT_OF_ONE(mean)
SIMT_OF_ONE(neg)
SIMT_OF_ONE(relu)
SIMT_OF_ONE(rsqrt)
SIMT_OF_ONE(sigmoid)
SIMT_OF_ONE(sqrt)
SIMT_OF_ONE(square)
SIMT_OF_ONE(sum)
SIMT_OF_ONE(tanh)
#undef SIMT_OF_ONE
#define SIMT_OF_TWO(name) \
  inline Tensor name(const Tensor& self, const Tensor& other) { return self.name(other); }
SIMT_OF_TWO(bmm)
SIMT_OF_TWO(matmul)
SIMT_OF_TWO(maximum)
SIMT_OF_TWO(minimum)
SIMT_OF_TWO(mm)
#undef SIMT_OF_TWO
inline Tensor mean(const Tensor& self, at::OptionalIntArrayRef dim, bool keepdim = false,
                   std::optional<ScalarType> dtype = {}) {
  return self.mean(dim, keepdim, dtype);
}
inline Tensor sum(const Tensor& self, at::OptionalIntArrayRef dim, bool keepdim = false,
                  std::optional<ScalarType> dtype = {}) {
  return self.sum(dim, keepdim, dtype);
}
inline Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = {}) {
  return self.softmax(dim, dtype);
}
inline Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = {}) {
  return self.log_softmax(dim, dtype);
}
inline Tensor addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                    const Scalar& alpha = 1) {
  return self.addmm(a, b, beta, alpha);
}
inline Tensor transpose(const Tensor& self, int64_t a, int64_t b) { return self.transpose(a, b); }
inline Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = {}) {
  return _ops::linear::call(input, weight, bias);
}

// As in ATen/TensorOperators.h. `turned`: what a number on the left becomes, a on the left of b.
#define SIMT_OPERATOR(symbol, method, turned)                                             \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return a.method(b); } \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { return a.method(b); } \
  inline Tensor operator symbol(const Scalar& a, const Tensor& b) { return turned; }
SIMT_OPERATOR(+, add, b.add(a))
SIMT_OPERATOR(-, sub, empty_like(b).fill_(a).sub_(b))
SIMT_OPERATOR(*, mul, b.mul(a))
SIMT_OPERATOR(/, div, empty_like(b).fill_(a).div_(b))
SIMT_OPERATOR(%, remainder, empty_like(b).fill_(a).remainder_(b))
SIMT_OPERATOR(&, bitwise_and, b.bitwise_and(a))
SIMT_OPERATOR(|, bitwise_or, b.bitwise_or(a))
SIMT_OPERATOR(^, bitwise_xor, b.bitwise_xor(a))
SIMT_OPERATOR(<, lt, b.gt(a))
SIMT_OPERATOR(<=, le, b.ge(a))
SIMT_OPERATOR(>, gt, b.lt(a))
SIMT_OPERATOR(>=, ge, b.le(a))
SIMT_OPERATOR(==, eq, b.eq(a))
SIMT_OPERATOR(!=, ne, b.ne(a))
#undef SIMT_OPERATOR

// As in ATen/DeviceGuard.h, which would bring all kinds of tensor lists with it.
inline std::optional<Device> device_of(const Tensor& t) {
  return t.defined() ? std::optional<Device>(t.device()) : std::nullopt;
}

}  // namespace at

namespace torch {
using namespace at;
using at::empty;
using at::empty_like;
using at::empty_strided;
using at::full;
using at::full_like;
using at::ones;
using at::ones_like;
using at::zeros;
using at::zeros_like;
using Dtype = at::ScalarType;
constexpr auto kUInt8 = at::kByte, kInt8 = at::kChar, kInt16 = at::kShort, kInt32 = at::kInt, kInt64 = at::kLong;
constexpr auto kFloat16 = at::kHalf, kFloat32 = at::kFloat, kFloat64 = at::kDouble;
constexpr auto kU8 = kUInt8, kI8 = kInt8, kI16 = kInt16, kI32 = kInt32, kI64 = kInt64, kF16 = kFloat16, kF32 = kFloat32,
               kF64 = kFloat64;
inline TensorOptions dtype(at::ScalarType t) { return TensorOptions().dtype(t); }
inline TensorOptions device(at::Device d) { return TensorOptions().device(d); }
inline TensorOptions requires_grad(bool r = true) { return TensorOptions().requires_grad(r); }
struct NoGradGuard {};  // nothing is recorded in an extension's function
}  // namespace torch
