"""Explains compiler messages (of nvcc, g++, the linker, pybind and simt): the usual cause, then what to do.

The file stays whole: it is one table and the conditions that its entries use.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar


class Note(Protocol):
    """A compiler message: of simt.Diagnostic, of the worker's protocol, or of a test."""

    @property
    def message(self) -> str: ...

    @property
    def line(self) -> int | None: ...


AnyNote = TypeVar("AnyNote", bound=Note)


@dataclasses.dataclass(frozen=True)
class Explanation:
    """An explanation. name: of its entry in KNOWN. text: one to three sentences, the usual cause, then what to do.

    number: the line of the compiled string to look at, from 1, where it is another than the message names.
    """

    name: str
    text: str
    number: int | None = None


@dataclasses.dataclass(frozen=True)
class Known:
    """One known message. message: a pattern that finds it; `text` refers to its named groups as {name}.

    at: a pattern that the student's line must match too. when: a further condition on the place; returns more values
    for `text`, or None if it does not hold.
    """

    name: str
    message: str
    text: str
    at: str = ""
    when: Callable[[Place], dict | None] | None = None


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a message points: its match, the line's text, the string that was compiled, and the line's number in it,
    from 1.
    """

    match: re.Match
    line: str
    source: str
    number: int | None


LONGEST_MESSAGE, LONGEST_LINE = 2000, 500  # characters that are looked at
MOST_PLACES = 100  # of a name that are looked at


def explain(message: str, line: str = "", source: str = "", number: int | None = None) -> Explanation | None:
    """Return the explanation of the first entry of KNOWN that fits, or None.

    line: the text of the student's line that the message points to; source: the string that was compiled, and number
    the line's number in it, from 1, where they are known: some causes are visible only there.
    """
    message, line = message[:LONGEST_MESSAGE], line[:LONGEST_LINE]
    for known in KNOWN:
        match = re.search(known.message, message)
        if not match or (known.at and not re.search(known.at, line)):
            continue
        more = known.when(Place(match, line, _cut_lines(source), number)) if known.when else {}
        if more is not None:
            at = more.get("number")
            return Explanation(known.name, _fill(known.text, match.groupdict() | more), int(at) if at else None)
    return None


def _cut_lines(source: str) -> str:
    """Return the source with long lines cut: the conditions' patterns take the square of a line's length."""
    return "\n".join(line[:LONGEST_LINE] for line in source.split("\n"))


def _fill(text: str, values: dict[str, str | None]) -> str:
    """Replace each {name} in the text by its value; a group that did not take part becomes empty."""
    return re.sub(r"\{(\w+)\}", lambda hole: values.get(hole[1]) or "", text)


# entries that also say what an exception or a failed launch means
WHILE_RUNNING = {"incompatible_arguments", "shared_too_large"}
CONSEQUENCE = re.compile(r"variable or field ‘\w+’ declared void|incomplete type \"void\" is not allowed")


def find_cause(notes: Sequence[AnyNote]) -> AnyNote:
    """Return the note to explain: the first one, or the one on the same line that it only follows from.

    Notes have message and line.
    """
    causes = [note for note in notes if note.line == notes[0].line and not CONSEQUENCE.match(note.message)]
    return causes[0] if causes and CONSEQUENCE.match(notes[0].message) else notes[0]


# --- conditions ------------------------------------------------------------------------------------------------------


def _defined_below(place: Place) -> dict | None:
    """Return whether the unknown name is a function or a constant that is defined further down in the same string."""
    name = re.escape(place.match["name"])
    below = place.source.split("\n")[place.number or 0 :] if place.number else []
    defined = re.compile(
        rf"^[^/\n]*\b(?:void|int|float|double|bool|auto|constexpr|T|\w+_t|#define)\b[^=;(]*\b{name}\b\s*[(=]|"
        rf"^\s*#define\s+{name}\b"
    )
    return {} if any(defined.search(text) for text in below) else None


def _other_kernel(place: Place) -> dict | None:
    """Return the kernel that the source defines, where a launch starts one of another name."""
    name = place.match["name"]
    if not re.search(rf"\b{re.escape(name)}\s*(?:<[^<>]*>\s*)?<<<", place.line):
        return None
    kernels = re.findall(r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+(\w+)\s*\(", place.source)
    launched = set(re.findall(r"\b(\w+)\s*(?:<[^<>]*>\s*)?<<<", place.source))
    others = [kernel for kernel in kernels if kernel not in launched] or kernels
    near = difflib.get_close_matches(name, others, 1, 0.0)
    return {"have": near[0]} if near else None


# Functions of Python, torch and shading languages, and what to write for each in CUDA.
MISSING = {
    "clamp": "fminf(fmaxf(v, low), high), or two comparisons where NaN must stay NaN",
    "clip": "fminf(fmaxf(v, low), high), or two comparisons where NaN must stay NaN",
    "saturate": "fminf(fmaxf(v, 0.0f), 1.0f)",
    "relu": "fmaxf(v, 0.0f)",
    "sigmoid": "1.0f / (1.0f + expf(-v))",
    "sigmoidf": "1.0f / (1.0f + expf(-v))",
    "square": "v * v",
    "lerp": "a + t * (b - a)",
    "sum": "a loop that adds the elements up",
    "mean": "a loop that adds the elements up, and divide by their number",
    "len": "the size as a parameter of the kernel",
    "ceil_div": "(n + threads - 1) / threads",
    "cdiv": "(n + threads - 1) / threads",
}


def _missing_function(place: Place) -> dict | None:
    """Return what to write for a function that CUDA lacks, where the unknown name is called."""
    name = place.match["name"]
    is_called = re.search(rf"(?<![\w.:]){re.escape(name)}\s*\(", place.line)
    return {"instead": MISSING[name]} if is_called else None


def _other_parameters(place: Place) -> dict | None:
    """Return the function of the name that the linker misses, if the source defines it with other parameters."""
    name = re.escape(place.match["name"].split("::")[-1])
    for found in itertools.islice(re.finditer(rf"\b{name}\s*\(", place.source), MOST_PLACES):
        before = place.source[place.source.rfind("\n", 0, found.start()) + 1 : found.start()]
        parameters = PARAMETERS.match(place.source, found.end())
        if parameters and not re.search("[/;]", before):
            have = f"{place.match['name']}({' '.join(parameters[1].split())})"
            return None if 'extern "C"' in before else {"have": have}
    return None


PARAMETERS = re.compile(r"([^;{]{0,1000}?)\)\s{0,100}\{")  # and the beginning of the body


def _extern_c(place: Place) -> dict | None:
    return {} if 'extern "C"' in place.source else None


def _find_semicolon_place(place: Place) -> dict | None:
    """Return where the semicolon is probably missing: at the end of the last line above that has text, or, if that
    line is complete, at the end of this one.
    """
    above = place.source.split("\n")[: (place.number or 1) - 1]
    before = {number: line.strip() for number, line in enumerate(above, 1) if line.strip()}
    number = max(before, default=0)
    if before and re.search(r"[;{}]\s*(?://.*)?$", before[number]):
        return {"where": " in this line, most often at its end"}
    if not before:
        return {"where": ", most often at the end of the line above"}
    return {"where": f", most often at the end of the line above, `{before[number][:80]}`", "number": str(number)}


def _python_division(place: Place) -> dict | None:
    """Return the line in which `//` is meant as a division: this one or the last above it that has text, with
    unfinished code before the `//` and the rest of it behind.
    """
    above = [line for line in place.source.split("\n")[: (place.number or 1) - 1] if line.strip()]
    for line in [place.line, *above[-1:]]:
        before, _, behind = line.partition("//")
        # a real comment may follow
        ends = {len(behind), *(match.start() for match in re.finditer("//", behind))}
        if re.search(r"[\w)\]]\s*$", before) and any(_continues(before, behind[:end].strip()) for end in ends):
            return {"line": line.strip()[:80]}
    return None


def _continues(before: str, behind: str) -> bool:
    """Return whether the text behind a `//` is not prose but the rest of the code before it."""
    code = (
        re.match(r"=?\s*[\w(]", behind)
        and re.search(r"[;,)\]{]$", behind)
        and not re.search(r"[A-Za-z]\w*\s+[A-Za-z]", behind)
    )
    return bool(code) and all(
        (before + behind).count(opened) == (before + behind).count(closed) for opened, closed in ("()", "[]")
    )


BRACED = re.compile(r"[-+*/%<>\[]\s*(\{(\w+)\})|(\{(\w+)\})\s*(?:[-+*/%\]]|>>>)")  # C++ has no braces there


def _names_half(place: Place) -> dict | None:
    """Return whether the message or the source names a 16-bit float."""
    named = re.search(r"\b(?:__|nv_|__nv_)?(?:half|bfloat16)2?\b", f"{place.match.string}\n{place.source}")
    return {} if named else None


def _braced_name(place: Place) -> dict | None:
    """Return the first name of the line that stands in braces next to an operator, as in an f-string of Python."""
    found = BRACED.search(place.line)
    return {"name": found[1] or found[3], "variable": found[2] or found[4]} if found else None


C_FUNCTIONS = {
    "gamma",
    "y0",
    "y1",
    "yn",
    "j0",
    "j1",
    "jn",
    "index",
    "time",
    "remove",
    "signal",
    "round",
    "exp",
    "log",
    "pow",
    "abs",
    "div",
    "floor",
    "erf",
}


def _c_function(place: Place) -> dict | None:
    """Return a name in the line that is a function of the C library and is not called there."""
    named = [name for name in re.findall(r"\b([a-z]\w*)\b(?!\s*\()", place.line) if name in C_FUNCTIONS]
    return {"name": named[0]} if named else None


def _fewer(place: Place) -> dict | None:
    return {} if _count(place.match["gives"]) < _count(place.match["wants"]) else None


def _more(place: Place) -> dict | None:
    return {} if _count(place.match["gives"]) > _count(place.match["wants"]) else None


def _count(types: str) -> int:
    """Return the number of types in a list; commas inside <> and () do not separate."""
    depth, found = 0, 1 if types.strip() else 0
    for character in types:
        depth += (character in "<(") - (character in ">)")
        found += character == "," and depth == 0
    return found


BUILT_IN = r"\b(?P<name>(?:threadIdx|blockIdx|blockDim|gridDim)(?:\s*\.\s*[xyz])?)"
CHANGED = re.compile(
    rf"{BUILT_IN}\s*(?:=(?!=)|\+\+|--|(?:[-+*/%&|^]|<<|>>)=)|(?:\+\+|--)\s*{BUILT_IN.replace('name', 'after')}"
)


def _changed_built_in(place: Place) -> dict | None:
    """Return the built-in variable that the line assigns to, increments or decrements."""
    found = CHANGED.search(place.line)
    return {"name": "".join((found["name"] or found["after"]).split())} if found else None


# --- the table -------------------------------------------------------------------------------------------------------


def _unknown(name: str = r"[\w:]+") -> str:
    """Return a pattern of g++'s and nvcc's messages about an unknown name."""
    return (
        rf"(?:‘(?=(?:{name})’)|identifier \"(?=(?:{name})\"))(?P<name>[\w:]+)"
        r"(?:’ was not declared|’ does not name a type|’ has not been declared|\" is undefined)"
    )


BUILTINS = r"(?i:threadidx|blockidx|blockdim|griddim|warpsize|_+syncthreads|_*syncwarp|_*syncthread)"
SHUFFLES = r"__(?:shfl|shfl_up|shfl_down|shfl_xor|any|all|ballot)"

# A 16-bit float, or a pair of them, between the quotation marks of g++, clang or nvcc.
_SIXTEEN_BITS = r"[‘'\"](?:const )?(?:__half|half|nv_half|(?:__)?nv_bfloat16)2?(?: ?&)?(?:[’'\"]|::)"
_NOT_OF_FLOATS = r"\[|<<|>>|%|\^|&(?!&)|\|(?!\|)"  # operators that no type of floats has
HALF_CONVERSION = (
    "torch compiles extensions without the implicit conversions of half and bfloat16 from and to other types. "
    "Convert with __half2float and __float2half, or __bfloat162float and __float2bfloat16."
)
LAUNCH = r"The kernel's parameters are \((?P<wants>.*)\), but this launch gives \((?P<gives>.*)\)"

# The first entry that fits counts, so special entries come before general ones.
KNOWN: list[Known] = [
    # load_inline's arguments
    Known(
        "missing_cpp_sources",
        r"cpp_sources is empty",
        "load_inline generates the Python binding from cpp_sources. Put the function's first line there, without "
        "its body and with a semicolon.",
    ),
    Known(
        "undeclared_function",
        r"functions= names .*which cpp_sources does not declare",
        "A function has one name, in functions=[…], cpp_sources, cuda_sources and forward; upper and lower case count.",
    ),
    Known(
        "operators_only",
        r"^The sources register operators with TORCH_LIBRARY and bind no function",
        "load_inline makes a Python module unless it is told otherwise, and a TORCH_LIBRARY alone is none.",
    ),
    Known(
        "no_binding",
        r"^No function is bound",
        "load_inline makes a Python module of the functions that functions=[…] names. Name there each function that "
        "forward calls, and declare it in cpp_sources.",
    ),
    Known(
        "two_modules",
        r"PYBIND11_MODULE|multiple definition of [`‘']?PyInit_|redefinition of .*PyInit_",
        "With functions=[…] load_inline writes the module itself. Delete your PYBIND11_MODULE, or remove "
        "functions= and keep yours.",
    ),
    Known(
        "extern_c",
        r"(?:declared and called, but no source defines it|undefined (?:symbol|reference))",
        'A source has extern "C", which gives the function another linker name than cpp_sources declares. Delete '
        'extern "C": it cannot be used with a torch::Tensor anyway.',
        when=_extern_c,
    ),
    Known(
        "extern_c",
        r"conflicting declaration .* with ‘C’ linkage|linkage specification is incompatible|has C-linkage specified",
        'extern "C" gives a function another linker name than its declaration in cpp_sources has. Delete extern "C".',
    ),
    Known(
        "other_parameters",
        r"`(?P<name>[\w:]+)\(.*declared and called, but no source defines it",
        "The source defines {have}, which has other parameters. Copy the definition's first line into "
        "cpp_sources, letter by letter, and end it with a semicolon.",
        when=_other_parameters,
    ),
    Known(
        "never_defined",
        r"declared and called, but no source defines it|undefined symbol|undefined reference",
        "A declaration only promises a function. Write its body in cuda_sources or cpp_sources, with the same "
        "name and the same parameter types.",
    ),
    Known(
        "cuda_in_cpp_sources",
        r"‘__(?:global|device|shared|host|constant|forceinline)__’ (?:does not name a type|was not declared|"
        r"has not been declared)",
        "This is CUDA code in cpp_sources, which an ordinary C++ compiler reads. Move kernels and the functions "
        "that launch them to cuda_sources, and leave only declarations in cpp_sources.",
    ),
    Known(
        "incompatible_arguments",
        r"incompatible function arguments|takes \d+ arguments?, but (?:got )?\d+",
        "This line passes other arguments than the C++ function takes. Count them and compare their types "
        "(for example a float where the C++ has int64_t, or a list where it has a torch::Tensor).",
    ),
    Known(
        "overloaded",
        r"cannot be bound: several functions have this name",
        "Python cannot choose between functions with the same name. Give the one that Python calls its own name.",
    ),
    Known(
        "result_type",
        r"cannot be bound: its result",
        "A function can return to Python a torch::Tensor, a number, a bool, a string, or a std::vector or tuple "
        "of these.",
    ),
    # syntax
    Known(
        "broken_string",
        r"missing (?:terminating|closing) (?:\" character|quote)",
        'A string in the CUDA code ends at the end of its line. In a Python string "\\n" becomes a line break '
        'before the compiler sees it: put r in front of the Python string (r"""…""", or rf"""…""" for an '
        'f-string), or write "\\\\n".',
    ),
    Known(
        "open_comment",
        r"unterminated comment|comment unclosed at end of file",
        "A comment that begins with /* has no */, so the rest of the source is a comment. Close it, or use //.",
    ),
    Known(
        "stray_character",
        r"extended character|stray ‘|unrecognized token|identifier \"[^\x00-\x7f]|before ‘[^\x00-\x7f‘’]+’",
        "This line has a character that C++ does not know, such as a long dash, a dot for a product or a curly "
        'mark copied from a web page or a word processor. Type what C++ has for it: -, *, ".',
    ),
    Known(
        "function_inside_function",
        r"function-definition is not allowed here|expected a \";\"",
        "The compiler reads this function as part of another one, because a } is missing above. Check that each { "
        "of the function above is closed.",
        at=r"^\s*(?:static |__\w+__ |torch::)*[\w:<>*&]+\s+\w+\s*\([^;]*\)\s*\{?\s*$",
    ),
    Known(
        "missing_brace",
        r"This ‘\{’ is never closed|expected ‘\}’ at end of input|expected a \"\}\"|reached end of (?:file|source)",
        "Every { needs a }. Follow the indentation from here on and find the missing }.",
    ),
    Known(
        "else_without_if",
        r"‘else’ without a previous ‘if’",
        "An if without { } covers one statement only. Put { } around the lines that belong to it.",
    ),
    Known(
        "else_without_if",
        r"expected a statement",
        "An if without { } covers one statement only. Put { } around the lines that belong to it.",
        at=r"^\s*\}?\s*else\b",
    ),
    Known(
        "no_f_string",
        r"expected primary-expression before ‘\{|expected an expression",
        "`{name}` in braces is the value of a Python variable only in an f-string. Declare it in the CUDA code, as in "
        "`constexpr int {variable} = …;`, and write it without braces.",
        when=_braced_name,
    ),
    Known(
        "launch_brackets",
        r"binary ‘operator(?:<<|>>)’|A launch is kernel<<<|expected an expression|"
        r"expression must have integral or unscoped enum type",
        "A launch has three angle brackets on each side: kernel<<<blocks, threads>>>(arguments).",
        at=r"<<",
    ),
    Known(
        "launch_settings",
        r"A launch takes two to four arguments",
        "Between <<< and >>> write the number of blocks and the number of threads per block, then optionally the "
        "bytes of shared memory and a stream.",
    ),
    Known(
        "python_division",
        r"expected (?:initializer|‘,’ or ‘;’|‘[;)\]]’|primary-expression) before|expected a \"[;)\]]\"|"
        r"is missing after this line",
        "`//` begins a comment in C++. Integer division is `/`. See `{line}`.",
        when=_python_division,
    ),
    Known(
        "missing_semicolon",
        r"expected (?:initializer|‘,’ or ‘;’|‘;’) before|expected a \";\"|is missing after this line",
        "A semicolon is missing{where}.",
        when=_find_semicolon_place,
    ),
    Known(
        "missing_bracket",
        r"expected ‘[)\]]’ before|expected a \"[)\]]\"|expected primary-expression before ‘[)\]]’",
        "The brackets of this line do not match. Count ( and ), [ and ].",
    ),
    Known(
        "assignment_for_comparison",
        r"lvalue required as left operand|expression must be a modifiable lvalue",
        "= stores a value and == compares two values; nothing can be stored to the left side of this =. Write == "
        "to compare.",
        at=r"(?:\bif\b|\bwhile\b|&&|\|\|).*[^=!<>]=[^=]",
    ),
    # names
    Known(
        "no_such_header",
        r"(?P<name>[\w./]+): No such file or directory|cannot open source file \"(?P<n2>[^\"]+)\"|"
        r"could not open source file",
        "The header is not on this machine. Check its spelling. Put a header of your own into the string; headers "
        "of torch, CUDA and C++ are found.",
    ),
    Known(
        "misspelt_builtin",
        _unknown(BUILTINS),
        "C++ distinguishes upper and lower case. Write threadIdx, blockIdx, blockDim, gridDim, warpSize, "
        "__syncthreads() or __syncwarp().",
    ),
    Known(
        "old_shuffle",
        _unknown(SHUFFLES),
        "`{name}` was removed from CUDA. Write {name}_sync, with a mask of the participating lanes as its first "
        "argument: 0xffffffff for all 32.",
    ),
    Known(
        "scalar_t_outside",
        _unknown("scalar_t"),
        "scalar_t exists only inside AT_DISPATCH_…(…, [&] { … }). Make the kernel a template (template <typename "
        "scalar_t> above it) and launch kernel<scalar_t><<<…>>> inside, or write float.",
    ),
    Known(
        "torch_unknown",
        _unknown("torch|at|c10") + r"|name followed by \"::\" must be a class or namespace name",
        "The compiler has not seen torch's declarations. Put #include <torch/extension.h> at the top of this "
        "source (load_inline adds it unless no_implicit_headers=True).",
    ),
    Known(
        "torch_unknown",
        r"this declaration has no storage class or type specifier",
        "The compiler has not seen torch's declarations. Put #include <torch/extension.h> at the top of this source.",
        at=r"\b(?:torch|at|c10)::",
    ),
    Known(
        "missing_include",
        r"(?:in namespace ‘std’ does not name a|is not a member of ‘std’|namespace \"std\" has no member)",
        "A header of the standard library is missing, or the name is misspelt: std::max needs #include "
        "<algorithm>, std::sqrt <cmath>, std::vector <vector>.",
    ),
    Known(
        "defined_below",
        _unknown(),
        "`{name}` is defined further down, and C++ reads from top to bottom. Move its definition above this "
        "function, or declare it there.",
        when=_defined_below,
    ),
    Known(
        "kernel_name",
        _unknown(),
        "The launch starts a kernel `{name}`, and the source defines `{have}`. Use the same name in both places.",
        at=r"<<<",
        when=_other_kernel,
    ),
    Known(
        "no_such_function",
        _unknown("|".join(MISSING)),
        "CUDA has no function `{name}`. Write {instead}.",
        when=_missing_function,
    ),
    Known(
        "unknown_type",
        _unknown(r"[\w:]+"),
        "The compiler knows no type `{name}`. Check the spelling. The usual types are float, double, int, "
        "unsigned, int64_t, bool, half and torch::Tensor.",
        at=r"^\s*(?:template\s*<.*>\s*)?(?:__\w+__|static|inline|extern|void)\b[^=;]*\(",
    ),
    Known(
        "undefined_name",
        _unknown(),
        "`{name}` is not defined here. Look for a misspelling, for a parameter that the kernel does not have, and "
        "for a variable that was declared inside other { } or in a loop that has ended.",
    ),
    Known(
        "no_such_member",
        r"has no member",
        "A tensor in C++ has x.size(0), x.numel(), x.dim(), x.sizes() and x.data_ptr<float>(). It has no x.shape "
        "and no x.T.",
        at=r"\.shape|\.T\b|\.numel|\.size|\.item",
    ),
    Known(
        "no_such_member",
        r"has no member",
        "The type has no member with this name. Check the spelling, and whether it is a variable or a function, "
        "which needs ().",
    ),
    Known(
        "defined_twice",
        r"^redefinition of|has already been defined|multiple definition of",
        "The same function is defined twice, with its body; often once in cpp_sources and once in cuda_sources. "
        "Keep one definition, and in cpp_sources only its first line with a semicolon.",
    ),
    Known(
        "other_return_type",
        r"ambiguating new declaration|cannot overload functions distinguished by return type alone|"
        r"conflicting declaration of ‘\w+ \w+\(",
        "The function is declared with one return type and defined with another. Make the declaration in "
        "cpp_sources and the definition the same.",
    ),
    Known(
        "shared_type_clash",
        r"conflicting declaration ‘extern|declaration is incompatible with previous|"
        r"conflicting declaration ‘[\w ]+ \w+ ?\[\]",
        "All extern __shared__ arrays of a source are the same memory, so one name can have only one type. Give "
        "the arrays different names, or declare one as extern __shared__ char bytes[] and cast it in each kernel.",
        at=r"\[\s*\]|__shared__",
    ),
    Known(
        "shadows_parameter",
        r"declaration of ‘(?:[\w:]+[ *&]+)*(?P<name>\w+)(?:\[.*\])?’ shadows a parameter",
        "The function already has a parameter `{name}`. Give your variable another name, or remove its type "
        "({name} = …) if you mean the parameter.",
    ),
    Known(
        "declared_twice",
        r"redeclaration of|conflicting declaration|has already been declared in the current scope",
        "This name is already declared in this scope. Remove the type to assign to it (i = …;), or choose another "
        "name.",
    ),
    # types
    Known(
        "type_in_dispatch",
        r"DeprecatedTypeProperties",
        "AT_DISPATCH_… needs the element type. Replace x.type() by x.scalar_type().",
    ),
    Known(
        "half_extremes",
        r"no matching function for call to [‘'](?:max|min)\b|"
        r"no instance of overloaded function \"(?:max|min)\" matches",
        "max and min have no version for half and bfloat16. Use __hmax and __hmin.",
        when=_names_half,
    ),
    Known(
        "half_conversion",
        rf"(?:cannot convert|invalid cast from type|‘static_cast’ from type|from) {_SIXTEEN_BITS}.* to |"
        rf"to (?:non-scalar type )?{_SIXTEEN_BITS}|types? {_SIXTEEN_BITS} and|reference of type {_SIXTEEN_BITS}|"
        rf"no (?:matching function for call to|matching constructor for .*|instance of constructor) {_SIXTEEN_BITS}|"
        rf"operand types are incompatible .*{_SIXTEEN_BITS}|"
        r"no (?:matching function for call to|instance of overloaded function) [‘\"']__(?:h|half|bfloat16|float2)\w+|"
        rf"incompatible (?:type|operand types).*{_SIXTEEN_BITS}|{_SIXTEEN_BITS} is not contextually convertible",
        HALF_CONVERSION,
    ),
    Known("half_conversion", r"expression must have bool type", HALF_CONVERSION, when=_names_half),
    Known(
        "too_few_arguments",
        LAUNCH,
        "The launch passes too few arguments. Compare them with the kernel's parameters, one by one.",
        when=_fewer,
    ),
    Known(
        "too_many_arguments",
        LAUNCH,
        "The launch passes more arguments than the kernel has parameters. Compare them one by one.",
        when=_more,
    ),
    Known(
        "too_few_arguments",
        r"too few arguments",
        "The call passes too few arguments. Compare them with the function's parameters, one by one.",
    ),
    Known(
        "too_many_arguments",
        r"too many arguments",
        "The call passes more arguments than the function has parameters. Compare them one by one.",
    ),
    Known(
        "const_lost",
        r"this launch gives \([^)]*\bconst \w|invalid conversion from ‘const \w+\*’|"
        r"argument of type \"const [^\"]+\*\" is incompatible with",
        "A pointer to const data is passed where the code may write. If the function only reads, declare its "
        "parameter const float*. If it writes, pass a pointer to the output.",
    ),
    Known(
        "data_ptr_without_type",
        r"this launch gives \([^)]*void\*|invalid conversion from ‘void\*’|argument of type \"(?:const )?void \*\"",
        "data_ptr() without a type returns void*. Write x.data_ptr<float>().",
    ),
    Known(
        "tensor_for_pointer",
        r"this launch gives \([^)]*at::Tensor|cannot convert ‘(?:const )?at::Tensor’|"
        r"no suitable conversion function from \"(?:const )?at::Tensor\"",
        "A kernel takes the address of a tensor's data, not the tensor. Pass x.data_ptr<float>().",
    ),
    Known(
        "other_pointer",
        LAUNCH + r"|cannot convert ‘[\w ]+\*’ to ‘[\w ]+\*’|"
        r"argument of type \"[\w ]+\*\" is incompatible with parameter of type \"[\w ]+\*\"",
        "The types differ. data_ptr<T>() must name the type of the kernel's parameter and of the tensor's "
        "elements (for a float32 tensor: data_ptr<float>()).",
    ),
    Known(
        "template_argument",
        r"No kernel `|couldn’t deduce template|no instance of function template \"\w+\" matches",
        "The compiler cannot deduce the template's type from the arguments. Name it: kernel<float><<<blocks, "
        "threads>>>(…).",
        at=r"<<<",
    ),
    Known(
        "atomic_type",
        r"atomic(?:Add|Max|Min|Exch|CAS)|‘int64_t\*’.*to ‘(?:long )+long unsigned int\*’",
        "This atomic function does not exist for this type: atomicAdd takes int, unsigned, unsigned long long, "
        "float, double and half. For int64_t cast the address: atomicAdd((unsigned long long*)p, 1ull).",
        at=r"atomic",
    ),
    Known(
        "mixed_max",
        r"no matching function for call to ‘(?:max|min|clamp)\(|no instance of (?:overloaded function|"
        r"function template) \"std::(?:max|min|clamp)",
        "std::max and std::min take two values of the same type, and these differ. Name the type: "
        "std::max<int64_t>(a, b).",
    ),
    Known(
        "thread_as_number",
        r"‘(?:const )?(?:uint3|dim3)’|\"(?:const )?(?:uint3|dim3)\"|no operator \"[^\"]+\" matches",
        "threadIdx, blockIdx, blockDim and gridDim hold three numbers each. Write threadIdx.x, .y or .z.",
        at=r"(?:Idx|Dim)\b(?!\s*\.)",
    ),
    Known(
        "member_of_pointer",
        r"request for member ‘\w+’ in ‘(?P<name>[^’]+)’, which is of (?:non-class|pointer) type ‘[^’]*\*|"
        r"expression must have class type but it has type \"[^\"]*\*",
        "A kernel gets the bare address of a tensor's elements, not the tensor, so it has no methods and no "
        "sizes. Read x[i]; pass sizes as parameters of their own, and write a sum or a maximum as a loop.",
    ),
    Known(
        "c_function",
        r"invalid operands of types .*\([\w ,*]*\)|pointer to a function used in arithmetic",
        "`{name}` is not a variable here but a function of the C library. If you mean a parameter, use its name "
        "from the kernel's first line.",
        when=_c_function,
    ),
    Known(
        "half_operators",
        rf"(?:more than one|no) operator \"(?!{_NOT_OF_FLOATS})[^\"]+\" matches.*|"
        r"more than one (?:conversion|operator)|"
        rf"no match for ‘operator(?!{_NOT_OF_FLOATS}).*{_SIXTEEN_BITS}|declared for postfix ‘(?:\+\+|--)’|"
        rf"(?:invalid operands to binary expression|invalid argument type|cannot \w+ value of type).*{_SIXTEEN_BITS}|"
        r"no viable overloaded '",
        "torch compiles extensions without the operators of half, and without implicit conversions of half and "
        "bfloat16. Convert with __half2float (__bfloat162float), compute in float, and convert back with __float2half "
        "(__float2bfloat16); or use __hadd and similar functions.",
    ),
    Known(
        "remainder_of_floats",
        r"binary ‘operator(?:%|<<|&|\|)’|expression must have integral|"
        rf"no match for ‘operator(?:{_NOT_OF_FLOATS})=?’.*{_SIXTEEN_BITS}|"
        rf"no operator \"(?:{_NOT_OF_FLOATS})=?\" matches",
        "This operator works on integers only. For the remainder of floats use fmodf(a, b).",
    ),
    Known(
        "index_of_value",
        r"for array subscript|expression must have pointer-to-object type|subscripted value|"
        rf"no match for ‘operator\[\]’.*{_SIXTEEN_BITS}|no operator \"\[\]\" matches",
        "The name before [ ] is a single value, not an array or a pointer. Declare the parameter as const float* "
        "x, or remove the [ ].",
    ),
    Known(
        "pointer_for_value",
        r"cannot convert ‘[^’]*\*’ to ‘(?:const )?(?:float|double|int|int64_t|unsigned int|bool|long int)’|"
        r"\"[^\"]*\*\" cannot be used to initialize|"
        r"\"[^\"]*\*\" cannot be assigned to an entity of type \"(?:float|double|int)\"|"
        r"argument of type \"[^\"]*\*\" is incompatible with parameter of type \"(?:float|double|int)\"",
        "A pointer is the address of many values. Choose one of them: x[i].",
    ),
    Known(
        "void_value",
        r"void value not ignored|value of type \"void\"",
        "The function returns nothing (void), so its result cannot be used. Give it a return type and a return, "
        "or call it on a line of its own.",
    ),
    Known(
        "return_without_value",
        r"return-statement with no value|should return a value|missing return statement|no return statement|"
        r"return type is not void",
        "The function declares a result. Every path through it needs a return with a value.",
    ),
    Known(
        "value_from_void",
        r"return-statement with a value, in function returning ‘void’|"
        r"return value type does not match the function type",
        "The returned value does not match the function's return type. A kernel, like any void function, returns "
        "nothing: store the result through a pointer.",
    ),
    # kernels
    Known(
        "write_to_built_in",
        r"expression must be a modifiable lvalue",
        "`{name}` is a built-in variable, which cannot be assigned to. Assign to a variable of your own.",
        when=_changed_built_in,
    ),
    Known(
        "write_to_const",
        r"assignment of read-only|expression must be a modifiable lvalue|increment of read-only",
        "The parameter is declared const, so the kernel may only read it. Write to the output, or remove const if "
        "this is the output.",
    ),
    Known(
        "kernel_called",
        r"a __global__ function call must be configured|__global__ function .* without",
        "A kernel is launched, not called: kernel<<<blocks, threads>>>(arguments).",
    ),
    Known(
        "device_from_host",
        r"calling a __device__ function.*from a __host__",
        "A __device__ function exists on the GPU only. Put __host__ __device__ before it if the CPU calls it too.",
    ),
    Known(
        "process_from_device",
        r"calling a __host__ function\(\"(?P<name>_?exit|_Exit|quick_exit|pthread_exit|std::terminate|longjmp)\b",
        "`{name}` exists on the CPU only. Write `return;` in the kernel to end a thread.",
    ),
    Known(
        "host_from_device",
        r"calling a (?:constexpr )?__host__ function.*from a __(?:global|device)",
        "A kernel can call only functions that are compiled for the GPU. Put __device__ before the function.",
    ),
    Known(
        "host_from_device",
        r"identifier \".*\" is undefined in device code",
        "A kernel can use only what is compiled for the GPU. Put __device__ before it.",
    ),
    Known(
        "kernel_returns",
        r"__global__ function must have a void return type|must have a void return",
        "A kernel returns nothing. Make it void and store the result through a pointer.",
    ),
    Known(
        "shared_size_unknown",
        r"storage size of .* isn’t constant|expression must have a constant value|variable-length array|"
        r"variable length array",
        "The size of a __shared__ array must be known when the kernel is compiled. Use a constexpr number; or use "
        "extern __shared__ float s[]; and pass the number of bytes at the launch: kernel<<<blocks, threads, n * "
        "sizeof(float)>>>(…).",
    ),
    Known(
        "shared_initialised",
        r"__shared__ variable cannot have an initial value|initializer not allowed for (?:a )?__shared__|"
        r"dynamic initialization is not supported for a",
        "A __shared__ variable cannot have an initial value. Write if (threadIdx.x == 0) sum = 0; and then "
        "__syncthreads().",
    ),
    Known(
        "shared_too_large",
        r"uses too much shared data|__shared__ arrays take [\d,]+ bytes; the limit",
        "A block has 48 KiB for its __shared__ arrays, which is 12,288 floats. Make the tile smaller, or keep "
        "part of it in registers.",
    ),
]
