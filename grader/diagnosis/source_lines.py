"""Find lines of a submission by what they do: stores of a result, returns, reductions, kernels, prose."""

from __future__ import annotations

import ast
import re

from grader.diagnosis import integer_forms, kernel_forms, suspicions
from grader.diagnosis.suspicions import CONSTANT, END, FEEDS, HALVED, INPUT, RESULT, UNCHANGED
from grader.source import syntax
from grader.source.cpp import Text


def prose_lines(source: str) -> set[int]:
    """Return the lines of docstrings and imports."""
    try:
        tree = syntax.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= _lines_of(node)
        elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            found |= _lines_of(node.body[0])
    return found


def _lines_of(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def returns(source: str) -> list[int]:
    """Return the lines of ModelNew.forward that return something; its first line where none does."""
    try:
        tree = syntax.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    for cls in ast.walk(tree):
        if isinstance(cls, ast.ClassDef) and cls.name == "ModelNew":
            for method in cls.body:
                if isinstance(method, ast.FunctionDef) and method.name == "forward":
                    found = [node.lineno for node in ast.walk(method) if isinstance(node, ast.Return)]
                    return sorted(found or _lines_of(method))
    return []


def _constant_stores(source: str, stores: list[int]) -> list[int]:
    """Return the stores whose right side is the same in every thread: it has parameters and numbers alone."""
    code = source.split("\n")
    declared = {
        name
        for n in kernel_lines(source)
        for name in re.findall(r"\b(?:int|float|double|int64_t|unsigned|size_t|auto)\s+(\w+)\s*=", code[n - 1])
    }
    right = {n: code[n - 1].split("//")[0].partition("=")[2] for n in stores}
    return [
        n
        for n in stores
        if right[n].strip() and not (set(re.findall(r"\w+", right[n])) & (declared | {"threadIdx", "blockIdx"}))
    ]


def _results(source: str, stores: list[int]) -> list[int]:
    """Return the lines that allocate a tensor which a C++ function returns."""
    names = set(re.findall(r"^\s*return (\w+);", source, re.MULTILINE))
    made = re.compile(
        r"^\s*(?:static\s+|const\s+)*(?:auto|(?:torch|at)::Tensor)\s+(\w+)\s*=\s*(?:torch|at)::(?:empty|zeros|ones|full)"
    )
    return [n for n, text in enumerate(source.split("\n"), 1) if (match := made.match(text)) and match[1] in names]


def _inputs_returned(source: str, stores: list[int]) -> list[int]:
    """Return the lines on which ModelNew.forward returns one of its arguments, or a view of one."""
    found = []
    for n in returns(source):
        text = source.split("\n")[n - 1]
        arguments = (
            re.findall(r"\w+", match[1]) if (match := re.search(r"def forward\(self,\s*([^)]*)\)", source)) else []
        )
        found += (
            [n]
            if re.match(
                rf"\s*return (?:{'|'.join(arguments) or '(?!)'})"
                r"(?:\.(?:view|reshape|flatten|squeeze|unsqueeze|contiguous)\(.*\))?\s*(?:#.*)?$",
                text,
            )
            else []
        )
    return found


def _inputs_returned_unchanged(source: str, stores: list[int]) -> list[int]:
    """Return the lines on which ModelNew.forward returns an argument, or a view of one, that it assigns nowhere."""
    code = source.split("\n")
    found = []
    for n in _inputs_returned(source, stores):
        name = re.match(r"\s*return (\w+)", code[n - 1])
        if name and not re.search(rf"^\s+(?:\w+\s*,\s*)*{name[1]}\b(?:\s*,\s*\w+)*\s*=(?!=)", source, re.MULTILINE):
            found.append(n)
    return found


def _halved(source: str, stores: list[int]) -> list[int]:
    """Return a loop that halves a number of threads that is no power of two, and the line of the number."""
    code = source.split("\n")
    sizes = {
        match[1]: (int(match[2]), n)
        for n, text in enumerate(code, 1)
        if (match := re.search(r"(?:constexpr|const|#\s*define)\b.*?\b(\w+)\s*=?\s*(\d+)\s*;?\s*(?://.*)?$", text))
    }
    for n, text in enumerate(code, 1):
        loop = re.search(
            r"for\s*\(\s*(?:unsigned\s+)?\w+\s+(\w+)\s*=\s*(\w+)\s*(?:/\s*2|>>\s*1)\s*;.*(?:/=\s*2|>>=\s*1)", text
        )
        if loop and loop[2] in sizes and sizes[loop[2]][0] & (sizes[loop[2]][0] - 1):
            return [sizes[loop[2]][1], n]
    return []


MOST_FEEDING = 300  # lines: a longer list points nowhere, and takes the square of its length


def _feeding(source: str, stores: list[int]) -> list[int]:
    """Return the stores and the lines that set what they store, directly, through other variables, or in a function
    that they call.

    The nearest lines come first: those that set a variable of the stores, then those that set a variable of these, and
    so on.
    """
    text = Text(source)
    code = text.code.split("\n")
    found, known = list(stores), set()
    for n in found:  # found grows in the loop
        function = text.around(n)
        if function is None or len(found) > MOST_FEEDING:
            continue
        new = {
            name for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", code[n - 1]) if (function.name, name) not in known
        }
        known |= {(function.name, name) for name in new}
        any_of = "|".join(sorted(new)) or "(?!)"
        sets = re.compile(
            rf"(?<![\w.])(?:{any_of})\s*(?:\[[^;=]*\]\s*)?(?:[-+*/%&|^]|<<|>>)?=(?!=)|"
            rf"\batomic\w+\s*\(\s*&?\s*(?:{any_of})\b"
        )
        found += [
            k
            for k in range(text.line(function.start), text.line(function.end) + 1)
            if k not in found and sets.search(code[k - 1])
        ]
        called = [text.functions[name] for name in sorted(new & {*text.functions}) if text.functions[name].device]
        found += [
            k
            for helper in called
            for k in text.lines(helper)
            if k not in found and re.search(r"\breturn\b", code[k - 1])
        ]
    return found


_GIVES_NOT_FINITE = re.compile(
    r"exp\w*\(|log\w*\(|sqrt\w*\(|^(?!\s*(?:const\s+)?(?:int|int64_t|size_t|unsigned)\b).*[^/]/\s*\(?\s*[a-zA-Z(]"
)


def _not_finite(source: str, stores: list[int]) -> list[int]:
    """Return the lines of kernels that can give NaN or infinity; a division in an index is one of whole numbers."""
    code = source.split("\n")
    numbers = [n for n in sorted(kernel_lines(source)) or range(1, len(code) + 1) if code[n - 1].lstrip()[:1] != "#"]
    return [n for n in numbers if _GIVES_NOT_FINITE.search(re.sub(r"\[[^\[\]]*\]", "", code[n - 1].split("//")[0]))]


def _means(source: str, stores: list[int]) -> list[int]:
    """Return the lines of a file that computes a mean or a root: its sums, its divisors, its number of threads."""
    code = [text.split("//")[0] for text in source.split("\n")]
    numbers = sorted(kernel_lines(source)) or list(range(1, len(code) + 1))
    if not any(re.search(r"sqrt|variance|\bvar\b|\bmean", code[n - 1]) for n in numbers):
        return []
    threads = [n for n, text in enumerate(code, 1) if re.search(r"\bTHREADS\s*=", text)]
    found = [n for pattern in (suspicions.ADD, suspicions.ROOT) for n in numbers if re.search(pattern, code[n - 1])]
    return list(dict.fromkeys([*threads, *found]))


def _end_of_forward(source: str, stores: list[int]) -> list[int]:
    found = returns(source)
    return [] if any("return" in source.split("\n")[n - 1] for n in found) else found[-1:]


FINDERS = {
    END: _end_of_forward,
    CONSTANT: _constant_stores,
    RESULT: _results,
    INPUT: _inputs_returned,
    UNCHANGED: _inputs_returned_unchanged,
    HALVED: _halved,
    FEEDS: _feeding,
    suspicions.PATHS: kernel_forms.find_store_paths,
    suspicions.TAIL: kernel_forms.find_tail_loops,
    suspicions.ONE_EACH: kernel_forms.find_one_each,
    suspicions.UNMOVED: kernel_forms.find_unmoved_inputs,
    suspicions.FIXED_LAUNCH: kernel_forms.find_fixed_launches,
    suspicions.HALF_SUMS: kernel_forms.find_half_sums,
    suspicions.SAME_CALL: kernel_forms.find_same_calls,
    suspicions.UNREAD: kernel_forms.find_unread_results,
    suspicions.MEANS: _means,
    suspicions.NOT_FINITE: _not_finite,
    suspicions.CUT_FRACTIONS: integer_forms.find_cut_fractions,
    suspicions.NARROW_SUMS: integer_forms.find_narrow_sums,
    suspicions.UNSIGNED_BYTES: integer_forms.find_unsigned_bytes,
    suspicions.UNSIGNED_DIFFERENCES: integer_forms.find_unsigned_differences,
    suspicions.SIGNED_REMAINDERS: integer_forms.find_signed_remainders,
    suspicions.KEPT_SUMS: integer_forms.find_kept_sums,
}


def result_stores(source: str) -> list[int]:
    """Return the lines on which a kernel stores through a pointer to what is not const."""
    text = Text(source)
    return [
        line
        for kernel in text.functions.values()
        if kernel.kernel
        for line in sorted(
            {
                line
                for kind, name in kernel.parameters
                if "*" in kind and "const" not in kind.split("*")[0]
                for line in text.stores(kernel, name)
            }
        )
    ]


def kernel_lines(source: str) -> set[int]:
    """Return the lines of kernels and of functions for the GPU."""
    text = Text(source)
    return {line for one in text.functions.values() if one.kernel or one.device for line in text.lines(one)}
