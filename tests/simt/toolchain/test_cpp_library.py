"""Does every library that simt builds use the one shared C++ library, where the compiler prefers its archive, too?"""

import os
import shutil
import subprocess
import sys

import pytest

from simt.toolchain.compilers import GCC, find_compiler

MESSAGE = """
import simt
cuda = 'void f(int64_t n) { TORCH_CHECK(n > 7, "n is ", n, ", not ", 7.5); }'
try:
    simt.load_inline("message", "void f(int64_t n);", cuda, functions=["f"]).f(3)
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(find_compiler()[2] is not GCC, reason="only GCC can be told to prefer the archive")
def test_messages_have_their_numbers(tmp_path):
    """Are the numbers of a message there? With two copies of the library torch's stream printed none, or crashed."""
    compiler = tmp_path / "g++"
    real = shutil.which(find_compiler()[0])
    compiler.write_text(
        f'#!/bin/sh\ncase " $* " in *" -shared "*) exec {real} -static-libstdc++ "$@";; esac\nexec {real} "$@"\n'
    )
    compiler.chmod(0o755)
    changed = {"CXX": str(compiler), "SIMT_CACHE": str(tmp_path / "cache")}
    ran = subprocess.run(
        [sys.executable, "-c", MESSAGE], env=os.environ | changed, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "n is 3, not 7.5\n"
