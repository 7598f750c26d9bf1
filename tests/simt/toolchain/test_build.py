"""The rewriter and the build: are lines kept, messages put on the student's lines, and the cache sound?"""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter

import pytest
import torch

import simt
from simt.errors import NoCompiler
from simt.frontend.rewrite import rewrite
from simt.frontend.source import Source
from simt.frontend.tokens import tokenize
from simt.runtime import programs
from simt.toolchain import build, cache, units
from simt.toolchain.compilers import run_compiler
from simt.toolchain.runtime_library import load_runtime

HOST = "torch::Tensor f(torch::Tensor x) {\n  auto y = torch::empty_like(x);\n  %s\n  return y;\n}\n"
DECLARED = "torch::Tensor f(torch::Tensor x);"


def load(cuda, cpp=DECLARED, functions=("f",), **more):
    return simt.load_inline("test_sources", cpp, cuda, functions=list(functions), **more)


ODD_BUT_VALID = [
    "k<<<1, 2>>>(x);",
    "k<float, 4>\n  <<<dim3(1,\n 2), // two <<<\n 32, 0, stream>>>(\n x,\n y);",
    'const char* s = "a<<<b>>>(c)"; /* k<<<1,1>>>() */',
    'auto r = R"(k<<<1\n,1>>>())";',
    "#define GO(k, ...) k<<<1, \\\n  32>>>(__VA_ARGS__)\n",
    "__global__ void __launch_bounds__(256,\n 2) k(const float* __restrict__ a,\n int n) {\n extern __shared__ float\n"
    " s[];\n}",
    "__shared__ __align__(16) float a[4][5], b[2];",
    "a = b >> 3 > c >> 1;",
]


@pytest.mark.parametrize("source", ODD_BUT_VALID)
def test_no_line_moves(source):
    """Does every rewriting keep the number of lines, and the tokens join to the source?"""
    assert "".join(t.text for t in tokenize(source)) == source
    assert rewrite(Source(source, "cuda_sources")).text.count("\n") == source.count("\n")


def test_comments_and_strings_are_left_alone():
    """Do launches in comments and strings stay as they are?"""
    source = ODD_BUT_VALID[2]
    assert rewrite(Source(source, "cuda_sources")).text == source


def count_tokenizing(monkeypatch) -> Counter:
    """Count how often each text is split into tokens from here on, by whichever module of simt."""
    calls: Counter = Counter()

    def counting(text):
        calls[text] += 1
        return tokenize(text)

    for name, module in list(sys.modules.items()):
        if name.startswith("simt") and getattr(module, "tokenize", None) is tokenize:
            monkeypatch.setattr(module, "tokenize", counting)
    return calls


@pytest.mark.slow
def test_an_extension_is_split_into_tokens_once(monkeypatch):
    """Is each source parsed once, for every reader and for plain and checked builds?"""
    calls = count_tokenizing(monkeypatch)
    cuda = ["__global__ void k(int* x) { int a; x[0] = a; }", HOST % 'asm volatile("");']
    sources = units.Sources("tokens", [DECLARED], cuda, {"f": "f"}, [], [])
    for mode in ("plain", "check"):
        made, _, _ = units.make_units(sources, mode)
        assert made
    assert calls == dict.fromkeys([DECLARED, *cuda], 1)
    build.build(sources)
    assert calls == dict.fromkeys([DECLARED, *cuda], 1)


def test_a_program_is_split_into_tokens_once(monkeypatch, tmp_path):
    """Is each file of a program parsed once, a header with a kernel and one without CUDA among them?"""
    texts = {
        "a.cu": '#include "k.cuh"\n#include "plain.h"\nint main() { k<<<1, 1>>>(one); }\n',
        "k.cuh": "__global__ void k(int n) {}\n",
        "plain.h": "const int one = 1;\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    calls = count_tokenizing(monkeypatch)
    programs.make([tmp_path / "a.cu"])
    assert calls and set(calls) <= set(texts.values()) and set(calls.values()) == {1}


@pytest.mark.parametrize(
    ("kernel", "line"),
    [
        ("__global__ void k(const float* x, float* y) {\n  y[0] = x[0] + z;\n}\n", 2),
        ("\n\n\n__global__ void k(const float* x, float* y) {\n  int i = 0\n  y[i] = x[i];\n}\n", 5),
        ("template <typename T> __global__ void k(const T* x, T* y) {\n  typename T::none a;\n}\n", 2),
    ],
)
def test_a_compile_error_is_on_the_students_line(kernel, line):
    """Is the first message about the line, counted in the student's own string, that is wrong?"""
    launch = "k<<<1, 1>>>(x.data_ptr<float>(), y.data_ptr<float>());"
    with pytest.raises(simt.CompileError) as caught:
        load(kernel + HOST % launch)
    first = caught.value.diagnostics[0]
    assert first.source == "cuda_sources" and first.line in (line, line + 1) and first.text


def test_an_undeclared_function_is_told_with_its_declaration():
    """Does a function that cpp_sources lacks get the line to add?"""
    with pytest.raises(simt.UndeclaredFunction, match=r"torch::Tensor f\(torch::Tensor x\);"):
        load(HOST % "", cpp="torch::Tensor g(torch::Tensor x);")
    with pytest.raises(simt.MissingSources, match="cpp_sources is empty"):
        load(HOST % "", cpp="")


@pytest.mark.parametrize(
    "cpp, meant",
    [
        ("torch::Tensor logsumexp(torch::Tensor x);", "logsumexp"),
        ("torch::Tensor lse_rows(torch::Tensor x);\ntorch::Tensor softmax(torch::Tensor x);", "lse_rows"),
        ("torch::Tensor median(torch::Tensor x);\ntorch::Tensor softmax(torch::Tensor x);", ""),
    ],
)
def test_the_name_that_is_meant(cpp, meant):
    """Is a name that no source defines answered with the one that cpp_sources declares, where that is clear?"""
    says = f"No source defines `lse`, and cpp_sources declares `{meant}`." if meant else "Add its declaration to"
    with pytest.raises(simt.UndeclaredFunction, match=says):
        simt.load_inline("undeclared", cpp, cpp.replace(";", " { return x; }"), functions=["lse"])


def test_a_function_that_nobody_defines_is_a_link_error():
    """Is a declaration with other parameter types than the definition named?"""
    with pytest.raises(simt.LinkError, match=r"f\(at::Tensor, int\)"):
        load(HOST % "", cpp="torch::Tensor f(torch::Tensor x, int n);")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('__global__ void k() {\n asm volatile("griddepcontrol.wait;"); }\n', "griddepcontrol.wait"),
        ("#include <cuda_fp6.h>\nstruct S;\n", "cuda_fp6.h"),
        ("__global__ void c() {}\n__global__ void k() { c<<<1, 1>>>(); }\n", "dynamic parallelism"),
    ],
)
def test_what_cannot_run_here_is_refused_by_name(text, name):
    """Is a feature without a counterpart on the CPU named with its line?"""
    with pytest.raises(simt.Unsupported, match=name) as caught:
        load(text + HOST % "")
    assert caught.value.diagnostics[0].line in (1, 2)


@pytest.mark.slow
def test_a_module_bound_by_hand_works():
    """Does PYBIND11_MODULE with keyword arguments, defaults and attributes work in place of functions=?"""
    source = HOST % "" + textwrap.dedent(
        """
        int add(int a, int b) { return a + b; }
        PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
          m.def("add", &add, "sums", py::arg("a"), py::arg("b") = 5);
          m.def("f", &f);
          m.attr("version") = "2.1";
          m.attr("sizes") = std::vector<int64_t>{3, 4};
        }
        """
    )
    module = simt.load_inline("by_hand", "", source)
    assert (module.add(1), module.add(b=2, a=3), module.add.__doc__) == (6, 5, "sums")
    assert (module.version, module.sizes) == ("2.1", [3, 4])


@pytest.mark.slow
def test_a_source_that_registers_operators():
    """Can a module with a TORCH_LIBRARY be called by torch.ops, and with the checks on, by a second build of it?"""
    source = textwrap.dedent(
        """
        #include <torch/library.h>
        __global__ void past(float* y, int n) { y[threadIdx.x] = 2; }
        torch::Tensor f(torch::Tensor x) { past<<<1, x.numel() + 1>>>(x.data_ptr<float>(), x.numel()); return x; }
        torch::Tensor same(const torch::Tensor& x) { return x.clone(); }
        TORCH_LIBRARY(simt_tests, m) { m.def("same(Tensor x) -> Tensor"); }
        TORCH_LIBRARY_IMPL(simt_tests, CUDA, m) { m.impl("same", &same); }
        TORCH_LIBRARY_IMPL(simt_tests, CPU, m) { m.impl("same", &same); }
        """
    )
    module = simt.load_inline("registering", "torch::Tensor f(torch::Tensor x);", source, functions=["f"])
    assert torch.equal(torch.ops.simt_tests.same(torch.ones(3)), torch.ones(3))
    with simt.check() as report:
        module.f(torch.zeros(5))
    assert [found.check for found in report.findings] == ["out_of_bounds"]


OPERATORS = """
#include <torch/library.h>
__global__ void add_one(float* y) { y[threadIdx.x] += 1; }
at::Tensor with_kernel(const at::Tensor& x) {
  auto y = x.clone();
  add_one<<<1, y.numel()>>>(y.data_ptr<float>());
  return y;
}
at::Tensor without(const at::Tensor& x) { return x.clone().fill_(7); }
TORCH_LIBRARY(NAMESPACE, m) {
  for (const char* schema : {"both(Tensor x) -> Tensor", "gpu(Tensor x) -> Tensor", "cpu(Tensor x) -> Tensor"})
    m.def(schema);
}
TORCH_LIBRARY_IMPL(NAMESPACE, CUDA, m) { m.impl("both", &with_kernel); m.impl("gpu", &with_kernel); }
TORCH_LIBRARY_IMPL(NAMESPACE, CPU, m) { m.impl("both", &without); m.impl("cpu", &without); }
"""


@pytest.mark.slow
def test_a_library_that_is_no_module():
    """Does is_python_module=False register operators and return the path of the loaded file, as torch does?"""
    source = OPERATORS.replace("NAMESPACE", "simt_tests_library")
    path = simt.load_inline("library", "", source, is_python_module=False)
    assert isinstance(path, str) and path.endswith(".so") and path in torch.ops.loaded_libraries
    assert simt.load_inline("library", "", source, is_python_module=False) == path  # and registers nothing again
    torch.ops.load_library(path)
    made, x = torch.ops.simt_tests_library, torch.zeros(3)
    # What a GPU's tensors would choose: the implementation for CUDA, if there is one.
    results = [operator(x).tolist() for operator in (made.both, made.gpu, made.cpu)]
    assert results == [[1.0] * 3, [1.0] * 3, [7.0] * 3]


@pytest.mark.slow
def test_operators_are_registered_also_where_the_first_build_is_checked():
    """Are the operators of a module there if load_inline is called with the checks on?"""
    source = OPERATORS.replace("NAMESPACE", "simt_tests_checked")
    with simt.check():
        module = simt.load_inline(
            "checked_first", "at::Tensor with_kernel(const at::Tensor& x);", source, functions=["with_kernel"]
        )
    x = torch.zeros(3)
    assert torch.equal(torch.ops.simt_tests_checked.gpu(x), module.with_kernel(x))


@pytest.mark.slow
def test_operators_that_cpp_sources_register():
    """Is only one build of them registered, so that the module can be called with the checks on?"""
    cpp = """
    #include <torch/library.h>
    at::Tensor twice(const at::Tensor& x);
    TORCH_LIBRARY(simt_tests_cpp, m) { m.def("twice", &twice); }
    """
    cuda = """
    __global__ void double_it(float* y) { y[threadIdx.x] *= 2; }
    at::Tensor twice(const at::Tensor& x) {
      auto y = x.clone();
      double_it<<<1, y.numel()>>>(y.data_ptr<float>());
      return y;
    }
    """
    module = simt.load_inline("cpp_registers", cpp, cuda, functions=["twice"])
    with simt.check() as report:
        assert module.twice(torch.ones(3)).tolist() == [2.0] * 3
    assert not report.findings and torch.ops.simt_tests_cpp.twice(torch.ones(3)).tolist() == [2.0] * 3


@pytest.mark.parametrize("source, remedy", [(OPERATORS, "is_python_module=False"), ("", "define a PYBIND11_MODULE")])
def test_sources_that_bind_nothing(source, remedy):
    """Does the message name what these sources lack to be a module?"""
    with pytest.raises(simt.CompileError, match=remedy):
        simt.load_inline("unbound", "", source)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["norm", "max", "rsqrt"])
def test_a_function_named_as_one_of_cuda(name):
    """Can functions= name a function that CUDA's headers declare too? torch's binding does not include them."""
    declared = f"torch::Tensor {name}(\n    torch::Tensor x, double p = 2);"
    source = f"torch::Tensor {name}(torch::Tensor x, double p) {{ return x.clone().fill_(p); }}\n"
    module = simt.load_inline(f"named_{name}", declared, source, functions=[name])
    assert torch.equal(getattr(module, name)(torch.zeros(2), 3.0), torch.full((2,), 3.0))


@pytest.mark.slow
def test_any_aten_call_works():
    """Does host code that calls operators beyond the factories build, and give torch's result?"""
    module = load("torch::Tensor f(torch::Tensor x) { return torch::softmax(at::relu(x), 1); }\n")
    x = torch.randn(3, 5)
    assert torch.equal(module.f(x), torch.softmax(torch.relu(x), 1))


# ---- the cache ----


def test_nothing_is_rebuilt_when_nothing_changed(monkeypatch):
    """Does a second load_inline of the same sources start no compiler?"""
    source = HOST % f"// {time.time_ns()}"
    load(source)
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("a compiler was started"))
    start = time.perf_counter()
    load(source)
    assert time.perf_counter() - start < 0.3


def _builder(marker: str) -> list[str]:
    source = HOST % f"// {marker}"
    return [
        sys.executable,
        "-c",
        f"import simt\nm = simt.load_inline('test_two', {DECLARED!r}, {source!r}, functions=['f'])\nimport torch\n"
        f"print(m.f(torch.zeros(3)).shape)",
    ]


@pytest.mark.slow
def test_two_builds_at_once_give_one_result():
    """Do two processes that build the same sources at once both work?"""
    command = _builder(f"two {time.time_ns()}")
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out) == (0, "torch.Size([3])\n"), err


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.5, 1.5, 2.5])
def test_a_killed_build_leaves_the_cache_sound(after):
    """Can the same sources be built after a build of them was killed with all its compilers?"""
    command = _builder(f"killed {time.time_ns()}")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(after)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "torch.Size([3])\n"), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"CXX": "/nonexistent/g++"}, "CXX is `/nonexistent/g++`"),
        ({"CXX": "false"}, "CXX is `false`"),
        ({"PATH": "/nonexistent"}, "apt install g++"),
    ],
)
def test_no_compiler_is_one_sentence(environment, words, tmp_path):
    """Does a machine without a usable compiler get one sentence that says what to mend?"""
    script = "import simt\ntry:\n    simt.warm_up()\nexcept simt.NoCompiler as error:\n    print(error)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "SIMT_CACHE": str(tmp_path), **environment},
    )
    assert words in done.stdout and done.stdout.count("\n") == 1


def test_a_full_cache_is_told_before_anything_is_compiled(monkeypatch, tmp_path):
    """Is a disk without room found at once, not by a compiler that has run for half a minute?"""
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path))
    monkeypatch.setattr(
        cache.shutil, "disk_usage", lambda place: shutil._ntuple_diskusage(1 << 30, (1 << 30) - 4096, 4096)
    )
    with pytest.raises(simt.CacheError, match=r"No space left on device.. Set SIMT_CACHE"):
        cache.find_or_make("part", "key", lambda folder: pytest.fail("it was begun"))


def test_entries_go_where_they_are_too_many_or_too_large(monkeypatch, tmp_path):
    """Do the last used stay, and the newest however large it is?"""
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path))
    for age, size in enumerate((700, 300, 200, 100), 1):

        def fill(folder, size=size):
            (folder / "unit.o").write_bytes(b"x" * size)

        place, _ = cache.find_or_make("object", f"{size}", fill)
        os.utime(place, (1000 * age, 1000 * age))

    def list_left() -> list[str]:
        return sorted(place.name for place in (tmp_path / "object").iterdir() if not place.name.startswith("."))

    cache.trim("object", 3, 10**6)
    assert list_left() == ["100", "200", "300"]
    cache.trim("object", 3, 350)
    assert list_left() == ["100", "200"]
    cache.trim("object", 3, 50)
    assert list_left() == ["100"]


def test_what_another_checkout_used_today_stays(monkeypatch, tmp_path):
    """Do versions of simt that share a cache keep their entries, within the size, and lose those of the day before?"""
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path))
    now = time.time()
    for hours in (1, 2, 23, 25, 26):
        place, _ = cache.find_or_make("part", f"{hours}", lambda folder: (folder / "a.so").write_bytes(b"x" * 100))
        os.utime(place, (now - 3600 * hours, now - 3600 * hours))

    def list_left() -> list[int]:
        return sorted(int(place.name) for place in (tmp_path / "part").iterdir() if not place.name.startswith("."))

    cache.trim("part", 4)
    assert list_left() == [1, 2, 23, 25]
    cache.trim("part", 1)
    assert list_left() == [1, 2, 23]
    cache.trim("part", 1, 250)
    assert list_left() == [1, 2]


def test_a_shared_cache_is_looked_into_and_never_written_to(monkeypatch, tmp_path):
    """Is what it has taken from there, and what it lacks made in one's own?"""

    def fill(folder):
        (folder / "unit.o").write_text("built")

    shared, own = tmp_path / "shared", tmp_path / "own"
    monkeypatch.setenv("SIMT_CACHE", str(shared))
    assert cache.find_or_make("object", "one", fill) == (shared / "object" / "one", True)
    before = sorted(shared.rglob("*"))
    monkeypatch.setenv("SIMT_CACHE", str(own))
    monkeypatch.setenv("SIMT_CACHE_SHARED", str(shared))
    assert cache.find_or_make("object", "one", fill) == (shared / "object" / "one", False)
    assert cache.has_entry("object", "one") and not cache.has_entry("object", "two")
    assert cache.find_or_make("object", "two", fill) == (own / "object" / "two", True)
    assert cache.has_entry("object", "two") and sorted(shared.rglob("*")) == before


@pytest.mark.slow
def test_a_binding_that_was_compiled_before_is_not_compiled_again():
    """Is the unit of the bindings taken from the cache where the declarations and names are the same?"""
    stamp = time.time_ns()
    declared, defined = f"// {stamp}\n{DECLARED}", HOST % f"// {stamp}"

    def count_compiled(cpp: str) -> int:
        return build.build(units.Sources("test_binding", [cpp], [defined], {"f": "f"}, [], [])).compiled

    build.warm_binding([declared], ["f"])
    assert count_compiled(declared) == 1
    assert count_compiled(f"// another\n{declared}") == 1  # and of this the kernels are there already
    assert count_compiled(declared) == 0


def test_where_the_quick_linker_fails_the_usual_one_links(monkeypatch):
    monkeypatch.setattr(build, "find_linker", lambda: ["-fuse-ld=none-of-this-name"])
    assert load(HOST % f"// {time.time_ns()}").f(torch.zeros(3)).shape == (3,)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "a.cpp:1:1: fatal error: error writing to /full/tmp/ccHg2FkN.s: No space left on device",
            "temporary files, /full/tmp, cannot be used (No space left on device)",
        ),
        (
            "a.cpp:1:1: fatal error: error closing /full/ccHg2FkN.s: No space left on device",
            "temporary files, /full, cannot be used",
        ),
        (
            "Cannot create temporary file in /full/: Read-only file system",
            "temporary files, /full, cannot be used (Read-only file system)",
        ),
        (
            "/tmp/ccUr1IO7.s: Fatal error: can't write 70 bytes to section .text of /c/unit.o: "
            "'No space left on device'",
            "The folder for built extensions",
        ),
        ("fatal error: can't write PCH file: No space left on device", "The folder for built extensions"),
    ],
)
def test_the_folder_that_is_full_is_named(said, words):
    """Is it the cache or the compiler's own folder for temporary files, which another variable names?"""
    with pytest.raises(simt.CacheError) as caught:
        run_compiler(["sh", "-c", 'echo "$1" >&2; exit 1', "sh", said])
    assert words in str(caught.value) and ("SIMT_CACHE" in str(caught.value)) == ("extensions" in words) != (
        "TMPDIR" in str(caught.value)
    )


def test_a_compiler_that_is_newer_than_the_libraries_of_python_is_named():
    """Is what dlopen says of a missing version one sentence with what to do, and anything else left as it is?"""

    def load(path):
        raise OSError(f"/lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by {path})")

    with pytest.raises(NoCompiler, match=r"needs GLIBCXX_3\.4\.32, which the libraries of this Python lack.*Set CXX"):
        load_runtime(load)

    def refuse(path):
        raise OSError("cannot open shared object file")

    with pytest.raises(OSError, match="cannot open"):
        load_runtime(refuse)
