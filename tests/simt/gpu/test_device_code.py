"""Does the device's half compile to machine code with the names that the host's half looks up? Needs nvcc, no GPU."""

import re
import subprocess

import pytest

from simt.errors import CompileError
from simt.frontend.source import Source
from simt.gpu.build import _build_code
from simt.gpu.items import NotSplit
from simt.gpu.split import split
from simt.toolchain.cuda_toolkit import find_nvcc
from tests.simt.gpu.test_split import LAUNCHED, SOURCE

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_nvcc() is None, reason="nvcc is not installed")]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path))


def _compile(source, versions=()):
    """Return the machine code's names, or the error that the build raises."""
    whole = Source(source, "cuda_sources")
    try:
        code, _ = _build_code(whole, split(whole), [], "sm_80", versions)
    except (CompileError, NotSplit) as error:
        return error
    return set(re.findall(rb"\.text\.(\w+)\0", code.read_bytes()))


def test_every_launched_kernel_is_there():
    """Are the names that nvcc gives the kernels those under which the host's half launches them?"""
    launched = {line.split(" <<<")[0] for line in LAUNCHED if "<<<" in line and not line.startswith("cooperative")}
    versions = {name for name in launched if name.startswith("void ")}
    names = _compile(SOURCE, sorted(versions))
    assert isinstance(names, set), names
    filtered = subprocess.run(
        ["c++filt", *sorted(name.decode() for name in names)], capture_output=True, text=True, check=True
    )
    assert set(filtered.stdout.splitlines()) == launched


def test_mistake_is_at_its_line():
    error = _compile("#include <cstdint>\n__global__ void k(float* x) {\n    x[0] = y;\n}")
    assert isinstance(error, CompileError) and error.diagnostics[0].line == 3
    assert error.diagnostics[0].message == 'identifier "y" is undefined' and "x[0] = y" in error.diagnostics[0].text


def test_host_function_in_a_kernel():
    """Is a helper without __device__ called what it is? Its text is not there, so that nvcc calls it undefined."""
    error = _compile("float half_of(float x) { return x / 2; }\n__global__ void k(float* x) { x[0] = half_of(1); }")
    assert isinstance(error, CompileError)
    assert error.diagnostics[0].message == ('calling a __host__ function("half_of") from device code is not allowed')


def test_unknown_part_of_the_library_goes_to_nvcc():
    """Is a name that only the whole source may have left to nvcc with the whole source?"""
    error = _compile("__global__ void k(int* x) { x[0] = std::popcount(4u); }")
    assert isinstance(error, NotSplit) and "line 1" in str(error)


def test_what_torch_brings_of_the_library():
    """Are the names there that torch's headers bring, without an #include of the source's own?"""
    names = _compile(
        "__global__ void k(uint8_t* x, uint32_t* y, intptr_t z) {\n"
        "    x[0] = UINT8_MAX; y[0] = (uint32_t)INT_MAX + CHAR_BIT; y[1] = std::numeric_limits<int>::max();\n"
        "    y[2] = std::min(y[0], y[1]) + std::get<0>(std::make_tuple(2u)) + sizeof(std::array<int, 3>) + z;\n"
        "    assert(isinf((float)INFINITY)); memset(y, 0, M_PI > 3);\n}"
    )
    assert isinstance(names, set) and len(names) == 1, names


@pytest.mark.parametrize(
    "line", ["CUDA_KERNEL_LOOP(i, 3) { x[i] = 0; }", "x[0] = C10_WARP_SIZE;", "x[0] = AT_DISPATCH_X;"]
)
def test_macros_of_torch_go_to_nvcc(line):
    error = _compile(f"__global__ void k(int* x) {{\n    {line}\n}}")
    assert isinstance(error, NotSplit), error
