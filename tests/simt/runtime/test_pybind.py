"""What extensions bind by hand with pybind11: functions with defaults, Python's containers, and classes."""

import pytest
import torch

import simt
from simt.runtime import torch_device

SOURCE = r"""
#include <torch/extension.h>
#include <pybind11/stl.h>
#include <map>
#include <memory>
namespace {
__global__ void multiply(const float* x, float* y, float factor, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = x[i] * factor;
}
torch::Tensor times(torch::Tensor x, double factor) {
  auto y = torch::empty_like(x);
  multiply<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), factor, x.numel());
  return y;
}

struct Scaler {
  double factor;
  torch::Tensor weight;
  int calls = 0;
  Scaler(torch::Tensor weight, double factor) : factor(factor), weight(weight) {
    if (factor < 0) throw std::invalid_argument("factor is negative");
  }
  torch::Tensor run(torch::Tensor x, const std::string& how) {
    ++calls;
    return how == "weight" ? times(x, weight.numel()) : times(weight, factor);
  }
  int get_calls() const noexcept { return calls; }
};
struct Point {
  int x, y;
};
Scaler twice(const Scaler& a, Scaler& b) { ++b.calls; return Scaler(a.weight, 2 * b.factor); }
std::shared_ptr<Point> shared(std::shared_ptr<Point> p, Point* q, Point r) { q->x += r.x; r.x = 99; return p; }
}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "Everyday bindings.";
  m.attr("VERSION") = "1.2";
  m.def("times", &times, "x times factor", py::arg("x"), py::arg("factor") = 3.0);
  m.def("defaults", [](std::optional<torch::Tensor> t, const std::string& s, std::vector<int64_t> n, bool b,
                       std::optional<double> d) {
    return std::make_tuple(t.has_value(), s, n, b, d);
  }, py::arg("t") = py::none(), py::arg("s") = "text", py::arg("n") = std::vector<int64_t>{1, 2},
     py::arg("b").noconvert() = true, py::arg("d") = std::nullopt);
  m.def("tuple", [](py::tuple t) {
    return py::make_tuple(t[1], t[0].cast<int>() + 1, t.size(), "end", py::none());
  });
  m.def("list", [](py::list all) {
    py::list made;
    for (auto one : all)
      if (py::isinstance<py::int_>(one)) made.append(one.cast<int64_t>() * 2);
    made.append(py::len(all));
    return made;
  });
  m.def("dict", [](py::dict given) {
    py::dict made;
    for (auto pair : given) made[py::str("_" + pair.first.cast<std::string>())] = pair.second;
    made["has_y"] = given.contains("y");
    made["y"] = times(given["x"].cast<torch::Tensor>(), 2);
    made["y"] = py::cast<torch::Tensor>(made["y"]) + 1;
    return made;
  });
  m.def("object", [](py::object any) { return any.is_none() ? py::object(py::str("none")) : any; });
  m.def("change", [](py::list given) { given.append(1); });
  m.def("third", [](py::list given) { return py::object(given[2]); });
  m.def("fails", [] { throw py::value_error("no value"); });
  m.def("map", [](std::map<std::string, double> given) {
    for (auto& [key, value] : given) value *= 2;
    return given;
  });
  int64_t captured = 41;
  m.def("capture", [captured](int64_t n) { py::gil_scoped_release free; return captured + n; },
        py::call_guard<py::gil_scoped_release>());
  m.def("device", [](torch::Tensor x) { return std::make_pair(x.device(), x.scalar_type()); });
  m.def("scalar", [](bool real) { return real ? at::Scalar(1.5) : at::Scalar(7); });
  py::class_<Scaler, std::shared_ptr<Scaler>>(m, "Scaler", "Multiplies.")
      .def(py::init<torch::Tensor, double>(), py::arg("weight"), py::arg("factor") = 1.0)
      .def("run", &Scaler::run, "Run it.", py::arg("x"), py::arg("how") = "weight")
      .def("__call__", [](Scaler& self, torch::Tensor x) { return self.run(x, "factor"); })
      .def_static("of", [](double factor) { return std::make_unique<Scaler>(torch::ones({2}), factor); })
      .def_property_readonly("calls", &Scaler::get_calls)
      .def_property("half", [](const Scaler& s) { return s.factor / 2; },
                    [](Scaler& s, double half) { s.factor = 2 * half; })
      .def_readwrite("factor", &Scaler::factor);
  py::class_<Point>(m, "Point")
      .def(py::init([](int x) { return Point{x, 0}; }))
      .def_readwrite("x", &Point::x)
      .def_readonly("y", &Point::y);
  m.def("twice", &twice);
  m.def("shared", &shared);
}
"""
X = torch.arange(6.0)


@pytest.fixture(scope="module")
def module():
    return simt.load_inline("test_pybind", "", SOURCE)


def test_defaults_and_keywords(module):
    """Do defaults of all kinds arrive, and do keywords replace them?"""
    assert module.VERSION == "1.2"
    assert torch.equal(module.times(X), 3 * X) and torch.equal(module.times(factor=2, x=X), 2 * X)
    assert module.defaults() == (False, "text", [1, 2], True, None)
    assert module.defaults(X, n=(7,), d=2, b=False) == (True, "text", [7], False, 2.0)
    assert module.capture(1) == 42 and module.map({"a": 1.5, "b": 2}) == {"a": 3.0, "b": 4.0}
    assert module.device(X) == (torch.device("cpu"), torch.float32)
    assert module.scalar(True) == 1.5 and module.scalar(False) == 7


def test_containers_go_both_ways(module):
    """Do a tuple, a list, a dict and any object arrive and return as what they are, with what is in them?"""
    assert module.tuple((4, "b")) == ("b", 5, 2, "end", None)
    assert module.list([1, "a", 2.5, 3]) == [2, 6, 4]
    made = module.dict({"x": X, "n": [1, 2]})
    assert list(made) == ["_x", "_n", "has_y", "y"] and made["_x"] is X and made["_n"] == [1, 2]
    assert made["has_y"] is False and torch.equal(made["y"], 2 * X + 1)
    assert module.object(None) == "none" and module.object((1, {"a": [2]})) == (1, {"a": [2]})


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda m: m.tuple([1]), IndexError, "index out of range"),
        (lambda m: m.tuple(3), TypeError, "argument 1 should be a tuple, not an int"),
        (lambda m: m.dict({}), TypeError, "should be a Tensor, not None"),
        (lambda m: m.change([1]), TypeError, "cannot change on the CPU"),
        (lambda m: m.third([1, 2]), IndexError, "index out of range"),
        (lambda m: m.fails(), ValueError, "no value"),
        (lambda m: m.Scaler(), TypeError, r"Scaler.__init__\(\): argument 1|takes 2 arguments"),
        (lambda m: m.Scaler(X, -1), ValueError, "factor is negative"),
        (
            lambda m: m.twice(m.Point(1), m.Scaler(X)),
            TypeError,
            "an object of the C\\+\\+ class .*Scaler, not of .*Point",
        ),
        (lambda m: m.Scaler.run(3, X), TypeError, "argument 1 should be an object of the C\\+\\+ class"),
        (lambda m: setattr(m.Point(1), "y", 2), AttributeError, "setter"),
    ],
)
def test_wrong_use_is_named(module, call, kind, words):
    with pytest.raises(kind, match=words):
        call(module)


def test_objects_of_classes_live_as_in_python(module):
    """Do constructors, methods, properties, fields and functions that take and return objects work on one object?"""
    one = module.Scaler(X, factor=2)
    assert torch.equal(one.run(X), 6 * X) and torch.equal(one(X), 2 * X) and torch.equal(one.run(X, how="f"), 2 * X)
    assert one.calls == 3 and one.half == 1
    one.half = 2.5
    assert one.factor == 5
    one.factor = 7
    assert torch.equal(one(X), 7 * X) and module.Scaler.of(4).half == 2
    other = module.twice(module.Scaler(X + 1), one)
    assert type(other) is module.Scaler and torch.equal(other(X), 14 * (X + 1)) and one.calls == 5
    p, q = module.Point(1), module.Point(10)
    r = module.Point(5)
    again = module.shared(p, q, r)
    again.x = 3
    assert (p.x, q.x, r.x, p.y) == (3, 15, 5, 0)


def test_objects_are_the_same_in_a_checked_run(module):
    """Does an object from a plain run launch checked kernels, without a finding about the tensors that it holds?"""
    one = module.Scaler(X, 2)
    with simt.check() as report:
        assert torch.equal(one(X), 2 * X) and torch.equal(module.Scaler(X + 1, 2).run(X, "f"), 2 * (X + 1))
    assert not report.errors and one.calls == 1


def test_a_captured_graph_calls_methods_again(module):
    """Does a replay call an object's method, with the values that its input has by then?"""
    one, x = module.Scaler(X, 2), torch.ones(6)
    with torch_device.cuda_on_cpu():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = one.run(x)
        x.fill_(5)
        graph.replay()
    assert torch.equal(y, 30 * torch.ones(6)) and one.calls == 2


def test_classes_of_torchscript_are_refused():
    with pytest.raises(simt.Unsupported, match="TorchScript's classes"):
        simt.load_inline("test_script", "", SOURCE + 'static auto c = torch::class_<Point>("a", "b");')
