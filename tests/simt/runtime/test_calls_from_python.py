"""Host functions called from Python: do values go both ways, and do errors arrive as torch's own binding gives them?"""

import re

import pytest
import torch

import simt

VALUES = (
    r"""
#include <torch/extension.h>
std::tuple<torch::Tensor, torch::Tensor> pair(torch::Tensor x) { return {x * 2, 1 - x}; }
std::vector<torch::Tensor> list(std::vector<torch::Tensor> xs, at::TensorList ys, const std::vector<int64_t>& n) { """
    r"""return {xs[0] * 2, ys[0] + n[1]}; }
double numbers(double s, bool minus, const std::string& mode, int64_t k, float f) { """
    r"""return (minus ? -s : s) + k + f + (mode == "a"); }
std::string text(std::string_view s) { return std::string(s) + "!"; }
torch::Tensor optionals(torch::Tensor x, torch::optional<torch::Tensor> b, std::optional<double> s) { """
    r"""if (b.has_value()) x = x + *b; if (s) x = x * *s; return x; }
torch::Tensor options(const torch::Tensor& x, at::IntArrayRef size, torch::ScalarType type, c10::Device device) { """
    r"""return x.reshape(size).to(type).to(device); }
torch::Tensor scalar(torch::Tensor& x, const at::Scalar& s) { return x.mul(s); }
void in_place(torch::Tensor x) { x.mul_(2); }
std::tuple<int, float, std::string, bool> mixed(std::tuple<int, double> a, std::array<int64_t, 2> b) { """
    r"""return {std::get<0>(a), std::get<1>(a), "q", b[1] > b[0]}; }
int64_t byte(uint8_t n) { return n; }
at::Tensor undefined() { return at::Tensor(); }
std::vector<std::vector<int64_t>> shapes(torch::Tensor x) { return {x.sizes().vec(), x.strides().vec()}; }
torch::Tensor fails(torch::Tensor x, int64_t how) {
  switch (how) {
    case 0: TORCH_CHECK(x.dim() == 2, "x has ", x.dim(), " dimensions");
    case 1: throw std::invalid_argument("bad value");
    case 2: throw std::out_of_range("bad index");
    case 3: TORCH_CHECK_INDEX(false, "bad index");
    case 4: TORCH_CHECK_TYPE(false, "bad type");
    case 5: TORCH_CHECK_VALUE(false, "bad value");
    case 6: return x.view({-1, 7});
    case 7: x.data_ptr<double>();
    case 8: assert(how == 9);
    case 9: AT_DISPATCH_INTEGRAL_TYPES(x.scalar_type(), "fails_of_type", [&] {});
    case 10: throw 3;
  }
  return x;
}
"""
)
VALUE_HEADS = [m + ";" for m in re.findall(r"^(?!#|\s)[^\n{]*\([^\n]*?\)(?= \{)", VALUES, re.MULTILINE)]


@pytest.fixture(scope="module")
def values():
    names = [re.search(r"(\w+)\(", h)[1] for h in VALUE_HEADS]
    return simt.load_inline("test_values", "\n".join(VALUE_HEADS), VALUES, functions=names)


@pytest.mark.slow
def test_values_go_both_ways(values):
    """Do tensors, numbers, strings, lists, tuples, optionals, dtypes and devices arrive as what they are?"""
    x = torch.randn(6)
    double, less = values.pair(x)
    assert torch.equal(double, 2 * x) and torch.equal(less, 1 - x)
    assert [torch.equal(a, b) for a, b in zip(values.list([x], (x,), [1, 2]), [2 * x, x + 2])] == [True, True]
    assert values.numbers(1.5, True, "a", 3, 1) == 3.5 and values.numbers(torch.tensor(2.0), 0, "b", True, 0) == 3.0
    assert values.text("hä") == "hä!"
    assert torch.equal(values.optionals(x, None, None), x) and torch.equal(values.optionals(x, x, 0.5), x)
    y = values.options(x, [2, 3], torch.float64, "cpu")
    assert y.shape == (2, 3) and y.dtype == torch.float64
    assert torch.equal(values.scalar(x, 3), 3 * x) and torch.equal(values.scalar(x, 2.5), 2.5 * x)
    assert values.mixed((1, 2.5), [3, 4]) == (1, 2.5, "q", True)
    assert values.undefined() is None and values.shapes(x.view(2, 3)) == [[2, 3], [3, 1]]
    z = x.clone()
    assert values.in_place(z) is None and torch.equal(z, 2 * x)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda v, x: v.pair(), r"pair\(\): takes 1 argument, but got 0"),
        (lambda v, x: v.pair(x, x), "takes 1 argument, but got 2"),
        (lambda v, x: v.pair([x]), "argument 1 should be a Tensor, not a list"),
        (lambda v, x: v.pair(None), "argument 1 should be a Tensor, not None"),
        (lambda v, x: v.fails(x, 1.5), "argument 2 should be an int, not a float"),
        (lambda v, x: v.fails(x, "1"), "argument 2 should be an int, not a str"),
        (lambda v, x: v.byte(300), "does not fit the C\\+\\+ type: 300"),
        (lambda v, x: v.byte(-1), "does not fit the C\\+\\+ type: -1"),
        (lambda v, x: v.byte(1 << 70), "does not fit in 64 bits"),
        (lambda v, x: v.byte(set()), "argument 1 is set"),
        (lambda v, x: v.byte({}), "argument 1 should be an int, not a dict"),
        (lambda v, x: v.mixed((1,), [1, 2]), "should be a tuple of 2"),
        (lambda v, x: v.pair(x, nothing=1), "has no parameter named nothing"),
    ],
)
def test_wrong_arguments_are_named(values, call, words):
    """Does a wrong number or type of arguments give a TypeError that names the function and the argument?"""
    with pytest.raises(TypeError, match=words):
        call(values, torch.zeros(3))


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        (0, RuntimeError, "x has 1 dimensions"), (1, ValueError, "bad value"),
        (2, IndexError, "bad index"), (3, IndexError, "bad index"),
        (4, TypeError, "bad type"), (5, ValueError, "bad value"), (6, RuntimeError, "invalid for input of size 3"),
        (7, RuntimeError, "expected scalar type Double"), (8, RuntimeError, "how == 9"),
        (9, NotImplementedError, "fails_of_type.*not implemented for 'Float'"), (10, RuntimeError, "threw"),
    ],
)  # fmt: skip
def test_exceptions_of_the_host_reach_python(values, how, kind, words):
    """Does each exception of host code become the one that torch's own binding makes, without a C++ backtrace?"""
    with pytest.raises(kind, match=words) as caught:
        values.fails(torch.zeros(3), how)
    assert "Exception raised from" not in str(caught.value) and type(caught.value) is kind


@pytest.mark.slow
def test_arguments_of_kernelbench():
    """Does the call that KernelBench's examples make, empty strings among its flags, work and drop nvcc's flags?"""
    source = (
        "__global__ void k(float* x) { x[threadIdx.x] += VALUE; }\n"
        "void f(torch::Tensor x) { k<<<1, x.numel()>>>(x.data_ptr<float>()); }\n"
    )
    module = simt.load_inline(
        name="test_kernelbench", cpp_sources="void f(torch::Tensor x);", cuda_sources=source, functions=["f"],
        verbose=False, with_cuda=True, extra_cflags=["", "-O3"], extra_ldflags=["", "-lcudart", "-lm"],
        extra_cuda_cflags=["-O3", "--use_fast_math", "-gencode", "arch=compute_80,code=sm_80", "-DVALUE=3",
                           "--expt-relaxed-constexpr", "-std=c++17"],
    )  # fmt: skip
    x = torch.zeros(4)
    module.f(x)
    assert x.tolist() == [3.0] * 4


def test_functions_with_names_of_the_binding():
    """Can functions have the names that the text which binds them could use for its own variables?"""
    names = ["all", "made", "into"]
    heads = "".join(f"int64_t {name}(int64_t n);" for name in names)
    text = "".join(f"int64_t {name}(int64_t n) {{ return n + {i}; }}\n" for i, name in enumerate(names))
    module = simt.load_inline("test_names", heads, text, functions=names)
    assert [getattr(module, name)(5) for name in names] == [5, 6, 7]
