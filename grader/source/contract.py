"""Checks a submission's file without running it, and maps lines of its CUDA strings to lines of the file."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import errno
import functools
import hashlib
import os
import stat
from pathlib import Path

from grader.source import syntax
from grader.verdict import Evidence, Reason

MAX_BYTES = 256 << 10  # the course's longest file has 160 KiB; parsing takes seconds a MiB
TOO_LARGE = f"it is larger than {MAX_BYTES >> 10} KiB"
MAX_CONSTANTS = 1000  # string constants of a file, the longest ones, among which a compiled string is looked for


@dataclasses.dataclass(frozen=True)
class Broken:
    """Why a file is not a submission: the reason, a sentence, and the place."""

    reason: Reason
    message: str
    evidence: Evidence | None = None


@dataclasses.dataclass(frozen=True)
class Source:
    """A submission's file as it was read: all later steps use this, even if the file changes.

    data: the file's bytes, by default those of the text.
    """

    path: Path
    text: str
    sha256: str
    data: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", self.data or self.text.encode("utf-8", "surrogatepass"))

    def line(self, number: int | None) -> str:
        """Return the text of a line, counted from 1; empty if there is no such line."""
        return self.lines[number - 1].strip() if number and 0 < number <= len(self.lines) else ""

    @functools.cached_property
    def lines(self) -> list[str]:
        """Return the text's lines."""
        return syntax.split_lines(self.text)


@dataclasses.dataclass(frozen=True)
class Signature:
    """A method's parameters besides self: names in order, how many are required, *args, required keywords."""

    names: list[str]
    required: int
    star: bool
    keywords: list[str]

    def __str__(self) -> str:
        shown = self.names + (["*args"] if self.star else []) + [f"*, {name}" for name in self.keywords]
        return f"({', '.join(shown)})"


@dataclasses.dataclass(frozen=True)
class Constant:
    """A string constant of the file, and its first and last line."""

    text: str
    first: int
    last: int


# --- reading ---------------------------------------------------------------------------------------------------------


def code_digest(text: str) -> str:
    """Return 12 hex digits that identify a Python file's code, the same on every version of Python; its docstring does
    not count. Raises SyntaxError, or ValueError for null characters.
    """
    first, *_ = ast.parse(text).body or [None]
    lines = syntax.split_lines(text)
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        del lines[first.lineno - 1 : first.end_lineno]
    return hashlib.sha256("\n".join(lines).strip().encode()).hexdigest()[:12]


def read(path: Path, folder: Path | None = None) -> tuple[Source, Broken | None]:
    """Return the file's text and hash, and why it cannot be read as text, or None. It is read once, for both.

    folder: a folder of many hands, below which no link is followed; None where the file's own name may be one.
    """
    try:
        data = read_bytes(path, folder)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return Source(path, "", ""), Broken(Reason.unreadable, f"{path} cannot be read: {why[:1].lower()}{why[1:]}.")
    digest = hashlib.sha256(data).hexdigest()
    try:
        return Source(path, data.decode("utf-8-sig"), digest, data), None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"{path.name} is not UTF-8 text (line {line}). Save it as UTF-8."
        return Source(path, "", digest), Broken(Reason.unreadable, message, Evidence(line=line))


def read_bytes(path: Path, folder: Path | None) -> bytes:
    """Return the file's content. Raises OSError for a folder, a pipe or a device, and for a file that is too large."""
    # returns at once for a pipe too
    descriptor = _open_without_links(path, folder) if folder else os.open(path, READ)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(21, "it is a folder")
        if not stat.S_ISREG(status.st_mode):
            raise OSError(22, "it is a pipe or a device, not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1) if status.st_size <= MAX_BYTES else None
    finally:
        os.close(descriptor)
    if data is None or len(data) > MAX_BYTES:
        raise OSError(27, TOO_LARGE)
    return data


READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def _open_without_links(path: Path, folder: Path) -> int:
    """Open a file in a folder, one name after the other. Raises OSError where one of the names is a link."""
    names = Path(os.path.abspath(path)).relative_to(os.path.abspath(folder)).parts
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for number, name in enumerate(names, 1):
        try:
            if stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                raise OSError(errno.ELOOP, _explain_link(name, number == len(names)))
            kind = READ if number == len(names) else os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            inner = os.open(name, kind | os.O_NOFOLLOW, dir_fd=here)
        except OSError as error:
            if error.errno == errno.ELOOP and error.strerror == os.strerror(errno.ELOOP):  # it became one just now
                raise OSError(errno.ELOOP, _explain_link(name, number == len(names))) from None
            raise
        finally:
            os.close(here)
        here = inner
    return here


def _explain_link(name: str, is_file: bool) -> str:
    what = "it is a symbolic link" if is_file else f"its folder {name} is a symbolic link"
    return f"{what}, and none is followed where several submissions are graded: name the file that it leads to"


IN_F_STRING = (
    " In an f-string, Python evaluates what stands between { and }. Write {{ and }} for the braces of CUDA code, or "
    "remove the f."
)


def parse(source: Source) -> tuple[ast.Module | None, Broken | None]:
    """Return the syntax tree, or why there is none."""
    if _is_notebook(source.text):
        message = (
            f"{source.path.name} is a notebook. Put the code of its ModelNew, with imports and CUDA source, into a .py "
            "file and submit that."
        )
        return None, Broken(Reason.no_model_new, message)
    try:
        tree = syntax.parse(source.text, str(source.path))
    except SyntaxError as error:
        line = error.lineno or None
        what = error.msg.rstrip(".?!")  # some end in a question
        message = f"Python cannot parse line {line}: {what}." if line else f"Python cannot parse the file: {what}."
        if what.startswith("f-string"):
            message += IN_F_STRING
        return None, Broken(Reason.syntax_error, message, Evidence(line=line, text=source.line(line) or None))
    except (RecursionError, MemoryError):  # the parser's stack; the latter has no text
        return None, Broken(Reason.syntax_error, "Python cannot parse the file: an expression is nested too deeply.")
    except ValueError as error:
        return None, Broken(Reason.syntax_error, f"Python cannot parse the file: {error}.")
    if not [node for node in tree.body if not _is_string(node)]:
        return None, Broken(Reason.empty_file, f"{source.path.name} contains no code.")
    return tree, None


def _is_notebook(text: str) -> bool:
    """Return whether a file is a Jupyter notebook, which Python may parse as a dict."""
    return text.lstrip().startswith("{") and all(f'"{key}"' in text for key in ("cells", "nbformat"))


def _is_string(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


# --- ModelNew --------------------------------------------------------------------------------------------------------


def check(tree: ast.Module, problem: ast.Module, name: str) -> Broken | None:
    """Return why the file's ModelNew cannot replace the problem's Model, or None. name: the file's, for messages."""
    classes = _classes(tree)
    if "ModelNew" not in classes:
        return None if _binds(tree, "ModelNew") or _defines(tree, "ModelNew") else _no_model_new(classes, name)
    mine, theirs = classes["ModelNew"], _classes(problem).get("Model")
    if not (_is_callable(mine, classes) or _binds_otherwise(tree, "__call__")):
        message = "ModelNew is not a torch.nn.Module: write `class ModelNew(nn.Module):`."
        return Broken(Reason.bad_signature, message, Evidence(line=mine.lineno))
    for method in ("__init__", "forward"):
        if _binds_otherwise(tree, method):
            continue
        wanted = _signature(theirs, method, _classes(problem)) if theirs else None
        have = _signature(mine, method, classes)
        if have is None and method == "forward" and _known_bases(mine, classes):
            message = "ModelNew has no method forward."
            return Broken(Reason.bad_signature, message, Evidence(line=mine.lineno))
        mismatch = _describe_mismatch(wanted, have) if wanted and have else ""
        if mismatch:
            message = f"ModelNew.{method} takes {have}, but Model.{method} takes {wanted}: {mismatch}."
            return Broken(Reason.bad_signature, message, Evidence(line=_line_of(mine, method)))
    return None


def _classes(tree: ast.Module) -> dict[str, ast.ClassDef]:
    """Return the module's classes by name, except those inside functions and classes."""
    found = {}
    waiting: list[ast.AST] = list(reversed(tree.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.ExceptHandler)):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))
    return found


def _binds(tree: ast.Module, name: str) -> bool:
    """Return whether the name is assigned or imported somewhere: then only running the file tells what it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.alias) and (node.asname or node.name) == name:
            return True
    return False


def _defines(tree: ast.Module, name: str) -> bool:
    """Return whether the module, or a branch of it, defines a function of this name."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return True
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                waiting.append(node)
    return False


def _binds_otherwise(tree: ast.Module, method: str) -> bool:
    """Return whether some class gets the method in another way than by a def in its body: then only running the file
    tells what it takes.
    """
    for node in ast.walk(tree):
        # ModelNew.forward = run
        if isinstance(node, ast.Attribute) and node.attr == method and isinstance(node.ctx, ast.Store):
            return True
        if (
            isinstance(node, ast.Call)
            and _base_name(node.func) == "setattr"
            and any(isinstance(argument, ast.Constant) and argument.value == method for argument in node.args)
        ):
            return True
        if isinstance(node, ast.ClassDef):
            inside = [
                one for one in node.body if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            ]
            body = ast.Module(inside, [])
            if _binds(body, method) or any(
                isinstance(one, ast.FunctionDef) and one.name == method for one in ast.walk(body)
            ):
                return True
    return False


def _no_model_new(classes: dict[str, ast.ClassDef], name: str) -> Broken:
    near = difflib.get_close_matches("ModelNew", classes, n=1, cutoff=0.5)
    hint = f": rename the class {near[0]}" if near else ""
    evidence = Evidence(line=classes[near[0]].lineno) if near else None
    return Broken(Reason.no_model_new, f"{name} has no class named ModelNew{hint}.", evidence)


def _method(cls: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == name), None)


def _line_of(cls: ast.ClassDef, method: str) -> int:
    node = _method(cls, method)
    return node.lineno if node else cls.lineno


def _base_name(base: ast.expr) -> str:
    return base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""


def _is_callable(cls: ast.ClassDef, classes: dict[str, ast.ClassDef], depth: int = 0) -> bool:
    """Return whether an instance can be called, as a Module can, as far as the file tells: a class from elsewhere, or
    one that a decorator or a metaclass makes, may be callable.
    """
    if cls.decorator_list or cls.keywords or _method(cls, "__call__") or depth >= 10:
        return True
    for base in cls.bases:
        parent = classes.get(_base_name(base))
        if _base_name(base) != "object" and (
            parent is None or parent is cls or _is_callable(parent, classes, depth + 1)
        ):
            return True
    return False


def _known_bases(cls: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    """Return whether every base class is in the file or is nn.Module, so that no method comes from elsewhere."""
    return all(
        _base_name(base) in ("Module", "object")
        or (_base_name(base) in classes and classes[_base_name(base)] is not cls)
        for base in cls.bases
    )


def _signature(cls: ast.ClassDef, method: str, classes: dict[str, ast.ClassDef], depth: int = 0) -> Signature | None:
    """Return the parameters of a class's method, also of an inherited one; None if they are unknown."""
    node = _method(cls, method)
    if node is None:
        for base in cls.bases:
            parent = classes.get(_base_name(base))
            if parent is not None and parent is not cls and depth < 10:
                return _signature(parent, method, classes, depth + 1)
        return Signature([], 0, False, []) if method == "__init__" and _known_bases(cls, classes) else None
    arguments = node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)][1:]
    keywords = [a.arg for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults) if default is None]
    required = max(len(names) - len(arguments.defaults), 0)
    return Signature(names, required, arguments.vararg is not None, keywords)


def _describe_mismatch(wanted: Signature, have: Signature) -> str:
    """Return why calls that fit `wanted` do not fit `have`; empty if they do."""
    if have.required > len(wanted.names) and not wanted.star:
        missing = ", ".join(have.names[len(wanted.names) : have.required])
        return f"nothing is passed for {missing}"
    if len(have.names) < wanted.required and not have.star:
        return f"it has no parameter for {', '.join(wanted.names[len(have.names) : wanted.required])}"
    extra = [name for name in have.keywords if name not in wanted.keywords and name not in wanted.names]
    if extra:
        return f"nothing is passed for {', '.join(extra)}"
    both = min(len(have.names), len(wanted.names))
    swapped = have.names[:both] != wanted.names[:both] and sorted(have.names[:both]) == sorted(wanted.names[:both])
    return "the same names are in another order" if swapped else ""


# --- lines of CUDA strings -------------------------------------------------------------------------------------------


def locate(source: Source, string: str, line: int | None) -> int | None:
    """Return the file's line for line `line` (from 1) of a string that the file passed to the compiler.

    The string may be one constant or several joined. If the file does not contain it literally (an f-string, a
    replace), the line is found by its text. None if it is unknown.
    """
    wanted = string.split("\n")
    if line is None or not 0 < line <= len(wanted):
        return None
    text = wanted[line - 1]
    for constant in _constants(source.text):
        at = string.find(constant.text) if constant.text.strip() else -1
        if at < 0:
            continue
        inside = line - 1 - string.count("\n", 0, at)
        if 0 <= inside <= constant.text.count("\n"):
            found = _line_in(source, constant, inside, text)
            if found:
                return found
    return _by_text(source, text)


@functools.lru_cache(16)
def _constants(text: str) -> list[Constant]:
    """Return the file's string constants, longest first."""
    try:
        tree = syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = [
        Constant(node.value, node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return sorted(found, key=lambda constant: -len(constant.text))[:MAX_CONSTANTS]


def _line_in(source: Source, constant: Constant, inside: int, text: str) -> int | None:
    """Return the file's line for line `inside` (from 0) of a constant, checked by its text, as escapes shift lines."""
    whole = constant.text.count("\n") == constant.last - constant.first
    guess = constant.first + inside
    if whole and (text.strip() in source.line(guess) or "\\" in source.line(guess)):
        return guess
    lines = range(constant.first, constant.last + 1)
    hits = [number for number in lines if text.strip() and text.strip() in source.line(number)]
    return min(hits, key=lambda number: abs(number - guess)) if hits else None


def _by_text(source: Source, text: str) -> int | None:
    """Return the only line of the file with this text, or None."""
    hits = [n for n, line in enumerate(source.lines, 1) if text.strip() and line.strip() == text.strip()]
    return hits[0] if len(hits) == 1 else None
