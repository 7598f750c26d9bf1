"""Reading C++: are functions, returns, launches and stores found as they stand in the text?"""

from grader.source.cpp import Text, split

SOURCE = '''
code = r"""
// void not_there(int a) {
template <typename T>
__global__ void __launch_bounds__(128) k(const T* __restrict__ x, T* y, int n) {
    if (n > 0) { y[n + x[0]] = 1; }
    if (y[0] == 2) atomicAdd(&y[1], x[1]);
    *y += 3;
}
static std::tuple<torch::Tensor, int> run(const torch::Tensor& x, std::vector<int> sizes, float eps = 1e-5f) {
    auto y = torch::empty({x.size(0), 2}, x.options()), z = torch::zeros_like(x);  /* y = x; */
    k<float><<<dim3(n, 2), 128>>>(
        x.data_ptr<float>(), z.data_ptr<float>(), std::max(1, 2));
    if (eps == 0) return {y, z};
    return std::make_tuple(z, sizes[0]);
}
PYBIND11_MODULE(name, m) { m.def("start", &run); }
"""
'''
TEXT = Text(SOURCE)


def line(part: str) -> int:
    return next(n for n, text in enumerate(SOURCE.split("\n"), 1) if part in text)


def test_functions():
    """Are kernels and functions found with their parameters, and none in a comment or in the place of a condition?"""
    kernel, run = TEXT.functions["k"], TEXT.function("start")
    assert {"k", "run"} <= set(TEXT.functions) and not {"not_there", "if"} & set(TEXT.functions)
    assert (
        kernel.kernel
        and kernel.names == ["x", "y", "n"]
        and "const" in kernel.parameters[0][0]
        and "const" not in kernel.parameters[1][0]
    )
    assert not run.kernel and run.names == ["x", "sizes", "eps"] and TEXT.function("nothing") is None


def test_what_is_returned_and_made():
    """Are the parts of each return found, and what a variable is set to, comments left out?"""
    run = TEXT.functions["run"]
    assert [(parts, TEXT.line(at)) for parts, at in TEXT.returns(run)] == [
        (["y", "z"], line("{y, z}")),
        (["z", "sizes[0]"], line("make_tuple")),
    ]
    assert [(value, TEXT.line(at)) for value, at in TEXT.made("y", run)] == [
        ("torch::empty({x.size(0), 2}, x.options())", line("auto y"))
    ]


def test_launches_and_stores():
    """Are a launch's arguments found with their places, and the lines on which a kernel writes, not those on which it
    compares?
    """
    (launch,) = TEXT.launches(TEXT.functions["run"])
    assert launch.kernel == "k" and [argument for argument, _ in launch.arguments] == [
        "x.data_ptr<float>()",
        "z.data_ptr<float>()",
        "std::max(1, 2)",
    ]
    assert all(SOURCE.startswith(argument, at) for argument, at in launch.arguments)
    kernel = TEXT.functions["k"]
    assert (
        TEXT.stores(kernel, "y") == [line("y[n + x[0]]"), line("atomicAdd"), line("*y += 3")]
        and TEXT.stores(kernel, "x") == []
    )


def test_split():
    """Is a text taken apart outside of brackets and of a template's arguments alone?"""
    assert [part for part, _ in split("a, f(b, c), {d, e}, std::tuple<int, float> g")] == [
        "a",
        " f(b, c)",
        " {d, e}",
        " std::tuple<int, float> g",
    ]
