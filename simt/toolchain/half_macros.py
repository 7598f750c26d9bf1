"""Find the macros that hide operators and conversions of 16-bit floats in cuda_fp16.h and cuda_bf16.h."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# What torch defines for nvcc, and not for the C++ compiler of cpp_sources. The flags of the call follow.
TORCH_FLAGS: tuple[str, ...] = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
)
# What the headers of CUDA and of simt read: simt/include/simt/half.h and bfloat16.h.
_MACROS = (
    *(f"__CUDA_NO_{kind}_CONVERSIONS__" for kind in ("HALF", "BFLOAT16")),
    *(f"__CUDA_NO_{kind}_OPERATORS__" for kind in ("HALF", "HALF2", "BFLOAT16", "BFLOAT162")),
)
_MACRO = "|".join(_MACROS)
_FLAG = re.compile(rf"-(?P<what>[DU])(?P<name>{_MACRO})(?:=.*)?")
_DIRECTIVE = re.compile(rf"^[ \t]*#[ \t]*(?:(?P<what>define|undef)[ \t]+(?P<name>{_MACRO})\b|include\b)", re.MULTILINE)


def list_hiding(flags: Sequence[str]) -> tuple[str, ...]:
    """Return -D… for each of the macros that is defined after these flags of the C++ compiler, the last one of a macro
    being the one that counts.
    """
    joined = (flag + after if flag in ("-D", "-U") else flag for flag, after in zip(flags, [*flags[1:], ""]))
    last = {match["name"]: match["what"] for flag in joined if (match := _FLAG.fullmatch(flag))}
    return tuple(f"-D{name}" for name in _MACROS if last.get(name) == "D")


def read_directives(texts: Iterable[str]) -> list[str]:
    """Return the flags that mean what #define and #undef say of the macros before the first #include of each text."""
    found = []
    for text in texts:
        for match in _DIRECTIVE.finditer(text):
            if not match["what"]:
                break
            found.append(f"-{'D' if match['what'] == 'define' else 'U'}{match['name']}")
    return found


def names_half(messages: Iterable[str]) -> bool:
    """Return whether a compiler's messages name a 16-bit float of CUDA."""
    return any(re.search(r"\b(?:__half|__nv_bfloat16)2?\b", message) for message in messages)
