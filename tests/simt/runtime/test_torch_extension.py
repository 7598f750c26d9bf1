"""Is torch's builder imported without the warning that there is no GPU, and without setuptools until it is used?"""

import inspect
import logging
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from simt.runtime.torch_extension import cpp_extension

ROOT = Path(__file__).resolve().parents[3]


def make_record(message, *values):
    return logging.makeLogRecord({"msg": message, "args": values})


def test_only_the_warning_of_a_missing_gpu_is_left_out():
    logger = logging.getLogger(cpp_extension.__name__)
    warning = "No CUDA runtime is found, using CUDA_HOME='%s'"
    assert warning in inspect.getsource(cpp_extension)
    assert not logger.filter(make_record(warning, "/usr/local/cuda"))
    assert logger.filter(make_record("TORCH_CUDA_ARCH_LIST is not set"))


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout


@pytest.mark.slow
def test_setuptools_is_imported_where_it_is_used():
    """Does the import leave setuptools out, and does torch's module find it as soon as it needs it?"""
    code = """
        import sys
        from simt.runtime.torch_extension import cpp_extension
        print("setuptools" in sys.modules)
        import torch.utils.cpp_extension
        made = cpp_extension.CppExtension("name", ["a.cpp"])
        import setuptools
        from setuptools.command.build_ext import build_ext
        print(type(made) is setuptools.Extension, issubclass(cpp_extension.BuildExtension, build_ext))
    """
    assert run(textwrap.dedent(code)).split() == ["False", "True", "True"]


@pytest.mark.slow
def test_a_torch_that_needs_setuptools_gets_it():
    """Is setuptools imported for a builder that derives a class from one of it, as older versions of torch do?"""
    code = """
        import sys, importlib.abc, importlib.util, torch.utils
        class Old(importlib.abc.MetaPathFinder, importlib.abc.Loader):
            def find_spec(self, name, path, target=None):
                return importlib.util.spec_from_loader(name, self) if name == "torch.utils.cpp_extension" else None
            def exec_module(self, module):
                exec("import setuptools\\nfrom setuptools.command.build_ext import build_ext", module.__dict__)
        sys.meta_path.insert(0, Old())
        from simt.runtime.torch_extension import cpp_extension
        import setuptools
        print(cpp_extension.setuptools is setuptools, issubclass(cpp_extension.build_ext, setuptools.Command))
    """
    assert run(textwrap.dedent(code)).split() == ["True", "True"]
