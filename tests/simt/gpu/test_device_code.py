"""Does the device's half compile to machine code with the names that the host's half looks up? Needs nvcc, no GPU."""

import re
import subprocess

import pytest

from simt.errors import CompileError
from simt.frontend.source import Source
from simt.gpu.build import _make_error, _run_nvcc
from simt.gpu.items import NotSplit
from simt.gpu.split import split
from simt.toolchain.cuda_toolkit import find_nvcc
from tests.simt.gpu.test_split import LAUNCHED, SOURCE

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_nvcc() is None, reason="nvcc is not installed")]


def _compile(source, folder, versions=()):
    """Return the machine code's names, or the error that the build would raise."""
    whole, compiler = Source(source, "cuda_sources"), find_nvcc()
    assert compiler is not None
    parts = split(whole)
    wanted = "".join(f"template __global__ {version};\n" for version in versions)
    log = _run_nvcc(compiler, f'#line 1 "cuda_sources"\n{parts.device}\n{wanted}', ["-arch=sm_80"], folder)
    code = folder / "device.cubin"
    if not code.is_file():
        return _make_error(whole, parts, log)
    return set(re.findall(rb"\.text\.(\w+)\0", code.read_bytes()))


def test_every_launched_kernel_is_there(tmp_path):
    """Are the names that nvcc gives the kernels those under which the host's half launches them?"""
    launched = {line.split(" <<<")[0] for line in LAUNCHED if "<<<" in line and not line.startswith("cooperative")}
    versions = {name for name in launched if name.startswith("void ")}
    names = _compile(SOURCE, tmp_path, sorted(versions))
    assert isinstance(names, set), names
    filtered = subprocess.run(
        ["c++filt", *sorted(name.decode() for name in names)], capture_output=True, text=True, check=True
    )
    assert set(filtered.stdout.splitlines()) == launched


def test_mistake_is_at_its_line(tmp_path):
    error = _compile("#include <cstdint>\n__global__ void k(float* x) {\n    x[0] = y;\n}", tmp_path)
    assert isinstance(error, CompileError) and error.diagnostics[0].line == 3
    assert error.diagnostics[0].message == 'identifier "y" is undefined' and "x[0] = y" in error.diagnostics[0].text


def test_host_function_in_a_kernel(tmp_path):
    """Is a helper without __device__ called what it is? Its text is not there, so that nvcc calls it undefined."""
    error = _compile(
        "float half_of(float x) { return x / 2; }\n__global__ void k(float* x) { x[0] = half_of(1); }", tmp_path
    )
    assert isinstance(error, CompileError)
    assert error.diagnostics[0].message == ('calling a __host__ function("half_of") from device code is not allowed')


def test_unknown_part_of_the_library_goes_to_nvcc(tmp_path):
    """Is a name that only the whole source may have left to nvcc with the whole source?"""
    error = _compile("__global__ void k(int* x) { x[0] = std::popcount(4u); }", tmp_path)
    assert isinstance(error, NotSplit) and "line 1" in str(error)
