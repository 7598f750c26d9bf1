"""Finds the cause of a failure in the student's source, where its text shows it, often on another line."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from grader.source import divergence
from grader.source.bounds import find_returned_index, find_untested
from grader.source.cpp import Text, closing
from grader.source.divisors import find_zero_divisor
from grader.source.index_origins import find_same_index, find_unset_index
from grader.source.loops import find_endless_loop
from grader.source.place import LOOP, REACH, Place, body_of, join_lines
from grader.source.recursion import find_stack_use
from grader.verdict import Reason, Stage

MOST_THREADS = 1024  # of a block, on every GPU
MOST_AROUND = 30  # statements around a line that are looked at, the innermost


def find_place(stage: Stage, source: str, line: int | None) -> Place | None:
    """Return the cause of a failure, or None if the source does not show it. line: where the failure appeared."""
    code = [_strip_comment(text) for text in source.split("\n")]
    if (line or 0) > len(code):
        return None  # a verdict of another text
    for find in FINDERS.get(stage.reason, ()) if stage.reason else ():
        found = find(stage.message, code, line or 0)
        if found is not None:
            return found
    return None


# --- threads that diverge --------------------------------------------------------------------------------------------


def _find_divergence(message: str, code: list[str], line: int) -> Place | None:
    """Return the `if`, `return` or loop that keeps some threads from a barrier or a shuffle."""
    named = dict.fromkeys([*map(int, re.findall(r"\bline (\d{1,9})\b", message)), line])
    for number in [number for number in named if number <= len(code)]:
        for at in range(number, max(0, number - REACH), -1):
            first, last = body_of(code, at)
            if (
                re.search(r"\bif\s*\(", code[at - 1])
                and first <= number <= last
                and re.search(r"__sync|__shfl|_sync\(", code[number - 1])
            ):
                what = "call" if "shfl" in code[number - 1] else "barrier"
                lines = (number,) if at == number else (at, number)
                where = f"in line {number}" if at == number else f"in line {number} is inside the `if` of line {at}"
                reached = f"The `if` {where} lets" if at == number else f"The {what} {where}, which lets"
                return Place(
                    f"{reached} only some threads reach the {what}. Move the {what} out of the `if`.", lines, True
                )
    return next((found for number in named if (found := _find_diverging_path(code, number))), None)


def explain_return(early: Sequence[int], line: int, text: str) -> str:
    """Return that lines let some threads return before the barrier or the shuffle of a line. text: of that line."""
    what = "shuffle" if "__shfl" in text else "barrier"
    lets = "lets" if len(early) == 1 else "let"
    return (
        f"{join_lines(early).capitalize()} {lets} some threads return before the {what} in line {line}, which all must "
        "reach. Let them go on, and put the condition around each access that they must not make."
    )


def explain_late_return(late: Sequence[int], line: int, loop: int, text: str) -> str:
    """Return that lines let some threads return, for which the barrier of a line waits in the loop's next pass."""
    what = "shuffle" if "__shfl" in text else "barrier"
    lets = "lets" if len(late) == 1 else "let"
    return (
        f"{join_lines(late).capitalize()} {lets} some threads return, and in the next pass of the loop in line {loop} "
        f"the {what} in line {line} waits for them. Let them go on, and put the condition around what they must not do."
    )


def _find_diverging_path(code: list[str], line: int) -> Place | None:
    """Return the `return` before a barrier or shuffle, or the loop around it, that not all threads pass alike.

    Of one in a helper function, the call is meant that they do not all reach.
    """
    text = Text("\n".join(code))
    around = text.around(line)
    if around is None or not re.search(divergence.ALL_CALL, code[line - 1]):
        return None
    if around.kernel:
        paths = [(around, text.start(line))]
    else:
        kernels = [one for one in text.functions.values() if one.kernel]
        paths = [(one, at) for one in kernels for at in divergence.find_calls(text, around, one)]
    in_warp = divergence.is_of_a_warp(code[line - 1])
    for kernel, at in paths:
        to = text.line(at)
        before = range(text.line(kernel.start), to)
        if early := divergence.find_early_returns(text, kernel, to, before, in_warp):
            return Place(explain_return(early, to, code[line - 1]), tuple(early), True)
        head, late = divergence.find_late_returns(text, kernel, at, in_warp)
        if late:
            return Place(explain_late_return(late, to, head, code[line - 1]), tuple(late), True)
        if loop := divergence.find_uneven_loop(text, kernel, at, in_warp):
            what, move = f"waits for all threads in line {line}", "Move that out of the loop"
            if not around.kernel:
                what, move = (
                    f"calls `{around.name}`, which {what}",
                    f"Call `{around.name}` outside of the loop",
                )
            words = (
                f"The threads make different numbers of passes of the loop in line {loop}, and each pass {what}. "
                f"{move}, or let all threads make the same number of passes."
            )
            return Place(words, (to,), True)
    return None


# --- values never set, and values that two threads access -------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Around:
    """A statement that encloses a line: the text up to its {, or up to the line, and its body."""

    head: str
    body: str
    line: int  # of the head


def find_around(source: str, line: int) -> list[Around]:
    """Return the `if`, `for` and other statements of a function that enclose a line, outermost first."""
    text = Text(source)
    function = text.around(line)
    if function is None:
        return []
    found = []
    start = text.start(line)
    for begin, end in [*text.heads(function, start)[-MOST_AROUND:], (start, start)]:
        opened = text.code[end : end + 1] == "{"
        head = text.code[begin:end] if begin < end else text.code[begin:].split("\n", 1)[0]
        body = text.code[end : closing(text.code, end)] if opened else ""
        found.append(Around(head, body, text.line(begin + len(head) - len(head.lstrip()))))
    return found


UNSET = re.compile(r"(?:element (\d+) )?of `(\w+)`, which was never written")


def has_setters(message: str, source: str, line: int) -> bool:
    """Return whether lines set elements of a shared array of which a message says that one was never written, or hand
    the array to a function, which may.
    """
    code = [_strip_comment(text) for text in source.split("\n")]
    place = _find_unset(message, code, line)
    if place is not None:
        return bool(place.beside or place.instead)
    unset = UNSET.search(message)
    if unset is None or not any("__shared__" in text and re.search(rf"\b{unset[2]}\s*\[", text) for text in code):
        return False
    return any(re.search(rf"[(,]\s*{unset[2]}\s*[,)]", text) for text in code)


DIMENSIONS = re.compile(r"((?:\s*\[[^\[\]]*\])+)")


def _find_swapped_index(code: list[str], name: str, declared: int, line: int) -> Place | None:
    """Return the read of an array of two dimensions whose indices run to each other's size."""
    made = re.search(rf"\b{name}\s*\[\s*(\w+)\s*\]\s*\[\s*(\w+)\s*\]", code[declared - 1])
    read = re.search(rf"(?<![\w.]){name}\s*\[\s*([a-z]\w*)\s*\]\s*\[\s*([a-z]\w*)\s*\]", code[line - 1])
    if made is None or read is None or made[1] == made[2] or read[1] == read[2]:
        return None
    bounds = _find_bounds(code, line)
    one, two = bounds.get(read[1], ("", 0))[0], bounds.get(read[2], ("", 0))[0]
    if not (one == made[2] and two != made[2]) and not (two == made[1] and one != made[1]):
        return None
    wrong, size, place = (read[1], made[2], "second") if one == made[2] else (read[2], made[1], "first")
    words = (
        f"`{name}` is declared as `[{made[1]}][{made[2]}]`, and in line {line} `{wrong}` runs to `{size}`: it belongs "
        f"in the {place} index. Read `{name}[{read[2]}][{read[1]}]`."
    )
    return Place(words, (line,), True)


def _find_bounds(code: list[str], line: int) -> dict[str, tuple[str, int]]:
    """Return the upper bound of each loop variable around a line, and the line of its loop."""
    heads = [(one.head, one.line) for one in find_around("\n".join(code), line)]
    found = {}
    for head, at in heads:
        for loop in re.finditer(r"\bfor\s*\([^;]*?(\w+)\s*=[^;]*;\s*\1\s*<\s*([^;]+?)\s*;", head):
            found[loop[1]] = (loop[2], at)
    return found


def _find_read_too_far(code: list[str], name: str, sets: Sequence[int], line: int) -> Place | None:
    """Return the bound of the loop in which a line reads more of an array than a loop before it has set."""
    if len(sets) != 1:
        return None
    written = _find_bounds(code, sets[0])
    index = re.search(rf"(?<![\w.]){name}{DIMENSIONS.pattern}", code[line - 1])
    if not written or index is None:
        return None
    limit, at = list(written.values())[-1]
    names = set(re.findall(r"[A-Za-z_]\w*", limit))
    counts = sorted(name for name in names if not name.isupper())
    for variable, (bound, loop) in _find_bounds(code, line).items():
        if not re.search(rf"\b{variable}\b", index[1]) or not re.fullmatch(r"[A-Za-z_]\w*", bound) or bound in names:
            continue
        made = next((n for n in range(line, at, -1) if re.search(rf"\b{bound}\s*=(?!=)", code[n - 1])), 0)
        uses = set(re.findall(r"[A-Za-z_]\w*", code[made - 1].partition("=")[2])) if made else set()
        if not counts or uses & names or not (made or bound.isupper()):
            continue
        without = f", which line {made} computes without {' and '.join(f'`{one}`' for one in counts)}" if made else ""
        words = (
            f"Line {sets[0]} sets elements of `{name}` only as far as the loop in line {at} runs, to `{limit}`. The "
            f"loop in line {loop} reads on to `{bound}`{without}. Read no further than what was set."
        )
        return Place(words, (made or loop,), True, (sets[0], line))
    return None


def _find_one_per_thread(
    code: list[str], name: str, index: dict[int, str], own: Sequence[int], element: int
) -> Place | None:
    """Return the line that sets one element of an array for each thread, where a block cannot have so many threads."""
    if len(own) != 1 or element < MOST_THREADS:
        return None
    (at,) = own
    variable = re.fullmatch(r"\[(\w+)\]", index[at])
    made = rf"\b{variable[1]}\s*=\s*threadIdx\s*\.\s*x\s*[,;]" if variable else None
    is_thread = index[at] == "[threadIdx.x]" or (made and any(re.search(made, text) for text in code[: at - 1]))
    if not is_thread or any(LOOP.search(one.head) for one in find_around("\n".join(code), at)):
        return None
    words = (
        f"Line {at} sets one element of `{name}` for each thread, and there are more elements than threads. Let each "
        "thread set several: begin at `threadIdx.x` and step by `blockDim.x`."
    )
    return Place(words, (at,), True)


def _find_uncleared(message: str, code: list[str], name: str, line: int) -> Place | None:
    """Return the line that allocates what an atomic operation updates, where nothing has set it."""
    made = [
        n for n, text in enumerate(code, 1) if re.search(rf"(?<![\w.]){name}\s*=\s*(?:torch|at)::empty\w*\s*\(", text)
    ]
    if " updates " not in f" {message}" or len(made) != 1:
        return None
    words = (
        f"`{name}` is allocated in line {made[0]} with arbitrary content, and line {line} adds to it. Use "
        "`torch::zeros`, or let a kernel set it to 0 first."
    )
    return Place(words, (made[0],), True)


def _find_unset(message: str, code: list[str], line: int) -> Place | None:
    """Return where a shared variable is declared and which lines set it before it is read; None where it may be set
    through a pointer.
    """
    unset = UNSET.search(message)
    if unset is None:
        return None
    element, name = unset[1] or "0", unset[2]
    declared = next(
        (n for n in range(line - 1, 0, -1) if "__shared__" in code[n - 1] and re.search(rf"\b{name}\b", code[n - 1])),
        None,
    )
    if declared is None:
        return _find_uncleared(message, code, name, line)
    array = re.search(rf"\b{name}\s*\[", code[declared - 1]) is not None
    handed = re.compile(rf"&\s*{name}\b" + (rf"|(?<![\w.]){name}\b(?!\s*\[)" if array else ""))
    between = range(declared + 1, line)
    if any(handed.search(code[n - 1]) and "atomic" not in code[n - 1] for n in between):
        return None
    setting = re.compile(rf"(?<![\w.]){name}\s*((?:\[[^;=]*?\]\s*)*)=(?!=)")
    sets = {n: found for n in between if (found := setting.search(code[n - 1]))}
    if not sets:
        words = f"`{name}` is declared in line {declared} and used in line {line}, and nothing between sets it. Set "
        words += f"{'its elements' if array else 'it in one thread'}, and put a `__syncthreads()` after that."
        return Place(words, (declared, line))
    index = {n: found[1].replace(" ", "") for n, found in sets.items()}
    own = [n for n in sets if not array or not re.fullmatch(r"\[\d+\]", index[n]) or index[n] == f"[{element}]"]
    named = f"`{name}[{element}]`" if array else f"`{name}`"
    where, sets_them = join_lines(own), "sets" if len(own) == 1 else "set"
    if not own:
        words = f"`{name}` is declared in line {declared}, and nothing sets {named} before line {line} reads it."
    elif cause := (
        _find_swapped_index(code, name, declared, line)
        or _find_read_too_far(code, name, own, line)
        or _find_one_per_thread(code, name, index, own, int(element))
    ):
        return cause
    elif any(index[n] and index[n] != f"[{element}]" for n in own):
        words = f"{where.capitalize()} {sets_them} elements of `{name}`, but in this case not element {element}."
    elif all(_is_conditional(code, n, sets[n].start(), line) for n in own):
        only, met = ("a condition", "it") if len(own) == 1 else ("conditions", "one of them")
        words = f"{named} is set only under {only} ({where}), and in this case no thread of the block meets {met}."
    else:
        reached = "it" if len(own) == 1 else "them"
        words = (
            f"{where.capitalize()} {sets_them} {named}, but in this case no thread of the block reaches {reached} "
            f"before line {line}."
        )
    return Place(words, (), beside=tuple(own or sets))


def _is_conditional(code: list[str], one: int, column: int, other: int) -> bool:
    """Return whether a line's column is under an `if` that does not contain another line of the same function."""
    text = Text("\n".join(code))
    function = text.around(one, other)
    if function is None:
        return False
    apart = set(text.heads(function, text.start(one, column))) - set(text.heads(function, text.start(other)))
    return any(re.search(r"\b(?:if|else|switch)\b", text.code[begin:end]) for begin, end in apart)


def over_passes(source: str, one: int, other: int) -> bool:
    """Return whether two lines are in one loop with a barrier between them in each iteration: then only the way from
    the later line to the next iteration lacks a barrier.
    """
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


# --- launches --------------------------------------------------------------------------------------------------------


def _find_launch_number(message: str, code: list[str], line: int) -> Place | None:
    """Return the lines that compute the number that is out of range, of the grid or of the block."""
    text = " ".join(code[line - 1 : line + 2])
    numbers = re.search(r"<<<(.*?)>>>", text)
    if not numbers:
        return None
    parts = _split_arguments(numbers[1])
    part = parts[0] if "its grid" in message else parts[1] if len(parts) > 1 else parts[0]
    names = [name for name in re.findall(r"[A-Za-z_]\w*", part) if name not in ("dim3", "std", "max", "min")]
    made = [n for name in names for n in _find_definition(code, name, line)]
    if "no block" in message and made:
        inner = [name for n in made for name in re.findall(r"[A-Za-z_]\w*", code[n - 1])]
        sizes = [n for name in inner for n in _find_definition(code, name, n_before=line) if n not in made]
        sizes = [n for n in sizes if re.search(r"=.*[-/]", code[n - 1])] or _find_sizes(code, inner, line)
        if sizes:
            return Place("The sizes that become 0 are computed here:", tuple(dict.fromkeys(sizes[-2:])), True)
    return (
        Place("The number that is out of range is computed here:", tuple(dict.fromkeys(made)), True) if made else None
    )


def _find_sizes(code: list[str], names: list[str], line: int) -> list[int]:
    """Return the lines that compute the sizes of a tensor among these names."""
    for name in names:
        for n in _find_definition(code, name, line):
            inside = re.search(r"\{([^}]*)\}", code[n - 1])
            for size in re.findall(r"[A-Za-z_]\w*", inside[1]) if inside else []:
                made = [
                    k for k in _find_definition(code, size, n) if re.search(rf"\b{size}\s*=[^,;]*[-/]", code[k - 1])
                ]
                if made:
                    return made
    return []


def _find_definition(code: list[str], name: str, n_before: int) -> list[int]:
    """Return the last line before another one that sets a name."""
    made = re.compile(rf"(?<![\w.]){name}\s*(?:=(?!=)|\(.*\)\s*[,;])")
    found = [
        n for n in range(1, n_before) if made.search(code[n - 1]) and not code[n - 1].lstrip().startswith(("if", "for"))
    ]
    return found[-1:]


def _find_null_pointer(message: str, code: list[str], line: int) -> Place | None:
    """Return the lines that make a pointer null."""
    made = [n for n, text in enumerate(code, 1) if re.search(r"\*\s*\w+\s*=\s*(?:nullptr|NULL|0)\s*;", text)]
    return (
        Place("The pointer is null here, and nothing sets it afterwards:", tuple(made), True)
        if "null pointer" in message and made
        else None
    )


def _find_dereference(message: str, code: list[str], line: int) -> Place | None:
    """Return the lines that make a pointer null and dereference it, outside of kernels."""
    if "segmentation fault" not in message:
        return None
    for n, text in enumerate(code, 1):
        made = re.search(r"\*\s*(\w+)\s*=\s*(?:nullptr|NULL|0)\s*;", text)
        used = [
            k
            for k, other in enumerate(code[n:], n + 1)
            if made and re.search(rf"\b{made[1]}\s*(?:\[|->)|\*\s*{made[1]}\b", other)
        ]
        if made and used:
            return Place(f"`{made[1]}` is null, and line {used[0]} dereferences it:", (n, used[0]), True)
    return None


def _find_allocation(message: str, code: list[str], line: int) -> Place | None:
    """Return the allocations with a large number in them, or all allocations."""
    made = [
        n
        for n, text in enumerate(code, 1)
        if re.search(r"torch::(?:empty|zeros|ones|full)\s*\(|torch\.(?:empty|zeros|ones)\(", text)
    ]
    large = [n for n in made if re.search(r"\b\d{6,}", code[n - 1])]
    if not made:
        return None
    one = "The tensor is allocated here:"
    several = "Tensors are allocated here; one of their sizes is far too large:"
    return Place(one if len(large or made) == 1 else several, tuple(large or made), True)


# --- how Python and C++ are bound ------------------------------------------------------------------------------------


def _find_binding(message: str, code: list[str], line: int) -> Place | None:
    """Return the argument of load_inline, or the declaration, that does not fit."""
    within = range(line, min(len(code), line + 12) + 1) if line else range(0)
    argument = {
        name: next((n for n in within if re.search(rf"\b{name}\s*=", code[n - 1])), None)
        for name in ("functions", "cpp_sources")
    }
    if "PYBIND11_MODULE" in message:
        own = [n for n, text in enumerate(code, 1) if text.lstrip().startswith("PYBIND11_MODULE")]
        lines = [*own, *([argument["functions"]] if argument["functions"] else [])]
        return (
            Place("Both of these create the Python module. Remove one of them:", tuple(lines), True)
            if len(lines) > 1
            else None
        )
    if "but cpp_sources is empty" in message:
        return (
            Place("The declaration is missing here:", (argument["cpp_sources"],), True)
            if argument["cpp_sources"]
            else None
        )
    if "which cpp_sources does not declare" in message:
        lines = [n for n in argument.values() if n]
        return Place("These lines name different functions:", tuple(sorted(lines)), True) if lines else None
    if "no source defines it" in message:
        name = re.search(r"`(?:\w+::)*(\w+)\(", message)
        declared = [n for n, text in enumerate(code, 1) if name and re.search(rf"\b{name[1]}\s*\([^)]*\)\s*;", text)]
        defined = [
            n
            for n, text in enumerate(code, 1)
            if re.match(r"\s*(?:torch|at)::Tensor\s+\w+\s*\(", text) and ";" not in text
        ]
        words = "The declaration and the definition differ in the name or the parameters:"
        other = re.search(r"Tensor\s+(\w+)", code[defined[0] - 1]) if len(defined) == 1 else None
        if other and name and other[1] != name[1]:
            words = (
                f"cpp_sources declares `{name[1]}`, and the function is defined as `{other[1]}`. Give both one name:"
            )
        return Place(words, tuple(dict.fromkeys(defined + declared)), True) if declared and defined else None
    return None


# --- text ------------------------------------------------------------------------------------------------------------


def _strip_comment(text: str) -> str:
    return re.sub(r"//.*|(?<!\S)#(?!include|define|pragma).*", "", text)


def _split_arguments(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


FINDERS = {
    **dict.fromkeys((Reason.kernel_timeout, Reason.timeout, Reason.build_timeout), (find_endless_loop,)),
    **dict.fromkeys((Reason.barrier_divergence, Reason.warp_divergence), (_find_divergence,)),
    Reason.uninitialized: (_find_unset,),
    Reason.race: (find_same_index,),
    Reason.out_of_bounds: (find_unset_index, find_untested, find_returned_index),
    Reason.division_by_zero: (find_zero_divisor,),
    Reason.stack_overflow: (find_stack_use,),
    Reason.launch_error: (_find_launch_number,),
    Reason.illegal_address: (_find_null_pointer,),
    Reason.crash: (_find_dereference,),
    Reason.out_of_memory: (_find_allocation,),
    **dict.fromkeys(
        (Reason.undeclared_function, Reason.missing_cpp_sources, Reason.link_error, Reason.compile_error),
        (_find_binding,),
    ),
}
