"""Find out what overflowed in a line: an index, a sum of values, or words that hold several values each."""

from __future__ import annotations

import re

from grader.source.cpp import Function, Text
from grader.source.divergence import find_assignments

LONGEST = 500  # characters of a line or an expression that are looked at
NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
ELEMENT = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\s*\[")  # of an array
SET = re.compile(r"(?<![\w.>])(?P<name>[A-Za-z_]\w*)\s*(?P<operator>[-+*]?=)(?!=)\s*(?P<value>[^;]*)")
INTO_WORDS = re.compile(
    r"(?:\(\s*(?:const\s+)?|reinterpret_cast<\s*(?:const\s+)?)(?:unsigned\s+)?(?:int|unsigned|u?int32_t)(?:\s+const)?\s*\*"
)
DATA = re.compile(r"(?P<tensor>\w+)\s*\.\s*(?:const_|mutable_)?data_ptr\s*<\s*(?P<type>[\w:]+)\s*>")
BITS = {
    **dict.fromkeys(("int8_t", "uint8_t", "char", "signed char", "unsigned char"), 8),
    **dict.fromkeys(("int16_t", "uint16_t", "short", "at::Half", "c10::Half", "at::BFloat16"), 16),
}
COUNTS = {8: "four", 16: "two"}  # values in a word of 32 bits


def explain_overflow(source: str, line: int) -> str:
    """Return why the value that a line computes exceeds its type and what to do; empty where it may be an index."""
    text = Text(source)
    function = text.around(line)
    if function is None:
        return ""
    code = text.code.split("\n")[line - 1][:LONGEST]
    sets = [one for one in SET.finditer(code) if ELEMENT.search(one["value"])]
    if len(sets) != 1 or _computes_index(sets[0]["value"]) or _is_index(text, function, sets[0]["name"]):
        return ""
    name, arrays = sets[0]["name"], list(dict.fromkeys(ELEMENT.findall(sets[0]["value"])))
    packed = [_find_words(text, function, array) for array in arrays]
    bits = {found[0] for found in packed if found}
    if len(bits) == 1 and all(packed) and "*" in _drop_subscripts(sets[0]["value"]):
        (size,), lines = bits, sorted({found[1] for found in packed if found})
        where = " and ".join(str(n) for n in lines)
        held = " and of ".join(f"`{array}`" for array in arrays)
        by = ", as `__dp4a` does" if size == 8 else ""
        return (
            f"Each `int` of {held} holds {COUNTS[size]} values of {size} bits: see line {where}. Multiply these values "
            f"one by one{by}, not the whole `int`."
        )
    return (
        f"`{name}` is not an index: what is added up in it is too large. Check what is multiplied and added, or give "
        f"`{name}` a wider type, such as `long long`."
    )


def _drop_subscripts(code: str) -> str:
    """Return an expression without what stands in square brackets."""
    while (shorter := re.sub(r"\[[^\[\]]*\]", "", code)) != code:
        code = shorter
    return code


def _computes_index(value: str) -> bool:
    """Return whether an expression has a subscript in which a product may overflow."""
    return bool(re.search(r"\[[^\]]*[*][^\]]*\]", value))


def _is_index(text: Text, function: Function, name: str) -> bool:
    """Return whether a name is used in a subscript or a bounds test, or in what another such name is computed from."""
    body = text.body(function)
    found, new = set(), {name}
    uses: dict[str, set[str]] = {}  # of a name, the names that are computed from it
    for one, value in find_assignments(body):
        for used in NAME.findall(_drop_subscripts(value[:LONGEST])):
            uses.setdefault(used, set()).add(one)
    others = set(re.findall(r"\b(?:float|double|__half|bool)\s+(\w+)", body))
    while new:
        found |= new
        new = {one for used in new for one in uses.get(used, ())} - found - others
    inside = {one for part in re.findall(r"\[([^\[\]]*)\]", body) for one in NAME.findall(part)}
    tested = {one for pair in re.findall(r"\b(\w+)\s*[<>]=?\s*(?!<|>)|[<>]=?\s*(\w+)", body) for one in pair}
    return bool(found & inside) or name in tested


def _find_words(text: Text, function: Function, array: str, depth: int = 0) -> tuple[int, int] | None:
    """Return the size in bits of the values that are packed into an array's elements of 32 bits, and the line of the
    cast; None if they are not known to be packed. The array is a parameter, or is filled from one.
    """
    if array in function.names:
        at = function.names.index(array)
        for host in text.functions.values():
            for launch in text.launches(host):
                if launch.kernel == function.name and at < len(launch.arguments):
                    argument, offset = launch.arguments[at]
                    data = DATA.search(argument)
                    if data and INTO_WORDS.search(argument) and data["type"] in BITS:
                        return BITS[data["type"]], text.line(offset)
        return None
    index = r"(?:\[(?:[^\[\]]|\[[^\[\]]*\])*\]\s*)+"
    stored = text.find(rf"(?<![\w.]){array}\s*{index}=(?!=)([^;]*);", function)
    sources = list(dict.fromkeys(one for store in stored for one in ELEMENT.findall(store[1]) if one != array))
    if len(sources) != 1 or depth > 2:
        return None
    return _find_words(text, function, sources[0], depth + 1)
