"""Which lines to look at where no line is known to be wrong: by the reason and by the pattern in which elements are wrong."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable

from grader import places, syntax
from grader.cpp import Text
from grader.verdict import Reason, Stage, StageName, Status

SHOWN = 8  # lines at most


@dataclasses.dataclass(frozen=True)
class Suspicion:
    """reasons, pattern: of the verdict it fits (pattern: a part of the evidence's or of the message). words: what to look for.
    lines: patterns of lines, all of which are shown. inside: only in kernels, where there are any. when: what else must hold of the stage.
    sure: these lines are wrong, not only to be looked at."""

    reasons: set[Reason]
    pattern: str
    words: str
    lines: tuple[str, ...]
    inside: bool = True
    when: Callable[[Stage], bool] = lambda stage: True
    sure: bool = False


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

APPLY = r"\.apply\(|def backward\(|return.*\bNone\b"  # where autograd is told of a kernel, and what it is told

CONSTANT = "CONSTANT"  # a line on which a kernel stores what depends on no variable of the thread's
RESULT = "RESULT"  # where the variable is made that a C++ function returns
INPUT = "INPUT"  # a return of ModelNew.forward that hands back an argument
END = "END"  # the last line of ModelNew.forward, where that returns nothing
FEEDS = "FEEDS"  # stores, and the lines on which variables are set that go into what is stored, the nearest first
HALVED = "HALVED"  # a loop that halves a number of threads that is no power of two, and that number


def _only_wrong(part: str) -> Callable[[Stage], bool]:
    """Whether all failing cases have this in their name."""
    return lambda stage: bool(stage.cases) and all(part in case.name for case in stage.cases if case.status is Status.failed)


def _right(name: str) -> Callable[[Stage], bool]:
    return lambda stage: any(case.name == name and case.status is Status.passed for case in stage.cases)


def _drops_nan(stage: Stage) -> bool:
    return "expected NaN, got " in stage.message


SUSPICIONS = [
    Suspicion(
        VALUES | {Reason.constant_output}, "",
        "What is not the same each time, or is drawn by chance:",
        (ANY + r"^(?!.*(?:nn\.|self\.\w+\s*=)).*\b(?:rand\w*\s*\(|curand|clock\w*\()",), False, sure=True,
    ),
    Suspicion(
        VALUES, "",
        "This loop halves a number of threads that is no power of two: where a half is odd, one thread is left over, and its value is lost.",
        (HALVED,), sure=True,
    ),
    Suspicion(
        VALUES, "",
        "Where the mean is large, two large numbers are subtracted here that are nearly equal: what is left is their rounding error.",
        (r"=[^;=]*-\s*(\w+)\s*\*\s*\1\s*[;,)]",), when=_only_wrong("large mean"), sure=True,
    ),
    Suspicion(
        VALUES, "wrong mean or variance",
        "With one pixel a channel all is right, with more it is not: these sums take in too few elements.",
        (r"\w+\s*\+=.*\[",), when=_right("one pixel"), sure=True,
    ),
    Suspicion(
        {Reason.missing_gradient}, "",
        "What forward hands to autograd, and what backward returns:",
        (APPLY, RETURN), False,
    ),
    Suspicion(
        {Reason.wrong_gradient}, "batch item's part",
        "The parts of the batch do not come together: where does each sum begin, and which loop goes over n?",
        (r"=\s*0(?:\.0f?)?\s*[,;]", r"for\s*\(.*\b[nN]\b", r"\+="),
    ),
    Suspicion(
        {Reason.wrong_gradient}, "swapped|another order|transposed",
        "Rows and columns are exchanged where an index is taken apart or put together:",
        (INDEX, STORE),
    ),
    Suspicion(
        {Reason.wrong_gradient}, "",
        "Sums of backward, and what it stores of them:",
        (STORE, ADD),
    ),
    Suspicion(
        {Reason.gradient_shape, Reason.backward_exception}, "",
        "What backward returns is made here:",
        (r"torch::(?:empty|zeros)", r"return \{", r"def (?:forward\(ctx|backward)", r"^\s*return .*(?:\w*backward\w*\(|\bg\w*\s*,|\w*grad\w*)"), False,
    ),
    Suspicion(
        {Reason.backward_modified}, "",
        "Kernels write here; one of these pointers is not backward's own:",
        (STORE, r"torch::(?:empty|zeros)", r"(?:auto|Tensor) \w+ = \w+;"), False,
    ),
    Suspicion(
        {Reason.saved_overwritten}, "",
        "What is kept from forward to backward, and where backward looks for it:",
        (r"\b(?:self|[A-Z]\w+)\.\w+(?:\[[^\]]*\])?\s*=(?!=)(?!.*nn\.)|=\s*(?:self|[A-Z]\w+)\.\w+\s*$", r"\bstatic\b.*Tensor", r"saved_tensors|save_for_backward"), False,
    ),
    Suspicion(
        {Reason.noncontiguous_gradient}, "",
        "Here backward is handed its tensors, or reads them as if they lay in one piece:",
        (r"contiguous\(\)", r"\bg\w*\.data_ptr", r"def backward|Tensor \w*backward\w*\("), False,
    ),
    Suspicion(
        {Reason.nondeterministic_gradient}, "",
        "Sums without a fixed order:",
        (r"atomic\w+\(|rand|clock",),
    ),
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
        "What is stored here does not depend on the thread:",
        (CONSTANT,), sure=True,
    ),
    Suspicion(
        {Reason.constant_output}, "",
        "All threads store the same value; what is stored must depend on the thread:",
        (STORE,),
    ),
    Suspicion(
        {Reason.low_precision}, "",
        "Here a value has fewer bits than a float:",
        (r"^(?!\s*#\s*include).*(?:half|bfloat|bf16|fp16|__float2|tf32|& 0x[0-9a-fA-F]{6,}|& ~|wmma)",), False, sure=True,
    ),
    Suspicion(
        VALUES, "",
        "Where one of two values is NaN, these give the other one:",
        (r"\b(?:fmax|fmin|max|min)f?\s*\(",), when=_drops_nan,
    ),
    Suspicion(
        {Reason.low_precision, *VALUES}, "",
        "What is stored, and what goes into it:",
        (FEEDS,),
    ),
    Suspicion(
        {Reason.low_precision, *VALUES}, "",
        "Sums and what is stored of them:",
        (ADD, STORE),
    ),
    Suspicion(
        {Reason.non_finite}, "",
        "NaN and infinity come from lines such as these:",
        (r"exp\w*\(|log\w*\(|sqrt\w*\(|^(?!\s*(?:const\s+)?(?:int|int64_t|size_t|unsigned)\b).*[^/]/\s*\(?\s*[a-zA-Z(]",),
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
        "This is no new tensor but another name for an input, and the kernel writes to it:",
        (r"^\s*(?:auto|(?:torch|at)::Tensor)&?\s+\w+\s*=\s*\w+\s*;",), False, sure=True,
    ),
    Suspicion(
        {Reason.input_modified}, "",
        "Kernels write here; one of these pointers is an input:",
        (STORE, r"<<<|\.data_ptr<", r"\.[a-z]\w*[a-z]_\("), False,
    ),
    Suspicion(
        {Reason.output_aliases_input}, "",
        "forward hands back what it was given:",
        (INPUT,), False, sure=True,
    ),
    Suspicion(
        {Reason.output_aliases_input}, "",
        "What forward returns, and how it is made:",
        (RETURN, r"\breturn [a-z]\w*;", ALLOCATE), False,
    ),
    Suspicion(
        {Reason.output_reused}, "",
        "This tensor is made once and kept from call to call:",
        (r"\bstatic\b.*(?:Tensor|empty|map)",), False, sure=True,
    ),
    Suspicion(
        {Reason.output_reused}, "",
        "A result is kept here, and handed out again:",
        (r"self\.\w+\s*\[[^\]]*\]\s*=(?!=)|return self\.\w+",), False, sure=True,
    ),
    Suspicion(
        {Reason.output_reused}, "",
        "A tensor that is kept from call to call:",
        (r"\bstatic\b.*(?:Tensor|empty|map)", r"self\.\w+\s*(?:\[[^\]]*\]\s*)?=(?!.*nn\.)", r"cache|saved|kept", RETURN), False,
    ),
    Suspicion(
        {Reason.wrong_shape}, "",
        "The output gets its shape here:",
        (RESULT,), False,
    ),
    Suspicion(
        {Reason.wrong_shape}, "",
        "The output gets its shape here:",
        (ALLOCATE, RETURN), False,
    ),
    Suspicion(
        {Reason.wrong_dtype, Reason.wrong_device}, "",
        "Here a tensor is converted, or made, with another dtype or on another device:",
        (r"\.(?:half|bfloat16|double|int|long|cpu)\(\)|\.to\(|kHalf|kDouble|kBFloat16|float16|float64|bfloat16",), False, sure=True,
    ),
    Suspicion(
        {Reason.wrong_dtype, Reason.wrong_device}, "",
        "The output gets its dtype and device here:",
        (ALLOCATE, r"\.(?:half|to|double|float|cpu|cuda)\(", RETURN), False,
    ),
    Suspicion(
        {Reason.wrong_type}, "nothing \\(None\\)",
        "Here forward ends, and returns nothing:",
        (END,), False, sure=True,
    ),
    Suspicion(
        {Reason.wrong_type}, "",
        "What forward returns:",
        (RETURN,), False,
    ),
    Suspicion(
        {Reason.missing_weights}, "",
        "ModelNew's own parameters are made here:",
        (r"self\.\w+\s*=\s*(?:torch\.)?nn\.",), False, sure=True,
    ),
    Suspicion(
        {Reason.crash}, "",
        "Lines that end a program or close what is not theirs:",
        (r"\b_?exit\(|abort\(|\bkill\(|os\.close|closerange|raise SystemExit",), False, sure=True,
    ),
]  # fmt: skip

SURE = {one.words for one in SUSPICIONS if one.sure}
GUESSED = {*VALUES, Reason.wrong_gradient, Reason.non_finite, Reason.not_written, Reason.low_precision, Reason.constant_output}


def of(stage: Stage, source: str, given: frozenset[int] | set[int] = frozenset()) -> tuple[str, list[int]]:
    """What to look for, and at which lines; ("", []) where nothing fits.

    given: lines that a student has from the exercise: they are suspect only where no other line is.
    """
    seen = " ".join(filter(None, [stage.evidence[0].pattern if stage.evidence else "", stage.message.split(";")[0]]))
    kernels, stores = kernel_lines(source), result_stores(source)
    if stage.name is StageName.gradient and (there := backward_lines(source)):
        kernels, stores = there, [line for line in stores if line in there]
    fitting = [one for one in SUSPICIONS if stage.reason in one.reasons and re.search(one.pattern, seen) and one.when(stage)]
    for without in (given, frozenset()) if given else (given,):
        for one in fitting:
            lines = _lines(source, one, kernels, stores, frozenset() if one.sure else without)
            if lines and not without.issuperset(lines):
                return one.words, lines
    return "", []


def accused(stage: Stage, words: str, lines: list[int]) -> bool:
    """Whether these lines are said to be wrong, not only to be looked at: the source shows it, or what failed is made in this line alone."""
    return words in SURE or (len(lines) == 1 and stage.reason not in GUESSED)


def also(stage: Stage, source: str) -> tuple[str, list[int]]:
    """Beside the Python line that called it: the line of the C++ function that raised, or those where it may have died."""
    if stage.reason is Reason.exception:
        return "Raised in the C++ function:", _raising(source, stage.message)
    if stage.reason is Reason.crash and "segmentation fault" in stage.message:
        if places.of(stage, source, None):
            return "", []
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


def _lines(source: str, one: Suspicion, kernels: set[int], stores: list[int], without: frozenset[int] | set[int] = frozenset()) -> list[int]:
    """The lines but those to do without, what stands first in the suspicion's list before what stands later if there are too many."""
    found: list[int] = []
    code = source.split("\n")
    text = _prose(source)
    for pattern in one.lines:
        if pattern == STORE:
            hits = stores
        elif pattern == RETURN:
            hits = returns(source)
        elif pattern in FINDERS:
            hits = FINDERS[pattern](source, stores)
        else:
            wanted = re.compile(pattern)
            numbers = sorted(kernels) if kernels and one.inside and not pattern.startswith(ANY) else range(1, len(code) + 1)
            hits = [n for n in numbers if n not in text and wanted.search(code[n - 1].split("//")[0].split("# ")[0]) and not code[n - 1].lstrip().startswith("__global__")]
        found += [n for n in hits if n not in found and n not in without]
    return sorted(found[:SHOWN])


def _prose(source: str) -> set[int]:
    """Lines of docstrings, and imports."""
    try:
        tree = syntax.parse(source)
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
        tree = syntax.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    for cls in ast.walk(tree):
        if isinstance(cls, ast.ClassDef) and cls.name == "ModelNew":
            for method in cls.body:
                if isinstance(method, ast.FunctionDef) and method.name == "forward":
                    found = [node.lineno for node in ast.walk(method) if isinstance(node, ast.Return)]
                    return sorted(found) or list(range(method.lineno, method.end_lineno + 1))
    return []


def _constant_stores(source: str, stores: list[int]) -> list[int]:
    """Stores whose right side names nothing that is a thread's own: parameters and numbers alone."""
    code = source.split("\n")
    declared = {name for n in kernel_lines(source) for name in re.findall(r"\b(?:int|float|double|int64_t|unsigned|size_t|auto)\s+(\w+)\s*=", code[n - 1])}
    right = {n: code[n - 1].split("//")[0].partition("=")[2] for n in stores}
    return [n for n in stores if right[n].strip() and not (set(re.findall(r"\w+", right[n])) & (declared | {"threadIdx", "blockIdx"}))]


def _results(source: str, stores: list[int]) -> list[int]:
    """Where the tensor is allocated that a C++ function returns."""
    names = set(re.findall(r"^\s*return (\w+);", source, re.MULTILINE))
    made = re.compile(r"^\s*(?:static\s+|const\s+)*(?:auto|(?:torch|at)::Tensor)\s+(\w+)\s*=\s*(?:torch|at)::(?:empty|zeros|ones|full)")
    return [n for n, text in enumerate(source.split("\n"), 1) if (match := made.match(text)) and match[1] in names]


def _inputs_returned(source: str, stores: list[int]) -> list[int]:
    """Returns of ModelNew.forward that are one of its arguments, or a view of one."""
    found = []
    for n in returns(source):
        text = source.split("\n")[n - 1]
        arguments = re.findall(r"\w+", match[1]) if (match := re.search(r"def forward\(self,\s*([^)]*)\)", source)) else []
        found += [n] if re.match(rf"\s*return (?:{'|'.join(arguments) or '(?!)'})(?:\.(?:view|reshape|flatten|squeeze|unsqueeze|contiguous)\(.*\))?\s*(?:#.*)?$", text) else []
    return found


def _halved(source: str, stores: list[int]) -> list[int]:
    """A loop that halves a number of threads that is no power of two, and the line that says the number."""
    code = source.split("\n")
    sizes = {match[1]: (int(match[2]), n) for n, text in enumerate(code, 1) if (match := re.search(r"(?:constexpr|const|#\s*define)\b.*?\b(\w+)\s*=?\s*(\d+)\s*;?\s*(?://.*)?$", text))}
    for n, text in enumerate(code, 1):
        loop = re.search(r"for\s*\(\s*(?:unsigned\s+)?\w+\s+(\w+)\s*=\s*(\w+)\s*(?:/\s*2|>>\s*1)\s*;.*(?:/=\s*2|>>=\s*1)", text)
        if loop and loop[2] in sizes and sizes[loop[2]][0] & (sizes[loop[2]][0] - 1):
            return [sizes[loop[2]][1], n]
    return []


def _feeding(source: str, stores: list[int]) -> list[int]:
    """The stores, then the lines of their functions that set a variable named in them, then those that set one named in these, and so on."""
    text = Text(source)
    code = text.code.split("\n")
    found, known = list(stores), set()
    for n in found:  # which grows on the way
        function = text.around(n)
        if function is None:
            continue
        new = {name for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", code[n - 1]) if (function.name, name) not in known}
        known |= {(function.name, name) for name in new}
        sets = re.compile(rf"(?<![\w.])(?:{'|'.join(sorted(new)) or '(?!)'})\s*(?:\[[^;=]*\]\s*)?(?:[-+*/%&|^]|<<|>>)?=(?!=)")
        found += [k for k in range(text.line(function.start), text.line(function.end) + 1) if k not in found and sets.search(code[k - 1])]
    return found


def _end_of_forward(source: str, stores: list[int]) -> list[int]:
    found = returns(source)
    return [] if any("return" in source.split("\n")[n - 1] for n in found) else found[-1:]


FINDERS = {END: _end_of_forward, CONSTANT: _constant_stores, RESULT: _results, INPUT: _inputs_returned, HALVED: _halved, FEEDS: _feeding}


KERNEL = re.compile(r"__global__\s+void\s+(?:__\w+__\s*\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)\s*\{+", re.DOTALL)


GRADIENT = re.compile(r"\w*grad\w*|[gd]_?(?:[a-z]|out|in|weight|bias|scale|gamma|beta|input|output)\d?")  # what the gradient of something is called


def backward_lines(source: str) -> set[int]:
    """Lines of the kernels that are handed a gradient, by their own name or a pointer's; none where names do not tell."""
    found: set[int] = set()
    for kernel in KERNEL.finditer(source):
        pointers = [name for p in kernel[2].split(",") if "*" in p and (name := re.search(r"(\w+)\s*$", p))]
        if re.search(r"grad|backward|bwd", kernel[1], re.IGNORECASE) or any(GRADIENT.fullmatch(name[1]) for name in pointers):
            first, last = source.count("\n", 0, kernel.start()) + 1, source.count("\n", 0, _end(source, kernel.end())) + 1
            found |= set(range(first, last + 1))
    return found


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
