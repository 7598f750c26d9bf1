"""Mutations of a worker's messages and of submissions' texts, for fuzz.py. A seed makes each."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import msgspec

from grader.verdict import Reason
from grader.worker.claims import CHECK_REASONS
from grader.worker.protocol import MAGIC

LONG = 20_000
INTEGERS = (-1, 0, 1, 2, 63, 10**6, 2**31 - 1, 2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 1, -(2**63))
FLOATS = (float("nan"), float("inf"), -float("inf"), 0.0, -1.0, 1e308, 5e-324)
WORDS = (
    *("", "x", "cpu", "cuda", "meta", "float32", "float99", "bool", "complex128", "quint8", "Tensor", "NoneType"),
    *("tuple of 2 tensors", "list of 1 things", "cuda_sources", "cpp_sources[0]", "error", "warning", "it", "schedule"),
    *("\0", "\x1b[2J\x1b]0;x\x07", "\u202e\ufeff", "<script>alert(1)</script>", "../../etc/passwd", "{}%s{0}", "`" * 9),
    *(str(reason) for reason in Reason),
    *CHECK_REASONS,
)
PHRASES = (
    *("line 1 ", "line 99999999999999999999 ", ", which ", " in line 3:", " no __syncthreads() lies between the two"),
    *("reads element 9 of `x`, which has 5 elements. ", "thread (1, 0, 0) of block (9, 0, 0) ", "CUDA error: "),
    *("element 0 of `s`, which nothing has written", "its grid ", "no block ", "null pointer", "segmentation fault"),
    *("returned an invalid gradient at index 9 - got [1] but expected shape compatible with [2]", "PYBIND11_MODULE"),
    *("`f(x)` is declared and called, but no source defines it", "The kernel's parameters are (", "‘a’ ", "("),
    *("), but this launch gives (", "but cpp_sources is empty", "It begins at byte 8 of 24, 8 past", "9" * 5000),
    *("\n", "//", "[", "{", '"', "aaaa", " "),
)
SHAPES = ([], [0], [2**40, 0], [0, 2**62], [2**62, 2**62], [1] * 64, [1] * 65, [-1], [2**31, 2**31], [3, 0, 2])


def make_text(dice: random.Random) -> str:
    """Return a word, or a long text of a few phrases."""
    if dice.random() < 0.4:
        return dice.choice(WORDS)
    phrases = dice.choices(PHRASES, k=dice.randint(1, 4))
    return ("".join(phrases) * dice.choice((1, 1, 3, 50, 1000, 10_000)))[
        : dice.choice((100, 2000, LONG, LONG + 7, 2 * LONG))
    ]


def make_value(dice: random.Random, like: object) -> object:
    """Return an odd value, most often of the same type as another one."""
    if dice.random() < 0.15:
        like = dice.choice([None, 1, "x", b"x", [], {}, 1.5, True])
    if isinstance(like, bool):
        return not like
    if isinstance(like, int):
        return dice.choice(INTEGERS)
    if isinstance(like, float):
        return dice.choice(FLOATS)
    if isinstance(like, str):
        return make_text(dice)
    if isinstance(like, bytes):
        return mutate_bytes(dice, like)
    if isinstance(like, list):
        return _mutate_list(dice, like)
    if isinstance(like, dict):
        return _mutate_dict(dice, like)
    return dice.choice([1, "x", [0, 0, 0], None, {}])


def _mutate_list(dice: random.Random, like: list) -> list:
    ways: list[Callable[[], list]] = [
        list,
        lambda: like * dice.choice((2, 17, 1001)),
        lambda: like[1:],
        lambda: like[::-1],
        lambda: list(dice.choice(SHAPES)),
        lambda: [make_value(dice, one) for one in like],
        lambda: [None, *like],
    ]
    return dice.choice(ways)()


def _mutate_dict(dice: random.Random, like: dict) -> dict:
    name = dice.choice([*like, "also"])
    ways: list[Callable[[], dict]] = [
        lambda: {key: value for key, value in like.items() if key != name},
        lambda: like | {name: make_value(dice, like.get(name))},
        lambda: like | {make_text(dice): make_text(dice)},
        lambda: {str(number): "x" for number in range(100)},
    ]
    return dice.choice(ways)()


def mutate_bytes(dice: random.Random, data: bytes) -> bytes:
    """Return bytes with a few flipped, cut out, repeated or put in."""
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8))):
        at = dice.randrange(len(changed) + 1)
        way = dice.randrange(5)
        if way == 0 and at < len(changed):
            changed[at] ^= 1 << dice.randrange(8)
        elif way == 1:
            del changed[at : at + dice.choice((1, 4, 1000, len(changed)))]
        elif way == 2:
            changed[at:at] = dice.randbytes(dice.choice((1, 4, 1000)))
        elif way == 3:
            changed[at:at] = changed[:at]
        else:
            changed[at : at + 4] = dice.choice((b"\xff\xff\xff\x7f", b"\x00\x00\xc0\x7f", b"\xff" * 4, b"\0" * 4))
    return bytes(changed[: 1 << 22])


# --- messages --------------------------------------------------------------------------------------------------------


def frame(data: bytes) -> bytes:
    """Return a message as the channel sends it."""
    return MAGIC + len(data).to_bytes(8, "little") + data


def mutate_message(dice: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Return frames to send in place of the message `data`. others: messages of the same and of other conversations."""
    way = dice.random()
    if way < 0.1:
        return mutate_bytes(dice, frame(data))
    if way < 0.2:
        return frame(mutate_bytes(dice, data))
    if way < 0.3:
        number = msgspec.msgpack.decode(data)["number"]
        return frame(msgspec.msgpack.encode(msgspec.msgpack.decode(dice.choice(others)) | {"number": number}))
    if way < 0.35:
        return frame(data) * dice.choice((2, 3, 50))
    if way < 0.4:
        return frame(dice.choice(others)) + frame(data)
    message = msgspec.msgpack.decode(data)
    if way < 0.55:
        message["reply"] = make_failure(dice)
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        message = _mutate_somewhere(dice, message)
    return frame(msgspec.msgpack.encode(message))


def make_failure(dice: random.Random) -> dict[str, Any]:
    """Return a Failure within the schema's bounds, of any reason and any text."""
    failure: dict[str, Any] = {"type": "failure", "reason": dice.choice(WORDS), "kind": make_text(dice)[:200]}
    failure["message"] = make_text(dice)[:LONG]
    note = {"source": dice.choice(WORDS), "line": dice.randrange(100), "severity": "error"}
    note |= {"message": make_text(dice)[:2000], "text": make_text(dice)[:500]}
    more: dict[str, Any] = {
        "line": dice.randrange(300),
        "notes": [note] * dice.choice((1, 50)),
        "kernel": make_text(dice)[:200],
        "source": "cuda_sources",
        "source_line": dice.randrange(100),
        "block": [0, 0, 0],
        "thread": [1, 0, 0],
        "broken": True,
    }
    return failure | dict(dice.sample(sorted(more.items()), dice.randint(0, len(more))))


def _mutate_somewhere(dice: random.Random, value: Any) -> Any:
    """Return the value with one part of it replaced."""
    parts = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    if not parts or dice.random() < 0.12:
        return make_value(dice, value)
    name = dice.choice(parts)
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[name] = _mutate_somewhere(dice, value[name])
    return changed


# --- submissions -----------------------------------------------------------------------------------------------------

TOKENS = re.compile(r"\w+|[^\w\s]")
PIECES = (
    *("(", ")", "{", "}", "[", "]", '"""', "'''", "\\", "\0", "\t", "\r", "\u2028", "ModelNew", "é", "-", "0x", "1e"),
    *("<<<", ">>>", "//", "/*", "*/", "#", "__syncthreads();", "for (;;) {", "if (x) {", "return ", "= ", "while 1:\n"),
    *("class ModelNew: pass\n", "def forward(self, *a): return a\n", "ModelNew = 3\n", "lambda: ", "not ", "f'{"),
    "// >>> exercise: x\n",
)


def mutate_source(dice: random.Random, text: str, others: list[str]) -> str:
    """Return a submission's text with a few lines, words or characters changed."""
    for _ in range(dice.choice((1, 1, 2, 4))):
        text = dice.choice(SOURCE_WAYS)(dice, text, others)
    return text[: 1 << 20]


def _change_lines(dice: random.Random, text: str, others: list[str]) -> str:
    lines = text.split("\n")
    at, to = dice.randrange(len(lines)), dice.randrange(len(lines))
    way = dice.randrange(5)
    if way == 0:
        del lines[at : at + dice.choice((1, 1, 3, 30))]
    elif way == 1:
        lines[at], lines[to] = lines[to], lines[at]
    elif way == 2:
        lines[at:at] = dice.choice(others).split("\n")[: dice.choice((1, 10, 1000))]
    elif way == 3:
        lines[at] = " " * dice.choice((1, 4, 7)) + lines[at]
    else:
        lines[at:at] = [lines[to]] * dice.choice((1, 10, 3000))
    return "\n".join(lines)


def _change_token(dice: random.Random, text: str, others: list[str]) -> str:
    found = list(TOKENS.finditer(text))
    if not found:
        return text
    one, other = dice.choice(found), dice.choice(found)
    return text[: one.start()] + dice.choice((other[0], "", dice.choice(PIECES), one[0] * 2)) + text[one.end() :]


def _insert(dice: random.Random, text: str, others: list[str]) -> str:
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice(PIECES) * dice.choice((1, 1, 2, 100, 30_000)) + text[at:]


def _insert_digits_or_word(dice: random.Random, text: str, others: list[str]) -> str:
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice(("9", "a", " ", "a(", "a ", "x = ")) * dice.choice((5000, 100_000)) + text[at:]


def _cut(dice: random.Random, text: str, others: list[str]) -> str:
    return text[: dice.randrange(len(text) + 1)]


SOURCE_WAYS = (_change_lines, _change_lines, _change_token, _change_token, _insert, _insert_digits_or_word, _cut)
