"""Which lines to look at where no line is known to be wrong: by the reason and by the pattern in which elements are wrong."""

from __future__ import annotations

import ast
import dataclasses
import re

from grader.verdict import Reason, Stage

SHOWN = 8  # lines at most


@dataclasses.dataclass(frozen=True)
class Suspicion:
    """reasons, pattern: of the verdict it fits (pattern: a part of the evidence's or of the message). words: what to look for.
    lines: patterns of lines, all of which are shown. inside: only in kernels, where there are any."""

    reasons: set[Reason]
    pattern: str
    words: str
    lines: tuple[str, ...]
    inside: bool = True


VALUES = {Reason.wrong_values, Reason.nondeterministic, Reason.schedule_dependent}
STORE = "STORE"  # a line on which a kernel stores through what it may write to
INDEX = r"\b(?:int|int64_t|unsigned|size_t|long|short|auto)\b[^=;(]*=.*(?:[%/]|Idx)|\b\w+\s*[%/]=|\bshort\b"
READ = r"=.*\w\s*\[[^\]]*[*+][^\]]*\]|\[[^\]]*\]\s*[-+*/]?=|\+=.*\["
ADD = r"\+=|\bsum\b.*=|atomicAdd|_sync\(|for\s*\(.*(?:/=\s*2|>>=\s*1)"
ROOT = r"sqrt|/\s*(?:\(float\)\s*)?\w+;|variance|mean\w*\s*="
GUARD = r"\bif\s*\("
LAUNCH = r"<<<|\bblocks\b.*=|\bgrid\b.*=|\(\w[^=]*/\s*\w+\s*[,;)]"
ALLOCATE = r"torch::(?:empty|zeros|ones|full)|\bat::empty|torch\.(?:empty|zeros)"
RETURN = "RETURN"  # a return of ModelNew.forward, or its first line where it has none

ANY = "(?:)"  # in front of a pattern: look outside kernels too

SUSPICIONS = [
    Suspicion(
        {Reason.wrong_values}, "constant in each channel",
        "What is missing, or there twice, has one value for each channel, as a bias has: where does each sum begin, and what is added before it is stored?",
        (r"\bsum\w*\s*=[^=]", r"bias\w*\s*\[", STORE),
    ),
    Suspicion(
        VALUES, "holds batch item|only batch item",
        "The batch does not come into an index as it should, or an index is too small a number for it: look at how n is made and at each index that it must be in.",
        (INDEX, READ),
    ),
    Suspicion(
        VALUES, "swapped in memory|another order|transposed",
        "Rows and columns are exchanged where an index is taken apart or put together:",
        (INDEX, STORE),
    ),
    Suspicion(
        VALUES, "wrong mean or variance|offset and a factor",
        "A mean or a variance is wrong: over which elements is the sum, by how many is it divided, and does each thread add what is its own?",
        (ANY + r"\bTHREADS\s*=", ADD, ROOT),
    ),
    Suspicion(
        VALUES, "channels? \\d|only channels?",
        "Some channels are right: look at which number picks what belongs to a channel.",
        (INDEX, STORE),
    ),
    Suspicion(
        VALUES, "last|first|rows?|columns?|from number",
        "Whole rows, columns or ends are wrong: look at the bounds, and at how the index is taken apart.",
        (GUARD, INDEX, LAUNCH, STORE), False,
    ),
    Suspicion(
        VALUES, "% of the usual size|digits",
        "Values are nearly right: look for a constant that is added twice or left out, such as eps, and for what is not the same each time.",
        (r"eps", r"rand|clock|\d\.\d+f?\b", STORE), False,
    ),
    Suspicion(
        {Reason.constant_output}, "",
        "All threads store the same value; what is stored must depend on the thread:",
        (STORE,),
    ),
    Suspicion(
        {Reason.low_precision}, "",
        "Somewhere here a value has fewer bits than a float:",
        (r"half|bfloat|bf16|fp16|__float2|tf32|0x[0-9a-fA-F]{6,}|& ~|wmma",), False,
    ),
    Suspicion(
        {Reason.low_precision, *VALUES}, "",
        "Sums and what is stored of them:",
        (ADD, STORE),
    ),
    Suspicion(
        {Reason.non_finite}, "",
        "NaN and infinity come from lines such as these:",
        (r"exp\w*\(|log\w*\(|sqrt\w*\(|[^/]/\s*\(?\s*[a-zA-Z(]|INFINITY",),
    ),
    Suspicion(
        {Reason.not_written}, "shared memory",
        "Shared memory is read before it is written: what is set first, and where do the threads wait?",
        (r"__shared__", r"__syncthreads", r"atomicAdd|\+="),
    ),
    Suspicion(
        {Reason.not_written}, "",
        "Which threads there are, and which of them store: an element is left out by the launch, by a condition, or by the index.",
        (LAUNCH, GUARD, STORE), False,
    ),
    Suspicion(
        {Reason.input_modified}, "",
        "Kernels write here; one of these pointers is an input:",
        (STORE, r"<<<|\.data_ptr<", r"\.[a-z]\w*[a-z]_\("), False,
    ),
    Suspicion(
        {Reason.output_aliases_input}, "",
        "What forward returns, and how it is made:",
        (RETURN, r"\breturn [a-z]\w*;", ALLOCATE), False,
    ),
    Suspicion(
        {Reason.output_reused}, "",
        "A tensor that is kept from call to call:",
        (r"\bstatic\b.*(?:Tensor|empty|map)", r"self\.\w+\s*(?:\[[^\]]*\]\s*)?=(?!.*nn\.)", r"cache|saved|kept", RETURN), False,
    ),
    Suspicion(
        {Reason.wrong_shape}, "",
        "The output gets its shape here:",
        (ALLOCATE, RETURN), False,
    ),
    Suspicion(
        {Reason.wrong_dtype, Reason.wrong_device}, "",
        "The output gets its dtype and device here:",
        (ALLOCATE, r"\.(?:half|to|double|float|cpu|cuda)\(", RETURN), False,
    ),
    Suspicion(
        {Reason.wrong_type}, "",
        "What forward returns:",
        (RETURN,), False,
    ),
    Suspicion(
        {Reason.missing_weights}, "",
        "ModelNew's own parameters are made here:",
        (r"self\.\w+\s*=\s*(?:torch\.)?nn\.",), False,
    ),
    Suspicion(
        {Reason.crash}, "",
        "Lines that end a program or close what is not theirs:",
        (r"\b_?exit\(|abort\(|\bkill\(|os\.close|closerange|raise SystemExit",), False,
    ),
]  # fmt: skip


def of(stage: Stage, source: str) -> tuple[str, list[int]]:
    """What to look for, and at which lines; ("", []) where nothing fits."""
    seen = " ".join(filter(None, [stage.evidence[0].pattern if stage.evidence else "", stage.message.split(";")[0]]))
    kernels, stores = kernel_lines(source), result_stores(source)
    for one in SUSPICIONS:
        if stage.reason not in one.reasons or not re.search(one.pattern, seen):
            continue
        lines = _lines(source, one, kernels, stores)
        if lines:
            return one.words, lines
    return "", []


def also(stage: Stage, source: str) -> tuple[str, list[int]]:
    """Beside the Python line that called it: the line of the C++ function that raised, or those where it may have died."""
    if stage.reason is Reason.exception:
        return "Raised in the C++ function:", _raising(source, stage.message)
    if stage.reason is Reason.crash and "segmentation fault" in stage.message:
        kernels, code = kernel_lines(source), source.split("\n")
        pointers = [n for n in range(1, len(code) + 1) if n not in kernels and POINTER.search(code[n - 1].split("//")[0])]
        return "Outside of kernels, pointers are used here:", pointers[:SHOWN]
    return "", []


POINTER = re.compile(r"\b\w+\s*\*\s*\w+\s*=|nullptr|\bNULL\b|\breinterpret_cast|data_ptr<\w+>\(\)\s*\[")


def _raising(source: str, message: str) -> list[int]:
    """Lines with a TORCH_CHECK or a throw whose words are in the message."""
    found = []
    for match in re.finditer(r"(?:TORCH_CHECK\w*|AT_ERROR|TORCH_INTERNAL_ASSERT|throw\b[^(;]*)\s*\(([^;]*)\);", source):
        words = [w for w in re.findall(r'"([^"\n]{6,})"', match[1])]
        if words and all(w.strip() in message for w in words):
            found.append(source.count("\n", 0, match.start()) + 1)
    return found[:2]


def _lines(source: str, one: Suspicion, kernels: set[int], stores: list[int]) -> list[int]:
    """The lines, what stands first in the suspicion's list before what stands later if there are too many."""
    found: list[int] = []
    code = source.split("\n")
    text = _prose(source)
    for pattern in one.lines:
        if pattern == STORE:
            hits = stores
        elif pattern == RETURN:
            hits = returns(source)
        else:
            wanted = re.compile(pattern)
            numbers = sorted(kernels) if kernels and one.inside and not pattern.startswith(ANY) else range(1, len(code) + 1)
            hits = [n for n in numbers if n not in text and wanted.search(code[n - 1].split("//")[0].split("# ")[0]) and not code[n - 1].lstrip().startswith("__global__")]
        found += [n for n in hits if n not in found]
    return sorted(found[:SHOWN])


def _prose(source: str) -> set[int]:
    """Lines of docstrings, and imports."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    found: set[int] = set()
    for node in ast.walk(tree):
        docstring = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None
        for part in [node.body[0]] if docstring else [node] if isinstance(node, (ast.Import, ast.ImportFrom)) else []:
            found |= set(range(part.lineno, part.end_lineno + 1))
    return found


def returns(source: str) -> list[int]:
    """Lines of ModelNew.forward that return something; its first line where none does."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    for cls in ast.walk(tree):
        if isinstance(cls, ast.ClassDef) and cls.name == "ModelNew":
            for method in cls.body:
                if isinstance(method, ast.FunctionDef) and method.name == "forward":
                    found = [node.lineno for node in ast.walk(method) if isinstance(node, ast.Return)]
                    return sorted(found) or list(range(method.lineno, method.end_lineno + 1))
    return []


KERNEL = re.compile(r"__global__\s+void\s+(?:__\w+__\s*\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)\s*\{+", re.DOTALL)


def result_stores(source: str) -> list[int]:
    """Lines on which a kernel writes through a pointer that it may write to."""
    found = []
    for kernel in KERNEL.finditer(source):
        names = [re.search(r"(\w+)\s*$", p)[1] for p in kernel[2].split(",") if "*" in p and "const" not in p.split("*")[0] and re.search(r"(\w+)\s*$", p)]
        if not names:
            continue
        store = re.compile(rf"(?<![\w.])(?:{'|'.join(names)})\s*\[[^;=]*\]\s*[-+*/]?=(?!=)|atomic\w+\s*\(\s*&?\s*(?:{'|'.join(names)})\b")
        body = source[kernel.end() : _end(source, kernel.end())]
        begun = source.count("\n", 0, kernel.end()) + 1
        found += [begun + number for number, line in enumerate(body.split("\n")) if store.search(line.split("//")[0])]
    return found


def kernel_lines(source: str) -> set[int]:
    """Lines of kernels and of functions for the GPU."""
    found: set[int] = set()
    for kernel in re.finditer(r"__(?:global|device)__[^;{}()]*\([^)]*\)\s*\{", source):
        first, last = source.count("\n", 0, kernel.start()) + 1, source.count("\n", 0, _end(source, kernel.end())) + 1
        found |= set(range(first, last + 1))
    return found


def _end(source: str, at: int) -> int:
    """Where the { before `at` is closed."""
    depth = 1
    for place in range(at, len(source)):
        depth += (source[place] == "{") - (source[place] == "}")
        if depth == 0:
            return place
    return len(source)
