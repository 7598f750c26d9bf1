"""Are nvcc's flags understood: what host code takes of them, what NVRTC takes, and what only nvcc can do?"""

import pytest

from simt.gpu.flags import pick_architecture, pick_host_flags, refuse_architectures, translate
from simt.gpu.items import NotSplit
from simt.toolchain.half_macros import TORCH_FLAGS


def test_flags_of_kernelbench():
    """Do the flags that submissions usually pass reach NVRTC by their meaning?"""
    given = ["-O3", "--use_fast_math", "-lineinfo", "-maxrregcount=64", "-DN=4", "-Xcompiler -fPIC", "-Xptxas=-v"]
    wanted = ["--use_fast_math", "-lineinfo", "--maxrregcount=64", "-DN=4", "--ptxas-options=-v"]
    assert translate(given) == [*TORCH_FLAGS, *wanted]


def test_value_as_its_own_word():
    assert translate(["-D", "N=4", "-std", "c++17", "--ptxas-options", "-O2"]) == [
        *TORCH_FLAGS,
        "-DN=4",
        "--std=c++17",
        "--ptxas-options=-O2",
    ]


def test_host_takes_macros_and_folders():
    assert pick_host_flags(["-O3", "-DA -I /x", "-U", "B", "--use_fast_math"]) == ["-DA", "-I/x", "-UB"]


@pytest.mark.parametrize("flag", ["--extended-lambda", "-dlto", "--keep"])
def test_flag_of_nvcc_alone(flag):
    with pytest.raises(NotSplit, match=flag):
        translate([flag])


@pytest.mark.parametrize("flag", ["-gencode=arch=compute_80,code=sm_80", "-arch=sm_80", "-rdc=true"])
def test_architectures_are_nvccs(flag):
    with pytest.raises(NotSplit, match=flag):
        refuse_architectures(["-O3", flag])
    refuse_architectures(["-O3", "--use_fast_math"])


def test_architecture_of_hopper():
    """Is the flag for sm_90a followed on a GPU of that capability, and left to nvcc on others?"""
    flags = ["-O3", "-gencode=arch=compute_90a,code=sm_90a"]
    assert pick_architecture(flags, "sm_90") == (["-O3"], "sm_90a")
    assert pick_architecture(["-O3"], "sm_90") == (["-O3"], "sm_90")
    assert pick_architecture(flags, "sm_100") == (flags, "sm_100")
