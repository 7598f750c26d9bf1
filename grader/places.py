"""Places of the student's file that belong to a failure beside the line where it showed: where the cause stands, as the source tells it."""

from __future__ import annotations

import dataclasses
import re

from grader.cpp import Text
from grader.verdict import Reason, Stage

LOOP = re.compile(r"\b(?:for|while)\b|\bdo\b")
REACH = 30  # lines above a place in which what encloses it is looked for


@dataclasses.dataclass(frozen=True)
class Place:
    """Lines to mark, and a sentence that says why. instead: the line where the failure showed is not to be marked. beside: lines to show too;
    without lines to mark, those to look at."""

    words: str
    lines: tuple[int, ...]
    instead: bool = False
    beside: tuple[int, ...] = ()


def of(stage: Stage, source: str, line: int | None) -> Place | None:
    """Where the cause of a stage's failure stands, if the source tells it. line: where the failure showed."""
    code = [_bare(text) for text in source.split("\n")]
    if (line or 0) > len(code):
        return None  # a verdict of another text
    for look in LOOKS.get(stage.reason, ()):
        found = look(stage.message, code, line or 0)
        if found is not None:
            return found
    return None


# --- loops ------------------------------------------------------------------------------------------------------------


HEADER = re.compile(r"for\s*\(([^;]*);([^;]*);([^)]*)\)|while\s*\((.*)\)|while\s+([^:(]+):")
CHANGES = r"(?<![\w.])NAME\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|(?:\+\+|--)\s*NAME\b|\bNAME\s*(?:\+\+|--)"
AT_ZERO = re.compile(r"(\w+)\s*>=\s*0\s*;\s*\1\s*(?:/=|>>=)")  # halving never goes below 0


def _endless(message: str, code: list[str], line: int) -> Place | None:
    """The loop around a line, and whether anything in it changes what its condition tests; else the one loop that cannot end."""
    for at in range(line, max(0, line - REACH), -1):
        first, last = body_of(code, at)
        if LOOP.search(code[at - 1]) and (at == line or first <= line <= last):
            return Place(_why(code, at) or f"The loop of line {at} does not end.", (at,), True)
    sure = [at for at in range(1, len(code) + 1) if HEADER.search(code[at - 1]) and (_why(code, at) or "").endswith(("`.", "0."))]
    return Place(_why(code, sure[0]), (sure[0],), True) if len(sure) == 1 else None


def _why(code: list[str], at: int) -> str:
    """Why a loop does not end, as far as its text tells; empty if it tells nothing."""
    header = HEADER.search(code[at - 1])
    if header is None:
        return ""
    if halved := AT_ZERO.search(code[at - 1]):
        return f"The loop of line {at} does not end: `{halved[1]}` is halved as long as it is at least 0, and the half of 0 is 0."
    first, last = body_of(code, at)
    tested = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", header[2] or header[4] or header[5] or "")) - {"not", "len", "size", "shape"}
    inside = "\n".join([header[3] or "", header[4] or "", *code[first - 1 : last]])
    changed = sorted(name for name in tested if re.search(CHANGES.replace("NAME", name), inside))
    if changed:
        name = changed[0]
        return f"The loop of line {at} does not end: for which values of `{name}` does its condition hold, and does `{name}` leave them?"
    names = " or ".join(f"`{name}`" for name in sorted(tested))
    return f"The loop of line {at} does not end: nothing in it changes {names}." if names else ""


def body_of(code: list[str], at: int) -> tuple[int, int]:
    """First and last line of what belongs to the `for`, `while` or `if` of a line: by braces in C++, by indentation in Python."""
    text = code[at - 1]
    if text.rstrip().endswith(":") and "{" not in text:
        indent = len(text) - len(text.lstrip())
        last = at
        while last < len(code) and (not code[last].strip() or len(code[last]) - len(code[last].lstrip()) > indent):
            last += 1
        return at + 1, last
    if "{" not in text:
        return at, at + (not text.rstrip().endswith(";"))
    depth = 0
    for number in range(at, len(code) + 1):
        depth += code[number - 1].count("{") - code[number - 1].count("}")
        if depth <= 0:
            return at, number
    return at, len(code)


# --- threads that part ------------------------------------------------------------------------------------------------


def _parting(message: str, code: list[str], line: int) -> Place | None:
    """The `if` that keeps some threads from a barrier or a shuffle."""
    named = list(dict.fromkeys([*map(int, re.findall(r"\bline (\d+)\b", message)), line]))
    for number in named:
        for at in range(number, max(0, number - REACH), -1):
            first, last = body_of(code, at)
            if re.search(r"\bif\s*\(", code[at - 1]) and first <= number <= last and re.search(r"__sync|__shfl|_sync\(", code[number - 1]):
                what = "call" if "shfl" in code[number - 1] else "barrier"
                if at == number:
                    return Place(f"In line {number} an `if` stands before the {what}, so that only some threads come to it.", (number,), True)
                return Place(f"The {what} in line {number} stands inside the `if` of line {at}, so that only some threads come to it.", (at, number), True)
    return None


# --- values that nobody gave, and values that two threads touch -------------------------------------------------------


def _unset(message: str, code: list[str], line: int) -> Place | None:
    """Where a shared variable is declared, and what gives it a value before it is used; None where it may get one through a pointer."""
    said = re.search(r"(?:element (\d+) )?of `(\w+)`, which nothing has written", message)
    if said is None:
        return None
    element, name = said[1] or "0", said[2]
    declared = next((n for n in range(line - 1, 0, -1) if "__shared__" in code[n - 1] and re.search(rf"\b{name}\b", code[n - 1])), None)
    if declared is None:
        return None
    array = re.search(rf"\b{name}\s*\[", code[declared - 1]) is not None
    handed = re.compile(rf"&\s*{name}\b" + (rf"|(?<![\w.]){name}\b(?!\s*\[)" if array else ""))
    between = range(declared + 1, line)
    if any(handed.search(code[n - 1]) and "atomic" not in code[n - 1] for n in between):
        return None
    setting = re.compile(rf"(?<![\w.]){name}\s*((?:\[[^;=]*?\]\s*)*)=(?!=)")
    sets = {n: found for n in between if (found := setting.search(code[n - 1]))}
    if not sets:
        words = f"`{name}` is declared in line {declared}, and nothing gives it a value before line {line}: that is missing between the two."
        return Place(words, (declared, line))
    index = {n: found[1].replace(" ", "") for n, found in sets.items()}
    own = [n for n in sets if not array or not re.fullmatch(r"\[\d+\]", index[n]) or index[n] == f"[{element}]"]
    named = f"`{name}[{element}]`" if array else f"`{name}`"
    where, gives = _joined(own), "gives" if len(own) == 1 else "give"
    if not own:
        words = f"`{name}` is declared in line {declared}, and nothing gives {named} a value before line {line}."
    elif any(index[n] and index[n] != f"[{element}]" for n in own):
        words = f"{where[:1].upper()}{where[1:]} {gives} elements of `{name}` their values, and in this case element {element} gets none."
    elif all(_conditional(code, n, sets[n].start(), line) for n in own):
        only, met = ("a condition", "it") if len(own) == 1 else ("conditions", "one of them")
        words = f"{named} is given a value only under {only} ({where}), and in this case no thread of the block meets {met}."
    else:
        words = f"{where[:1].upper()}{where[1:]} {gives} {named} a value, and in this case no thread of the block comes there before line {line}."
    return Place(words, (), beside=tuple(own or sets))


def _joined(lines) -> str:
    *before, last = [f"line {n}" for n in lines] or [""]
    return f"{', '.join(before)} and {last}" if before else last


def _conditional(code: list[str], one: int, column: int, other: int) -> bool:
    """Whether a line's column stands under an `if` under which another line of its function does not stand."""
    text = Text("\n".join(code))
    function = text.around(one, other)
    if function is None:
        return False
    apart = set(text.heads(function, text.start(one, column))) - set(text.heads(function, text.start(other)))
    return any(re.search(r"\b(?:if|else|switch)\b", text.code[begin:end]) for begin, end in apart)


def over_passes(source: str, one: int, other: int) -> bool:
    """Whether two lines stand in one loop and each of its passes has a barrier between them: then nothing but the way from the later one
    to the next pass lacks a barrier."""
    text = Text(source)
    first, last = sorted((one, other))
    function = text.around(first, last)
    if function is None or first == last:
        return False
    shared = set(text.heads(function, text.start(first))) & set(text.heads(function, text.start(last)))
    if not any(LOOP.search(text.code[begin:end]) for begin, end in shared):
        return False
    barriers = re.compile(r"__syncthreads\w*\s*\(").finditer(text.code, text.start(first + 1), text.start(last))
    return any(set(text.heads(function, barrier.start())) <= shared for barrier in barriers)


# --- launches ---------------------------------------------------------------------------------------------------------


def _launched(message: str, code: list[str], line: int) -> Place | None:
    """Where the number is made that does not fit: of the grid, or of the block."""
    text = " ".join(code[line - 1 : line + 2])
    numbers = re.search(r"<<<(.*?)>>>", text)
    if not numbers:
        return None
    parts = _split(numbers[1])
    part = parts[0] if "its grid" in message else parts[1] if len(parts) > 1 else parts[0]
    names = [name for name in re.findall(r"[A-Za-z_]\w*", part) if name not in ("dim3", "std", "max", "min")]
    made = [n for name in names for n in _defined(code, name, line)]
    if "no block" in message and made:
        inner = [name for n in made for name in re.findall(r"[A-Za-z_]\w*", code[n - 1])]
        sizes = [n for name in inner for n in _defined(code, name, n_before=line) if n not in made]
        sizes = [n for n in sizes if re.search(r"=.*[-/]", code[n - 1])] or _sized(code, inner, line)
        if sizes:
            return Place("The sizes that come out as 0 are made here:", tuple(dict.fromkeys(sizes[-2:])), True)
    return Place("The number that does not fit is made here:", tuple(dict.fromkeys(made)), True) if made else None


def _sized(code: list[str], names: list[str], line: int) -> list[int]:
    """Where the sizes are made that a tensor among the names is allocated with."""
    for name in names:
        for n in _defined(code, name, line):
            inside = re.search(r"\{([^}]*)\}", code[n - 1])
            for size in re.findall(r"[A-Za-z_]\w*", inside[1]) if inside else []:
                made = [k for k in _defined(code, size, n) if re.search(rf"\b{size}\s*=[^,;]*[-/]", code[k - 1])]
                if made:
                    return made
    return []


def _defined(code: list[str], name: str, n_before: int) -> list[int]:
    """The last line before another one where a name gets its value."""
    made = re.compile(rf"(?<![\w.]){name}\s*(?:=(?!=)|\(.*\)\s*[,;])")
    found = [n for n in range(1, n_before) if made.search(code[n - 1]) and not code[n - 1].lstrip().startswith(("if", "for"))]
    return found[-1:]


def _null(message: str, code: list[str], line: int) -> Place | None:
    """Where a null pointer comes from."""
    made = [n for n, text in enumerate(code, 1) if re.search(r"\*\s*\w+\s*=\s*(?:nullptr|NULL|0)\s*;", text)]
    return Place("The pointer is made here, and nothing sets it:", tuple(made), True) if "null pointer" in message and made else None


def _died(message: str, code: list[str], line: int) -> Place | None:
    """Outside of kernels, a pointer that is null and is used."""
    if "segmentation fault" not in message:
        return None
    for n, text in enumerate(code, 1):
        made = re.search(r"\*\s*(\w+)\s*=\s*(?:nullptr|NULL|0)\s*;", text)
        used = [k for k, other in enumerate(code[n:], n + 1) if made and re.search(rf"\b{made[1]}\s*(?:\[|->)|\*\s*{made[1]}\b", other)]
        if made and used:
            return Place(f"`{made[1]}` is null, and line {used[0]} reads what it points to:", (n, used[0]), True)
    return None


def _huge(message: str, code: list[str], line: int) -> Place | None:
    """The allocation with a large number in it, or all of them."""
    made = [n for n, text in enumerate(code, 1) if re.search(r"torch::(?:empty|zeros|ones|full)\s*\(|torch\.(?:empty|zeros|ones)\(", text)]
    large = [n for n in made if re.search(r"\b\d{6,}", code[n - 1])]
    if not made:
        return None
    said = "The tensor is made here:" if len(large or made) == 1 else "Tensors are made here; one of their sizes is far too large:"
    return Place(said, tuple(large or made), True)


# --- how Python and C++ are bound ---------------------------------------------------------------------------------------


def _bound(message: str, code: list[str], line: int) -> Place | None:
    """The argument of load_inline, or the declaration, that does not fit."""
    within = range(line, min(len(code), line + 12) + 1) if line else range(0)
    argument = {name: next((n for n in within if re.search(rf"\b{name}\s*=", code[n - 1])), None) for name in ("functions", "cpp_sources")}
    if "PYBIND11_MODULE" in message:
        own = [n for n, text in enumerate(code, 1) if text.lstrip().startswith("PYBIND11_MODULE")]
        lines = [*own, *([argument["functions"]] if argument["functions"] else [])]
        return Place("Both of these make the module; one of them is too many:", tuple(lines), True) if len(lines) > 1 else None
    if "but cpp_sources is empty" in message:
        return Place("The declaration is missing here:", (argument["cpp_sources"],), True) if argument["cpp_sources"] else None
    if "which cpp_sources does not declare" in message:
        lines = [n for n in argument.values() if n]
        return Place("These two do not name the same function:", tuple(sorted(lines)), True) if lines else None
    if "no source defines it" in message:
        name = re.search(r"`(?:\w+::)*(\w+)\(", message)
        declared = [n for n, text in enumerate(code, 1) if name and re.search(rf"\b{name[1]}\s*\([^)]*\)\s*;", text)]
        defined = [n for n, text in enumerate(code, 1) if re.match(r"\s*(?:torch|at)::Tensor\s+\w+\s*\(", text) and ";" not in text]
        said = "Declared, and defined under another name or with other parameters:"
        return Place(said, tuple(dict.fromkeys(defined + declared)), True) if declared and defined else None
    return None


# --- help -------------------------------------------------------------------------------------------------------------


def _bare(text: str) -> str:
    return re.sub(r"//.*|(?<!\S)#(?!include|define|pragma).*", "", text)


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


LOOKS = {
    **dict.fromkeys((Reason.kernel_timeout, Reason.timeout, Reason.build_timeout), (_endless,)),
    **dict.fromkeys((Reason.barrier_divergence, Reason.warp_divergence), (_parting,)),
    Reason.uninitialized: (_unset,),
    Reason.launch_error: (_launched,),
    Reason.illegal_address: (_null,),
    Reason.crash: (_died,),
    Reason.out_of_memory: (_huge,),
    **dict.fromkeys((Reason.undeclared_function, Reason.missing_cpp_sources, Reason.link_error, Reason.compile_error), (_bound,)),
}
