"""What extra_cuda_cflags, which are nvcc's, mean for the C++ compiler of the host code, and for NVRTC."""

from __future__ import annotations

import re
from collections.abc import Sequence

from simt.gpu.items import NotSplit
from simt.toolchain.half_macros import TORCH_FLAGS

# NVRTC's own options of nvcc's meaning: with a value behind "=", or alone.
_WITH_VALUE = (
    "--maxrregcount --std --fmad --ftz --prec-sqrt --prec-div --restrict --define-macro --undefine-macro".split()
)
_ALONE = (
    "--use_fast_math -use_fast_math --extra-device-vectorization -lineinfo --generate-line-info -restrict -G -dopt=on"
).split()
_SHORT = {"-maxrregcount": "--maxrregcount", "-std": "--std", "-fmad": "--fmad", "-ftz": "--ftz"}
_SHORT |= {"-prec-sqrt": "--prec-sqrt", "-prec-div": "--prec-div"}
# What changes nothing here: optimisation of host code, warnings, messages, and what NVRTC does by itself.
_NOTHING = re.compile(
    r"-O[0-3s]?|-w|-W\S*|-v|--verbose|--expt-relaxed-constexpr|-expt-relaxed-constexpr|-Xptxas=-v|--ptxas-options=-v|-diag\S*"
    r"|--resource-usage|-g|-fPIC|--threads=?\d*|-t=?\d*|-m64"
)


# The architecture with wgmma, which nvcc compiles for on request alone: it runs on GPUs of this one capability.
_HOPPER_FLAG = "-gencode=arch=compute_90a,code=sm_90a"


def pick_architecture(flags: Sequence[str], architecture: str) -> tuple[list[str], str]:
    """Return the flags without that for sm_90a, and the architecture to compile for. architecture: the GPU's own."""
    words = _split_words(flags)
    if architecture != "sm_90" or _HOPPER_FLAG not in words:
        return list(flags), architecture
    return [word for word in words if word != _HOPPER_FLAG], "sm_90a"


def refuse_architectures(flags: Sequence[str]) -> None:
    """Raise NotSplit if the flags name architectures: one is compiled for here, that of the GPU in use."""
    for flag in _split_words(flags):
        if flag.partition("=")[0] in ("-gencode", "-arch", "--generate-code", "--gpu-architecture", "-code", "-rdc"):
            raise NotSplit(f"extra_cuda_cflags has {flag}")


def pick_host_flags(flags: Sequence[str]) -> list[str]:
    """Return what the C++ compiler of the host code takes from extra_cuda_cflags: macros and folders of headers."""
    words, kept = _split_words(flags), []
    for word, following in zip(words, [*words[1:], ""]):
        if re.fullmatch(r"-[DUI].+", word):
            kept.append(word)
        elif word in ("-D", "-U", "-I"):
            kept.append(word + following)
    return kept


def translate(flags: Sequence[str]) -> list[str]:
    """Return NVRTC's options for extra_cuda_cflags. Raises NotSplit for a flag of nvcc alone."""
    # Torch also passes --expt-relaxed-constexpr, which is NVRTC's rule anyway.
    options, left = list(TORCH_FLAGS), _split_words(flags)
    while left:
        flag = left.pop(0)
        name, _, value = flag.partition("=")
        if re.fullmatch(r"-[DUI].+", flag):
            options.append(flag)
        elif flag in ("-D", "-U", "-I") and left:
            options.append(flag + left.pop(0))
        elif flag in _ALONE:
            options.append("--use_fast_math" if "fast_math" in flag else flag)
        elif _SHORT.get(name, name) in _WITH_VALUE and (value or left):
            options.append(f"{_SHORT.get(name, name)}={value or left.pop(0)}")
        elif flag in ("-Xcompiler", "--compiler-options") and left:
            left.pop(0)
        elif name in ("-Xptxas", "--ptxas-options") and (value or left):
            options.append(f"--ptxas-options={value or left.pop(0)}")
        elif not _NOTHING.fullmatch(flag) and name not in ("-Xcompiler", "--compiler-options"):
            raise NotSplit(f"extra_cuda_cflags has {flag}, which only nvcc knows")
    return options


def _split_words(flags: Sequence[str]) -> list[str]:
    return [word for flag in flags for word in flag.split()]
