"""Turns inline PTX, asm("…" : outputs : inputs), into calls of simt/ptx.h: a function for each instruction."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass

from .errors import CompileError, Diagnostic, Unsupported
from .ptx_forms import FORMS, INSTEAD, SPECIAL, Form
from .tokens import Token, closing_of, directives_of, flat, newlines, next_token, split_at_commas, text_at

WORDS = ("asm", "__asm__", "__asm")
FIRST = 75  # the compute capability, times 10, that has what needs no newer one

# Kinds of registers, named by the constraints: the C++ type, and the words for it.
_TYPES = {"r": "unsigned", "h": "unsigned short", "l": "unsigned long long", "f": "float", "d": "double", "p": "bool"}
_CALLED = {
    "r": "an integer of 32 bits", "h": "an integer of 16 bits", "l": "an integer of 64 bits",
    "f": "a float", "d": "a double", "p": "a predicate",
}  # fmt: skip
_DECLARED = {
    **dict.fromkeys(("b32", "u32", "s32", "f16x2", "bf16x2"), "r"), **dict.fromkeys(("b64", "u64", "s64"), "l"),
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), "h"), "f32": "f", "f64": "d", "pred": "p",
}  # fmt: skip

# A letter of Form.operands -> the kinds of registers that ptxas takes there, and how each becomes the first of them.
_TAKES = {
    "f": {"f": "{}", "r": "::simt::ptx::number({})"}, "b": {"r": "{}", "f": "::simt::ptx::bits({})"},
    "d": {"d": "{}", "l": "::simt::ptx::number64({})"}, "l": {"l": "{}", "d": "::simt::ptx::bits64({})"},
    "u": {"r": "{}"}, "w": {"l": "{}"}, "h": {"h": "{}"}, "p": {"p": "{}"},
}  # fmt: skip
# (kind of a result, kind of the register that it goes to) -> how it gets there, where they differ.
_BACK = {
    ("f", "r"): "::simt::ptx::bits({})", ("r", "f"): "::simt::ptx::number({})",
    ("d", "l"): "::simt::ptx::bits64({})", ("l", "d"): "::simt::ptx::number64({})",
}  # fmt: skip


class _Outside(Exception):
    """What only a GPU can do, in a sentence."""


class _Wrong(Exception):
    """What nvcc would refuse too, in a sentence."""


@dataclass(frozen=True)
class _Operand:
    """One of asm's. kind: of _TYPES, or "n", a constant."""

    kind: str
    output: bool
    read: bool
    expression: str


def translate(tokens: list[Token], source: str, label: str) -> int:
    """Rewrites every asm statement; returns the compute capability that they need, times 10; 0 where there is none.

    source, label: the student's text, and what it is known as. Raises Unsupported for instructions that have no
    counterpart here, CompileError for those that nvcc refuses too.
    """
    outside, wrong, newest = [], [], 0
    conditional = _conditional(tokens) if any(t.text in WORDS for t in tokens) else set()
    for i, token in enumerate(tokens):
        if token.kind != "word" or token.text not in WORDS or (end := _end(tokens, i)) < 0:
            continue
        try:
            text, since = _rewritten(tokens[i : end + 1])
        except (_Outside, _Wrong) as sentence:
            if i in conditional:
                _replace(tokens, i, end, f"({{ static_assert(false, {json.dumps(str(sentence))}); }})")
                continue
            found = outside if isinstance(sentence, _Outside) else wrong
            found.append(Diagnostic(label, token.line, 1, "error", str(sentence), source.split("\n")[token.line - 1]))
            continue
        newest = max(newest, since)
        _replace(tokens, i, end, text)
    if outside or wrong:
        raise (Unsupported if outside else CompileError)(outside + wrong)
    return newest


def _replace(tokens: list[Token], i: int, end: int, text: str) -> None:
    breaks = newlines(tokens[i : end + 1])
    for t in tokens[i : end + 1]:
        t.kind, t.text = "space", ""
    tokens[i].kind, tokens[i].text = "rewritten", text + breaks


def _conditional(tokens: list[Token]) -> set[int]:
    """Tokens between #if and #endif: what is refused there is an error only if it is compiled."""
    found, depth, directives = set(), 0, directives_of(tokens)
    for i in range(len(tokens)):
        if directives.get(i) == i:
            word = text_at(tokens, next_token(tokens, i))
            depth += word in ("if", "ifdef", "ifndef")
            depth -= word == "endif"
        elif depth:
            found.add(i)
    return found


def _end(tokens: list[Token], i: int) -> int:
    """Index of the bracket that closes the asm statement at i, or -1."""
    opening = next_token(tokens, i)
    while text_at(tokens, opening) in ("volatile", "__volatile__", "__volatile"):
        opening = next_token(tokens, opening)
    return closing_of(tokens, opening) if text_at(tokens, opening) == "(" else -1


def _rewritten(statement: list[Token]) -> tuple[str, int]:
    """The C++ in place of an asm statement, and the compute capability that it needs."""
    opening = next(i for i, t in enumerate(statement) if t.text == "(")
    template, *lists = _split_at_colons(statement[opening + 1 : -1])
    operands = [_operand(part, output) for output, each in zip((True, False), lists) for part in split_at_commas(each)]
    text = _template(template, operands)
    if not text.strip() and not operands:
        return flat(statement), FIRST  # a word to the compiler
    body = _Body(operands)
    for each in _statements(text):
        body.add(each)
    return body.text(), body.since


# ---- asm: template, operands ----


def _split_at_colons(tokens: list[Token]) -> list[list[Token]]:
    """Splits at colons that stand inside no bracket; :: is two of them."""
    parts, depth = [[]], 0
    for token in tokens:
        if token.kind == "mark":
            depth += (token.text in "([{") - (token.text in ")]}")
            if depth == 0 and token.text in (":", "::"):
                parts += [[] for _ in token.text]
                continue
        parts[-1].append(token)
    return parts


def _template(tokens: list[Token], operands: list[_Operand]) -> str:
    """The template's text. #parameter, in a macro, becomes one more operand."""
    words, text = [t for t in tokens if t.kind not in ("space", "comment") and t.text[:1] != "\\"], ""
    for before, token in zip(["", *(t.text for t in words)], words):
        if token.kind == "string":
            text += _literal(token.text)
        elif token.kind == "word" and before == "#":
            text += f"%{len(operands)}"
            operands.append(_Operand("n", False, True, f"({token.text})"))
        elif token.text != "#":
            raise _Outside(f"`asm`: a template that isn't only string literals can't be read on the CPU: `{token.text}`.")
    return text


def _literal(text: str) -> str:
    if raw := re.fullmatch(r'R"([^()\\\s]{0,16})\((.*)\)\1"', text, re.DOTALL):
        return raw[2]
    return ast.literal_eval(re.sub(r"\\\r?\n", "", text).replace("\\?", "?"))


def _operand(tokens: list[Token], output: bool) -> _Operand:
    words = [t for t in tokens if t.kind not in ("space", "comment") and t.text[:1] != "\\"]
    if words[0].text == "[":
        raise _Wrong("nvcc knows the operands of asm by their numbers, %0, %1 and so on, not by [name].")
    if len(words) < 4 or words[0].kind != "string" or words[1].text != "(" or words[-1].text != ")":
        raise _Wrong(f'An operand of asm is a constraint and an expression in brackets, "r"(x), not {flat(tokens)}.')
    constraint, expression = words[0].text.strip('"'), flat(tokens[tokens.index(words[1]) :])
    kind = constraint.lstrip("=+&")
    if output != (constraint[:1] in ("=", "+")):
        rule = 'an output\'s begins with = or +, as "=r"' if output else 'an input\'s is a letter alone, as "r"'
        raise _Wrong(f'The constraint "{constraint}" of {expression} stands in the wrong list: {rule}.')
    if kind not in (*"rhlfd", *("" if output else "n")):
        raise _Wrong(
            f'`asm`: the constraint "{constraint}" of {expression} is none that works here: '
            '"h", "r", "l" are integers of 16, 32, 64 bits, "f" is a float, "d" a double, "n" a constant.'
        )
    if constraint[0] == "+" and re.search(r"\+\+|--", expression):
        raise _Wrong(f"The operand {expression} of asm is read and written: ++ or -- would count twice; move it out.")
    return _Operand(kind, output, constraint[0] != "=", expression)


# ---- PTX ----

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def _statements(text: str) -> list[str]:
    """The declarations and instructions of a template, without the braces of scopes."""
    text, found = _COMMENT.sub(" ", text), []
    while text := text.lstrip(" \t\r\n;"):
        if text[0] in "{}":
            text = text[1:]
            continue
        if label := re.match(r"[$%\w]+:(?!:)", text):
            raise _Outside(f"`{label[0]}`: labels of PTX can't run on the CPU; a loop or branch of C++ can.")
        end = _statement_end(text)
        if end == len(text):
            raise _Wrong(f"`{text.split()[0]}`: a PTX instruction ends with a semicolon, and here it is missing.")
        found.append(" ".join(text[:end].split()))
        text = text[end:]
    return found


def _statement_end(text: str) -> int:
    """Where the semicolon stands, or the brace that closes the scope around the statement."""
    depth = 0
    for at, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if c == ";" or depth < 0:
            return at
    return len(text)


def _split(text: str) -> list[str]:
    """An instruction's operands."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "{[") - (c in "}]")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts] if text else []


class _Body:
    """The C++ of one asm statement as it grows: inputs, instructions, outputs."""

    def __init__(self, operands: list[_Operand]):
        self.operands = operands
        self.declared: dict[str, str] = {}  # name -> kind
        self.lines: list[str] = []
        self.since = FIRST

    def text(self) -> str:
        lines = []
        for n, o in enumerate(self.operands):
            if o.kind != "n":
                value = f"::simt::ptx::from_{o.kind}({o.expression})" if o.read else "{}"
                lines.append(f"{_TYPES[o.kind]} simt_{n} = {value};")
        lines += [f"{_TYPES[kind]} simt_r_{name} = {{}};" for name, kind in self.declared.items()]
        lines += self.lines
        for n, o in enumerate(self.operands):
            if o.output:
                lines.append(f"{o.expression} = ::simt::ptx::to_{o.kind}<decltype({o.expression})>(simt_{n});")
        return f"({{ {' '.join(lines)} }})" if lines else "((void)0)"

    def add(self, statement: str) -> None:
        if statement.startswith(".reg"):
            return self.declare(statement)
        match = re.fullmatch(r"(?:@(!?)([%\w$]+) )?([a-z][\w.:]*)(?: (.*))?", statement)
        if not match:
            word = statement.split()[0]
            raise _Outside(f"`{word}`: directives of PTX can't run on the CPU; C++ that does the same can.")
        name, operands = match[3], _split(match[4] or "")
        line = self.call(name, operands)
        if match[2]:
            line = f"if ({match[1]}{self.value(name, match[2], 'p')}) {{ {line} }}"
        self.lines.append(line)

    def declare(self, statement: str) -> None:
        match = re.fullmatch(r"\.reg ?\.(\w+) (.+)", statement)
        kind = _DECLARED.get(match[1]) if match else None
        names = [n.strip() for n in match[2].split(",")] if match else []
        if kind is None or not all(re.fullmatch(r"[%$\w]+(<\d+>)?", n) for n in names):
            kinds = ".b16, .b32, .b64, .f32, .f64 and .pred"
            raise _Outside(f"`{statement}`: such registers can't be had on the CPU; {kinds} can.")
        for name in names:
            base, _, count = name.rstrip(">").partition("<")
            for each in [f"{base}{i}" for i in range(int(count))] if count else [base]:
                self.declared[self.plain(each)] = kind

    @staticmethod
    def plain(name: str) -> str:
        return name.replace("%", "").replace("$", "_S")

    # ---- one instruction ----

    def call(self, name: str, operands: list[str]) -> str:
        if name.startswith("mov."):
            return self.move(name, operands)
        for form in FORMS:
            if match := re.fullmatch(form.pattern, name):
                self.since = max(self.since, form.since)
                return self.apply(name, form, match.groupdict(), operands)
        instead = next(words for pattern, words in INSTEAD if re.match(pattern, name))
        raise _Outside(f"`{name}`: this PTX instruction can't run on the CPU, only on a GPU; {instead}.")

    def apply(self, name: str, form: Form, groups: dict[str, str], operands: list[str]) -> str:
        results, _, arguments = form.operands.rpartition("=")
        takes = [t.format(**groups) for t in (results + " " + arguments).split()]
        least = sum(not t.endswith("?") for t in takes)
        if not least <= len(operands) <= len(takes):
            raise _Wrong(f"`{name}` has {_counted(least, 'operand')}, and here it is given {len(operands) or 'none'}.")
        n = len(results.split())
        given = [each for text, t in zip(operands[n:], takes[n:]) for each in self.argument(name, text, t.rstrip("?"))]
        call = f"::simt::ptx::{form.call.format(**groups)}({', '.join(given)})"
        return self.store(name, operands[0], takes[0], call) if n else f"{call};"

    def argument(self, name: str, text: str, takes: str) -> list[str]:
        if takes[0] == "[":
            return [self.address(name, text, takes[1])]
        if takes[0] == "#":
            return [f"::simt::ptx::constant<{self.constant(name, text, takes[1:])}>{{}}"]
        return [self.value(name, each, takes[-1]) for each in self.vector(name, text, takes)]

    def vector(self, name: str, text: str, takes: str) -> list[str]:
        """The registers of an operand: several in braces, or one."""
        braces = text.startswith("{") and text.endswith("}")
        found = _split(text[1:-1].strip()) if braces else [text]
        count = int(takes[:-1] or 1)
        if len(found) != count or (braces and len(takes) == 1):
            wanted = f"{count} registers in braces" if count > 1 else "one register"
            raise _Wrong(f"`{name}` has {wanted} where here {text} stands.")
        return found

    def store(self, name: str, text: str, takes: str, call: str) -> str:
        if "|" in takes:
            letters, found = takes.split("|"), [part.strip() for part in text.split("|")]
            parts = zip(found, letters, "xy")
            writes = " ".join(self.write(name, each, letter, f"simt_v.{member}") for each, letter, member in parts)
            return f"{{ const auto simt_v = {call}; {writes} }}"
        found = self.vector(name, text, takes)
        if len(found) == 1:
            return self.write(name, found[0], takes[-1], call)
        parts = zip(found, "xyzw")
        writes = " ".join(self.write(name, each, takes[-1], f"simt_v.{member}") for each, member in parts)
        return f"{{ const auto simt_v = {call}; {writes} }}"

    # ---- operands ----

    def register(self, name: str, text: str) -> tuple[str, str] | None:
        """(kind, C++ name) of a register; None where `text` is none."""
        if match := re.fullmatch(r"%(\d+)", text):
            n = int(match[1])
            if n >= len(self.operands):
                count = _counted(len(self.operands), "operand")
                raise _Wrong(f"`{name}` uses %{n}, but this asm has {count}: the first is %0.")
            return self.operands[n].kind, f"simt_{n}"
        plain = self.plain(text.replace("%%", ""))
        return (self.declared[plain], f"simt_r_{plain}") if plain in self.declared else None

    def value(self, name: str, text: str, takes: str) -> str:
        """What is read, as a parameter of the letter `takes` has it."""
        if register := self.register(name, text):
            kind, variable = register
            if kind == "n":
                return self.typed(f"({self.operands[int(text[1:])].expression})", takes)
            if kind not in _TAKES[takes]:
                wanted, found, mend = _CALLED[self.own(takes)], _CALLED[kind], self.mend(text, takes)
                raise _Wrong(f"`{name}` takes {wanted} where {text} stands, which is {found}{mend}.")
            return _TAKES[takes][kind].format(variable)
        if special := re.fullmatch(r"%%?([a-z_]\w*(\.[xyz])?)", text):
            if special[1] not in SPECIAL:
                known = ", ".join(f"%{each}" for each in SPECIAL)
                raise _Outside(f"`%{special[1]}`: this register of PTX can't be had on the CPU; {known} can.")
            return self.typed(SPECIAL[special[1]], takes)
        if bits := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
            return f"::simt::ptx::number(0x{bits[1]}u)" if takes == "f" else f"0x{bits[1]}u"
        if re.fullmatch(r"-?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?", text) and takes in "fd":
            return self.typed(f"{text}", takes)
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)[uU]?", text):
            return self.typed(text, takes)
        raise _Wrong(f"`{name}`: {text} is neither an operand such as %0, nor a declared register, nor a number.")

    @staticmethod
    def own(takes: str) -> str:
        """The kind of register that a parameter is by itself."""
        return next(iter(_TAKES[takes]))

    def typed(self, expression: str, takes: str) -> str:
        return f"({_TYPES[self.own(takes)]})({expression})"

    def mend(self, text: str, takes: str) -> str:
        return f': its constraint is "{self.own(takes)}"' if re.fullmatch(r"%\d+", text) and takes != "p" else ""

    def write(self, name: str, text: str, takes: str, value: str) -> str:
        """The assignment of a result, whose type is that of a parameter of the letter `takes`."""
        if text == "_":
            return f"{value};"
        register = self.register(name, text)
        if register is None or register[0] == "n":
            raise _Wrong(f"`{name}` writes its result into {text}, which is no register.")
        kind, variable = register
        if re.fullmatch(r"%\d+", text) and not self.operands[int(text[1:])].output:
            raise _Wrong(f"`{name}` writes {text}, which is among the inputs: outputs follow asm's first colon.")
        own = self.own(takes)
        if kind not in _TAKES[takes]:
            raise _Wrong(f"`{name}` gives {_CALLED[own]}, but {text} is {_CALLED[kind]}{self.mend(text, takes)}.")
        return f"{variable} = {_BACK.get((own, kind), '{}').format(value)};"

    def constant(self, name: str, text: str, allowed: str = "") -> str:
        if allowed and text.isdigit() and text not in allowed.split("|"):
            raise _Outside(f"`{name}` of {text} can't run on the CPU; it can of {allowed.replace('|', ' or ')}.")
        register = self.register(name, text)
        if register and register[0] != "n":
            raise _Wrong(f'`{name}` has a constant where {text} stands: a number, or an operand of constraint "n".')
        return self.value(name, text, "u")

    def address(self, name: str, text: str, space: str) -> str:
        match = re.fullmatch(r"\[ ?([^\s+\]]+) ?(?:\+ ?(-?\w+|%\d+) ?)?\]", text)
        if not match:
            raise _Wrong(f"`{name}` has an address in square brackets where here {text} stands.")
        offset = f" + {self.constant(name, match[2])}" if match[2] else ""
        kind = (self.register(name, match[1]) or ("",))[0]
        if space == "s" and kind == "r":
            return f"{self.value(name, match[1], 'u')}{offset}"
        if kind != "l":
            letters = '"r" or "l"' if space == "s" else '"l"'
            found = _CALLED.get(kind, "no register")
            raise _Wrong(f"`{name}`: the address {match[1]} is {found}, and its constraint must be {letters}.")
        whole = self.value(name, match[1], "w") + offset.replace("(unsigned)", "(long long)(int)")
        return f"(unsigned)({whole})" if space == "s" else whole

    def move(self, name: str, operands: list[str]) -> str:
        """mov: a register, a special one, a number, or two halves in braces."""
        match = re.fullmatch(r"mov\.([busf])(16|32|64)|mov\.pred", name)
        if not match:
            raise _Outside(f"`{name}`: this PTX instruction can't run on the CPU; mov of 16, 32 and 64 bits can.")
        if len(operands) != 2:
            raise _Wrong(f"`{name}` has 2 operands, and here it is given {len(operands) or 'none'}.")
        target, source = operands
        letters = {"16": "hhhh", "32": "buuf", "64": "lwwd"}[match[2]] if match[1] else "pppp"
        takes = letters["busf".index(match[1] or "b")]
        half, wide = {"32": ("h", ""), "64": ("b", "64")}.get(match[2] or "", ("", ""))
        if source.startswith("{") and half:
            low, high = self.vector(name, source, f"2{half}")
            pair = f"packed{wide}({self.value(name, low, half)}, {self.value(name, high, half)})"
            return self.write(name, target, takes, f"::simt::ptx::{pair}")
        if target.startswith("{") and half:
            low, high = self.vector(name, target, f"2{half}")
            parts = f"::simt::ptx::unpacked{wide}({self.value(name, source, takes)})"
            writes = f"{self.write(name, low, half, 'simt_v.x')} {self.write(name, high, half, 'simt_v.y')}"
            return f"{{ const auto simt_v = {parts}; {writes} }}"
        return self.write(name, target, takes, self.value(name, source, takes))


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
