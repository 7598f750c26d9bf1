"""Find the kernels of a backward pass, and among them those that make one gradient."""

from __future__ import annotations

import ast
import re

from grader.diagnosis.gradient_shapes import trace_gradient
from grader.source import syntax
from grader.source.autograd import Student
from grader.source.cpp import Function, Text

DEPTH = 3  # C++ functions that call each other
# names of gradients: grad_x, gx, dweight, …
GRADIENT = re.compile(r"\w*grad\w*|[gd]_?(?:[a-z]|out|in|weight|bias|scale|gamma|beta|input|output)\d?")
KEYWORDS = {"do"}


def backward_lines(source: str) -> set[int]:
    """Return the lines of the kernels of backward, which their launches, their own name or that of a pointer shows."""
    text = Text(source)
    return _lines_of(text, find_kernels(text, _read_student(source, text)))


def gradient_lines(source: str, gradient: str | None) -> set[int]:
    """Return the lines of the kernels that make the gradient of an input or a weight, by its name, and of those that
    make what these read; none if the text does not tell them from the other kernels of backward.
    """
    text = Text(source)
    student = _read_student(source, text)
    if student is None or not gradient:
        return set()
    kernels = find_kernels(text, student)
    names = set(trace_gradient(student, gradient))
    makers = [kernel for kernel in kernels if _makes(text, kernel, names)]
    if not makers:
        return set()
    for _ in kernels:  # each round adds the kernels that write what those of the round before are given
        read = {name for maker in makers for argument in _list_arguments(text, maker) for name in argument}
        makers += [
            kernel
            for kernel in kernels
            if kernel not in makers and any(name in read for name in _list_written(text, kernel))
        ]
    return _lines_of(text, makers) if len(makers) < len(kernels) else set()


def find_kernels(text: Text, student: Student | None) -> list[Function]:
    """Return the kernels that backward launches and forward does not; where there are none, those with the name of a
    backward pass, or with a pointer to a gradient.
    """
    if student is not None:
        behind = {name for own in student.owns for name in _list_launched(student, own.backward)}
        forward = {name for own in student.owns for name in _list_launched(student, own.forward)}
        if found := [kernel for name in sorted(behind - forward) if (kernel := text.functions[name])]:
            return found
    return [kernel for kernel in text.functions.values() if kernel.kernel and _is_named_so(kernel)]


def _read_student(source: str, text: Text) -> Student | None:
    try:
        return Student(syntax.parse(source), text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _lines_of(text: Text, kernels: list[Function]) -> set[int]:
    return {line for kernel in kernels for line in text.lines(kernel)}


def _is_named_so(kernel: Function) -> bool:
    pointers = [name for kind, name in kernel.parameters if "*" in kind]
    if re.search(r"grad|backward|bwd", kernel.name, re.IGNORECASE):
        return True
    return any(GRADIENT.fullmatch(name) and name not in KEYWORDS for name in pointers)


def _list_launched(student: Student, method: ast.FunctionDef) -> set[str]:
    """Return the names of the kernels launched by the C++ functions that a method calls, directly or through others."""
    text, found = student.text, set()
    called = [function for node in ast.walk(method) if (function := student.called(node)) is not None]
    seen: set[str] = set()
    for _ in range(DEPTH):
        seen |= {function.name for function in called}
        found |= {launch.kernel for function in called for launch in text.launches(function)}
        called = [other for function in called for other in _list_called(text, function) if other.name not in seen]
    return {name for name in found if (function := text.functions.get(name)) is not None and function.kernel}


def _list_called(text: Text, function: Function) -> list[Function]:
    """Return the host functions of the file that a function calls."""
    names = {match[1] for match in text.find(r"(?<![\w.])([A-Za-z_]\w*)\s*(?:<[^<>;{}()]*>)?\s*\(", function)}
    return [
        other
        for name in sorted(names)
        if (other := text.functions.get(name)) is not None and not (other.kernel or other.device)
    ]


def _makes(text: Text, kernel: Function, names: set[str]) -> bool:
    """Return whether a kernel writes to one of these tensors, through a pointer of its own or of a struct."""
    if any(text.find(rf"(?:\.|->)\s*{name}\b", kernel) for name in names):
        return True
    return not _list_written(text, kernel).isdisjoint(names)


def _list_written(text: Text, kernel: Function) -> set[str]:
    """Return the tensors and pointers that launches hand to a kernel and that it writes to."""
    pointers = [name for kind, name in kernel.parameters if "*" in kind and "const" not in kind.split()]
    written = {name for name in pointers if text.stores(kernel, name) or text.find(rf"\(\s*{name}\b\s*\+", kernel)}
    arguments = zip(kernel.names, _list_arguments(text, kernel))
    return {name for parameter, names in arguments if parameter in written for name in names}


def _list_arguments(text: Text, kernel: Function) -> list[set[str]]:
    """Return the names in each argument of a kernel's launches."""
    found: list[set[str]] = [set() for _ in kernel.parameters]
    for function in text.functions.values():
        for launch in text.launches(function):
            for names, (argument, _) in zip(found, launch.arguments if launch.kernel == kernel.name else ()):
                names |= set(re.findall(r"(?<![\w.:])[A-Za-z_]\w*(?!\s*[\w:(])", re.sub(r"<[^<>]*>", "", argument)))
    return found
