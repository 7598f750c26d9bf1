"""Which way does an extension for a GPU take where it cannot be compiled apart? Both ways are stand-ins."""

import subprocess
import sys

import pytest

from simt.errors import CompileError, Diagnostic, LinkError, NoCompiler
from simt.gpu.build import Built
from simt.gpu.items import NotSplit
from simt.runtime import gpu_extension
from simt.toolchain.compilers import find_compiler


@pytest.fixture
def build(monkeypatch):
    """Calls load_inline with a build that raises an error, and an nvcc that returns the linker's flags."""

    def call(error):
        def fail(*_):
            raise error

        monkeypatch.setattr(gpu_extension, "_load", fail)
        monkeypatch.setattr(gpu_extension, "stock_load_inline", lambda *_, extra_ldflags, **__: extra_ldflags)
        return gpu_extension.load_inline("ways", "", "__global__ void k() {}", functions=[], extra_ldflags=["-lm"])

    return call


@pytest.mark.parametrize("error", [NotSplit("it has managed memory"), NoCompiler("the compiler is too old")])
def test_nvcc_takes_what_cannot_be_split(build, error):
    assert build(error)[0] == "-lm" and gpu_extension.ways["ways"] == f"nvcc: {error}"


def test_a_mistake_is_not_compiled_again(build):
    with pytest.raises(CompileError, match="no such name"):
        build(CompileError([Diagnostic("cuda_sources", 1, 1, "error", "no such name")]))


@pytest.mark.parametrize("is_module", [True, False])
def test_a_function_that_no_source_defines_is_a_mistake_of_the_sources(tmp_path, monkeypatch, is_module):
    """Is it named, as where the CPU's linker finds it, although only the dynamic linker does here?"""
    text = 'int scaled(int, float*); extern "C" int use() { return scaled(1, nullptr); }'
    command = [find_compiler()[0], "-shared", "-fPIC", "-x", "c++", "-", "-o", str(tmp_path / "extension.so")]
    subprocess.run(command, input=text, text=True, check=True)
    monkeypatch.setattr(gpu_extension.build, "build", lambda *_: Built(tmp_path, None, 1))
    monkeypatch.setattr(gpu_extension, "name_architecture", lambda: "sm_90")
    with pytest.raises(LinkError, match=r"`scaled\(int, float\*\)` is declared and called, but no source defines it"):
        gpu_extension.load_inline("undefined", "", "int x;", functions=[], is_python_module=is_module)


FRESH = """
import subprocess, sys
from pathlib import Path
from simt.gpu.build import Built
from simt.runtime import gpu_extension
from simt.toolchain.runtime_library import build_runtime
from simt.toolchain.compilers import find_compiler

folder = Path(sys.argv[1])
links = ["-shared", "-Wl,--no-as-needed", f"-L{build_runtime()}", "-lsimt_runtime", "-o", str(folder / "extension.so")]
subprocess.run([find_compiler()[0], "-x", "c++", "/dev/null", *links], check=True)
gpu_extension.build.build = lambda *_: Built(folder, None, 1)
gpu_extension.name_architecture = lambda: "sm_90"
print(gpu_extension.load_inline("fresh", "", "int x;", is_python_module=False))
"""


def test_operators_without_a_module_load_first(tmp_path):
    """Is simt's runtime, which each extension needs, found where no module was loaded before?"""
    done = subprocess.run([sys.executable, "-c", FRESH, tmp_path], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(tmp_path / "extension.so"), done.stderr
