"""Find lines by what integers cannot hold: fractions, signs, sums of many terms. And sums that one thread keeps."""

from __future__ import annotations

import re

from grader.diagnosis.kernel_forms import MOST_LINES
from grader.source.cpp import Function, Text

_WHOLE = r"(?:const\s+)?(?:int|long|long\s+long|int32_t|int64_t|unsigned|unsigned\s+int|uint32_t)"
_ROUNDS = re.compile(r"\(\s*(?:int|long|unsigned|int64_t)\s*\)|__\w*2int\w*|\w*(?:rint|round|floor|ceil|trunc)f?\s*\(")
_FRACTION = r"(?<![\w.])\d+\.\d*f?(?!\w)"
# calls that count, or vote on, what their argument is true of: their result is whole whatever is compared in it
_COUNTS = re.compile(r"__syncthreads_(?:count|and|or)\s*\(.*\)|__(?:ballot|any|all)_sync\s*\(.*\)")
_COMPARED = re.compile(r"[\w.\[\]()]+\s*(?:[<>!=]=|(?<![<>-])[<>](?![<>]))\s*[\w.\[\]()]+")  # true or false: whole
_EXCHANGES = r"__shfl|__shared__|atomic|__reduce_|\bcg::|cooperative"


def find_cut_fractions(source: str, stores: list[int]) -> list[int]:
    """Return the lines that keep a float in a whole number which a store then uses, and sums of floats in one."""
    found = []
    for text, kernel in _kernels(source):
        given = [(kind, name) for kind, name in kernel.parameters if re.search(r"\b(?:float|double)\b", kind)]
        floats = {name for kind, name in given if "*" not in kind}
        floats |= {match[1] for match in text.find(r"\b(?:float|double)\s+(\w+)\s*=", kernel)}
        wanted = [rf"(?<![\w.]){name}\b(?!\s*\[)" for name in floats]
        wanted += [rf"(?<![\w.]){name}\s*\[" for kind, name in given if "*" in kind]
        is_float = re.compile("|".join([*wanted, _FRACTION]))
        code = text.code.split("\n")
        for made in text.find(rf"\b{_WHOLE}\s+(\w+)\s*=(?!=)([^;,]*)[;,]", kernel):
            value = re.sub(r"\[[^\[\]]*\]", "[]", made[2])
            value = _COMPARED.sub("", _COUNTS.sub("", value))
            if _ROUNDS.search(value) or not (is_float.search(value) or _adds(text, kernel, made[1], is_float)):
                continue
            if any(re.search(rf"\]\s*[-+*/]?=[^=].*(?<![\w.]){made[1]}\b(?![^\[]*\])", code[n - 1]) for n in stores):
                found.append(text.line(made.start()))
    return found


def _adds(text: Text, kernel: Function, name: str, is_float: re.Pattern[str]) -> bool:
    """Return whether a kernel adds floats to a variable without rounding them on purpose."""
    added = [re.sub(r"\[[^\[\]]*\]", "[]", match[1]) for match in text.find(rf"(?<![\w.]){name}\s*\+=([^;]*);", kernel)]
    return any(is_float.search(value) and not _ROUNDS.search(value) for value in added)


def find_narrow_sums(source: str, stores: list[int]) -> list[int]:
    """Return the lines that declare a sum of 8 or 16 bits."""
    found = []
    for text, kernel in _kernels(source):
        for made in text.find(r"(?<!unsigned )\b(?:short|int16_t|int8_t|signed\s+char)\s+(\w+)\s*=\s*0\s*[;,]", kernel):
            if text.find(rf"\b{made[1]}\s*\+=|\b{made[1]}\s*=[^=;]*\b{made[1]}\b", kernel):
                found.append(text.line(made.start()))
    return found


def find_unsigned_bytes(source: str, stores: list[int]) -> list[int]:
    """Return the lines that take bytes as 0 to 255 in a file whose values are int8."""
    if not re.search(r"\bint8_t\b|\bkInt8\b|\bkChar\b|torch\.int8|__dp4a", source):
        return []
    found = []
    for text, kernel in _kernels(source):
        unsigned = "|".join(match[1] for match in text.find(r"\b(?:unsigned|uint32_t)\s+(\w+)\s*=", kernel)) or "(?!)"
        masks = text.find(r">>[^;&()]*&\s*(?:255|0[xX][fF]{2})\b(?!\s*\)\s*[-^])", kernel)
        calls = text.find(rf"__dp4a\s*\(\s*(?:\(\s*(?:unsigned|uint32_t)[^)]*\)|(?:{unsigned})\s*,)", kernel)
        lines = {text.line(match.start()) for match in (*masks, *calls)}
        found += [n for n in lines if "int8_t)" not in text.code.split("\n")[n - 1]]
    return sorted(found)


def find_unsigned_differences(source: str, stores: list[int]) -> list[int]:
    """Return the lines that subtract a number and keep the difference in a variable without a sign."""
    return [
        text.line(made.start())
        for text, kernel in _kernels(source)
        for made in text.find(r"\b(?:unsigned|unsigned\s+int|uint32_t|uint8_t)\s+\w+\s*=[^;=]*\)\s*-\s*\d+\s*;", kernel)
    ]


def find_signed_remainders(source: str, stores: list[int]) -> list[int]:
    """Return the lines that take the remainder of a shifted word that has a sign."""
    found = []
    for text, kernel in _kernels(source):
        for made in text.find(r"(?<!unsigned )\b(?:int|int32_t)\s+(\w+)\s*=", kernel):
            shifted = text.find(rf"\(\s*{made[1]}\s*>>[^()]*(?:\([^()]*\))?[^()]*\)\s*%", kernel)
            found += [text.line(match.start()) for match in shifted]
    return sorted(set(found))


def find_kept_sums(source: str, stores: list[int]) -> list[int]:
    """Return the store of one lane or thread in a kernel whose threads share a sum and exchange nothing."""
    found = []
    for text, kernel in _kernels(source):
        helpers = [one for one in text.functions.values() if not one.kernel and text.find(_EXCHANGES, one)]
        if text.find("|".join([_EXCHANGES, *(rf"\b{one.name}\b" for one in helpers)]), kernel):
            continue
        first = r"\bif\s*\(\s*(?:{}|threadIdx\.x(?:\s*[%&]\s*\d+)?)\s*==\s*0\s*\)"
        for made in text.find(r"\b(?:int|unsigned)\s+(?:\w+\s*=[^;]*,\s*)?(\w+)\s*=\s*threadIdx\.x\b", kernel):
            loops = text.find(rf"\bfor\s*\([^;]*=\s*(?:[^;=]*\+\s*)?{made[1]}\s*;", kernel)
            code = text.code.split("\n")
            for store in stores if loops and text.find(r"\+=", kernel) else ():
                own = text.around(store)
                near = "\n".join(code[max(0, store - 2) : store])
                if own is not None and own.name == kernel.name and re.search(first.format(made[1]), near):
                    found.append(store)
    return sorted(set(found))


def _kernels(source: str) -> list[tuple[Text, Function]]:
    """Return the kernels, each with the text that it stands in; none of a file that is too long to search."""
    if source.count("\n") > MOST_LINES:
        return []
    text = Text(source)
    return [(text, one) for one in text.functions.values() if one.kernel]
