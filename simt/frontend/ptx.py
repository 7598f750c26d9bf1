"""Rewrite inline PTX, asm("…" : outputs : inputs), to calls of simt/ptx.h, one function per instruction."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass

from simt.errors import CompileError, Unsupported
from simt.frontend.ptx_forms import FORMS, INSTEAD, SPECIAL, WGMMA, Form
from simt.frontend.source import Source
from simt.frontend.tokens import Token, find_closing, find_next, flatten, get_text, keep_newlines, split_at_commas

WORDS = ("asm", "__asm__", "__asm")
OLDEST = 75  # the compute capability, times 10, of instructions that need no newer GPU

# Kinds of registers, named by their constraints -> the C++ type; and -> the name in messages.
_TYPES = {"r": "unsigned", "h": "unsigned short", "l": "unsigned long long", "f": "float", "d": "double", "p": "bool"}
_NAMES = {
    "r": "a 32-bit integer", "h": "a 16-bit integer", "l": "a 64-bit integer",
    "f": "a float", "d": "a double", "p": "a predicate",
}  # fmt: skip
_DECLARED = {
    **dict.fromkeys(("b32", "u32", "s32", "f16x2", "bf16x2"), "r"), **dict.fromkeys(("b64", "u64", "s64"), "l"),
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), "h"), "f32": "f", "f64": "d", "pred": "p",
}  # fmt: skip

# A letter of Form.operands -> the kinds of registers that ptxas accepts there, and the conversion of each to the first.
_CONVERSIONS = {
    "f": {"f": "{}", "r": "::simt::ptx::number({})"}, "b": {"r": "{}", "f": "::simt::ptx::bits({})"},
    "d": {"d": "{}", "l": "::simt::ptx::number64({})"}, "l": {"l": "{}", "d": "::simt::ptx::bits64({})"},
    "u": {"r": "{}"}, "w": {"l": "{}"}, "h": {"h": "{}"}, "p": {"p": "{}"},
}  # fmt: skip
# (kind of a result, kind of the register that it is written to) -> the conversion, if the two differ.
_RESULT_CONVERSIONS = {
    ("f", "r"): "::simt::ptx::bits({})", ("r", "f"): "::simt::ptx::number({})",
    ("d", "l"): "::simt::ptx::bits64({})", ("l", "d"): "::simt::ptx::number64({})",
}  # fmt: skip


class _UnsupportedPtx(Exception):
    """PTX that only a GPU can run. The text is the message for the student."""


class _InvalidPtx(Exception):
    """PTX that nvcc refuses too. The text is the message for the student."""


@dataclass(frozen=True)
class _Operand:
    """An operand of asm. kind: a key of _TYPES, or "n", a constant."""

    kind: str
    output: bool
    read: bool
    expression: str


def translate(tokens: list[Token], source: Source) -> int:
    """Rewrite every asm statement; return the compute capability, times 10, that they need, or 0 if there is none.

    tokens: a copy of the source's tokens. Raises Unsupported for instructions that cannot run on the CPU, CompileError
    for those that nvcc refuses too.
    """
    unsupported, invalid, newest = [], [], 0
    conditional = _find_conditional(source) if any(t.text in WORDS for t in tokens) else set()
    for i, token in enumerate(tokens):
        if token.kind != "word" or token.text not in WORDS or (end := _find_statement_end(tokens, i)) < 0:
            continue
        try:
            text, since = _rewrite_statement(tokens[i : end + 1])
        except (_UnsupportedPtx, _InvalidPtx) as error:
            if i in conditional:
                _replace(tokens, i, end, f"({{ static_assert(false, {json.dumps(str(error))}); }})")
                continue
            found = unsupported if isinstance(error, _UnsupportedPtx) else invalid
            found.append(source.make_error(token.line, str(error)))
            continue
        newest = max(newest, since)
        _replace(tokens, i, end, text)
    if unsupported or invalid:
        raise (Unsupported if unsupported else CompileError)(unsupported + invalid)
    return newest


def _replace(tokens: list[Token], i: int, end: int, text: str) -> None:
    breaks = keep_newlines(tokens[i : end + 1])
    for t in tokens[i : end + 1]:
        t.kind, t.text = "space", ""
    tokens[i].kind, tokens[i].text = "rewritten", text + breaks


def _find_conditional(source: Source) -> set[int]:
    """Return the tokens between #if and #endif, where refused PTX is an error only if it is compiled."""
    found, depth, tokens, directives = set(), 0, source.tokens, source.directives
    for i in range(len(tokens)):
        if directives.get(i) == i:
            word = get_text(tokens, find_next(tokens, i))
            depth += word in ("if", "ifdef", "ifndef")
            depth -= word == "endif"
        elif depth:
            found.add(i)
    return found


def _find_statement_end(tokens: list[Token], i: int) -> int:
    """Return the index of the bracket that closes the asm statement at i, or -1."""
    opening = find_next(tokens, i)
    while get_text(tokens, opening) in ("volatile", "__volatile__", "__volatile"):
        opening = find_next(tokens, opening)
    return find_closing(tokens, opening) if get_text(tokens, opening) == "(" else -1


def _rewrite_statement(statement: list[Token]) -> tuple[str, int]:
    """Return the C++ that replaces an asm statement, and the compute capability that it needs."""
    opening = next(i for i, t in enumerate(statement) if t.text == "(")
    template, *lists = _split_at_colons(statement[opening + 1 : -1])
    operands = [
        _read_operand(part, output) for output, each in zip((True, False), lists) for part in split_at_commas(each)
    ]
    text = _read_template(template, operands)
    if not text.strip() and not operands:
        return flatten(statement), OLDEST  # a barrier for the compiler
    body = _Body(operands)
    for each in _split_statements(text):
        body.add(each)
    return body.text(), body.since


# ---- asm: template, operands ----


def _split_at_colons(tokens: list[Token]) -> list[list[Token]]:
    """Split at colons outside brackets. :: counts as two colons."""
    parts, depth = [[]], 0
    for token in tokens:
        if token.kind == "mark":
            depth += (token.text in "([{") - (token.text in ")]}")
            if depth == 0 and token.text in (":", "::"):
                parts += [[] for _ in token.text]
                continue
        parts[-1].append(token)
    return parts


def _read_template(tokens: list[Token], operands: list[_Operand]) -> str:
    """Return the template's text. A #parameter in a macro becomes one more operand."""
    words, text = [t for t in tokens if t.kind not in ("space", "comment") and t.text[:1] != "\\"], ""
    for before, token in zip(["", *(t.text for t in words)], words):
        if token.kind == "string":
            text += _read_literal(token.text)
        elif token.kind == "word" and before == "#":
            text += f"%{len(operands)}"
            operands.append(_Operand("n", False, True, f"({token.text})"))
        elif token.text != "#":
            raise _UnsupportedPtx(f"`asm`: the template contains `{token.text}`. Use string literals only.")
    return text


def _read_literal(text: str) -> str:
    if raw := re.fullmatch(r'R"([^()\\\s]{0,16})\((.*)\)\1"', text, re.DOTALL):
        return raw[2]
    return ast.literal_eval(re.sub(r"\\\r?\n", "", text).replace("\\?", "?"))


def _read_operand(tokens: list[Token], output: bool) -> _Operand:
    words = [t for t in tokens if t.kind not in ("space", "comment") and t.text[:1] != "\\"]
    if words[0].text == "[":
        raise _InvalidPtx("nvcc does not support named operands in asm. Refer to them by number: %0, %1 and so on.")
    if len(words) < 4 or words[0].kind != "string" or words[1].text != "(" or words[-1].text != ")":
        raise _InvalidPtx(f'{flatten(tokens)} is not an operand of asm. Write a constraint and an expression: "r"(x).')
    constraint, expression = words[0].text.strip('"'), flatten(tokens[tokens.index(words[1]) :])
    kind = constraint.lstrip("=+&")
    if output != (constraint[:1] in ("=", "+")):
        rule = (
            'An output constraint begins with = or +, as in "=r"'
            if output
            else 'An input constraint is a letter alone, as in "r"'
        )
        raise _InvalidPtx(f'The constraint "{constraint}" of {expression} is in the wrong list. {rule}.')
    if kind not in (*"rhlfd", *("" if output else "n")):
        raise _InvalidPtx(
            f'`asm`: unknown constraint "{constraint}" of {expression}. Use "h", "r" or "l" for an integer of 16, 32 '
            'or 64 bits, "f" for a float, "d" for a double, or "n" for a constant.'
        )
    if constraint[0] == "+" and re.search(r"\+\+|--", expression):
        raise _InvalidPtx(f"asm reads and writes the operand {expression}, so ++ or -- would run twice. Move it out.")
    return _Operand(kind, output, constraint[0] != "=", expression)


# ---- PTX ----

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def _split_statements(text: str) -> list[str]:
    """Return the declarations and instructions of a template, without the braces of scopes."""
    text, found = _COMMENT.sub(" ", text), []
    while text := text.lstrip(" \t\r\n;"):
        if text[0] in "{}":
            text = text[1:]
            continue
        if label := re.match(r"[$%\w]+:(?!:)", text):
            raise _UnsupportedPtx(f"`{label[0]}`: PTX labels cannot run on the CPU. Use a C++ loop or branch.")
        end = _find_semicolon(text)
        if end == len(text):
            raise _InvalidPtx(f"`{text.split()[0]}`: the semicolon at the end of this PTX instruction is missing.")
        found.append(" ".join(text[:end].split()))
        text = text[end:]
    return found


def _find_semicolon(text: str) -> int:
    """Return the index of the semicolon, or of the brace that closes the scope around the statement."""
    depth = 0
    for at, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if c == ";" or depth < 0:
            return at
    return len(text)


def _split_operands(text: str) -> list[str]:
    """Split an instruction's operands at their commas."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "{[") - (c in "}]")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts] if text else []


class _Registers:
    """The operands and the declared registers of one asm statement, and the C++ that reads and writes them."""

    def __init__(self, operands: list[_Operand]):
        self.operands = operands
        self.declared: dict[str, str] = {}  # name -> kind

    def declare(self, statement: str) -> None:
        match = re.fullmatch(r"\.reg ?\.(\w+) (.+)", statement)
        kind = _DECLARED.get(match[1]) if match else None
        names = [n.strip() for n in match[2].split(",")] if match else []
        if kind is None or not all(re.fullmatch(r"[%$\w]+(<\d+>)?", n) for n in names):
            kinds = ".b16, .b32, .b64, .f32, .f64 or .pred"
            raise _UnsupportedPtx(f"`{statement}`: the CPU has no such register. Use {kinds}.")
        for name in names:
            base, _, count = name.rstrip(">").partition("<")
            for each in [f"{base}{i}" for i in range(int(count))] if count else [base]:
                self.declared[self.plain(each)] = kind

    @staticmethod
    def plain(name: str) -> str:
        return name.replace("%", "").replace("$", "_S")

    def register(self, name: str, text: str) -> tuple[str, str] | None:
        """Return the kind and the C++ name of a register, or None if `text` is not a register."""
        if match := re.fullmatch(r"%(\d+)", text):
            n = int(match[1])
            if n >= len(self.operands):
                count = _format_count(len(self.operands), "operand")
                raise _InvalidPtx(f"`{name}` uses %{n}, but this asm has {count}. The first operand is %0.")
            return self.operands[n].kind, f"simt_{n}"
        plain = self.plain(text.replace("%%", ""))
        return (self.declared[plain], f"simt_r_{plain}") if plain in self.declared else None

    def value(self, name: str, text: str, takes: str) -> str:
        """Return an operand that is read, converted to the kind of the letter `takes`."""
        if register := self.register(name, text):
            kind, variable = register
            if kind == "n":
                return self.typed(f"({self.operands[int(text[1:])].expression})", takes)
            if kind not in _CONVERSIONS[takes]:
                wanted, found = _NAMES[self.find_kind(takes)], _NAMES[kind]
                remedy = self.suggest_constraint(text, takes)
                raise _InvalidPtx(f"`{name}` takes {wanted}, but {text} is {found}.{remedy}")
            return _CONVERSIONS[takes][kind].format(variable)
        if special := re.fullmatch(r"%%?([a-z_]\w*(\.[xyz])?)", text):
            if special[1] not in SPECIAL:
                known = ", ".join(f"%{each}" for each in SPECIAL)
                raise _UnsupportedPtx(f"`%{special[1]}`: the CPU has no such PTX register. Use one of {known}.")
            return self.typed(SPECIAL[special[1]], takes)
        if bits := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
            return f"::simt::ptx::number(0x{bits[1]}u)" if takes == "f" else f"0x{bits[1]}u"
        if re.fullmatch(r"-?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?", text) and takes in "fd":
            return self.typed(f"{text}", takes)
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)[uU]?", text):
            return self.typed(text, takes)
        raise _InvalidPtx(f"`{name}`: {text} is not an operand such as %0, a declared register or a number.")

    @staticmethod
    def find_kind(takes: str) -> str:
        """Return the kind of register that a parameter with this letter has."""
        return next(iter(_CONVERSIONS[takes]))

    def typed(self, expression: str, takes: str) -> str:
        return f"({_TYPES[self.find_kind(takes)]})({expression})"

    def suggest_constraint(self, text: str, takes: str) -> str:
        kind = self.find_kind(takes)
        return f' Use the constraint "{kind}".' if re.fullmatch(r"%\d+", text) and takes != "p" else ""

    def write(self, name: str, text: str, takes: str, value: str) -> str:
        """Return the assignment of a result, whose kind is that of the letter `takes`."""
        if text == "_":
            return f"{value};"
        register = self.register(name, text)
        if register is None or register[0] == "n":
            raise _InvalidPtx(f"`{name}` writes its result to {text}, which is not a register.")
        kind, variable = register
        if re.fullmatch(r"%\d+", text) and not self.operands[int(text[1:])].output:
            raise _InvalidPtx(f"`{name}` writes {text}, which is an input. Outputs follow the first colon of asm.")
        own = self.find_kind(takes)
        if kind not in _CONVERSIONS[takes]:
            remedy = self.suggest_constraint(text, takes)
            raise _InvalidPtx(f"`{name}` returns {_NAMES[own]}, but {text} is {_NAMES[kind]}.{remedy}")
        return f"{variable} = {_RESULT_CONVERSIONS.get((own, kind), '{}').format(value)};"

    def vector(self, name: str, text: str, takes: str) -> list[str]:
        """Return the registers of an operand: several in braces, or one."""
        braces = text.startswith("{") and text.endswith("}")
        found = _split_operands(text[1:-1].strip()) if braces else [text]
        count = int(takes[:-1] or 1)
        if len(found) != count or (braces and len(takes) == 1):
            wanted = f"{count} registers in braces" if count > 1 else "one register"
            raise _InvalidPtx(f"`{name}` takes {wanted} in the place of {text}.")
        return found

    def constant(self, name: str, text: str, allowed: str = "") -> str:
        if allowed and text.isdigit() and text not in allowed.split("|"):
            values = allowed.replace("|", " or ")
            raise _UnsupportedPtx(f"`{name}` with the constant {text} cannot run on the CPU. Use {values}.")
        register = self.register(name, text)
        if register and register[0] != "n":
            raise _InvalidPtx(
                f'`{name}` takes a constant in the place of {text}: a number, or an operand with the constraint "n".'
            )
        return self.value(name, text, "u")

    def address(self, name: str, text: str, space: str) -> str:
        match = re.fullmatch(r"\[ ?([^\s+\]]+) ?(?:\+ ?(-?\w+|%\d+) ?)?\]", text)
        if not match:
            raise _InvalidPtx(f"`{name}` takes an address in square brackets in the place of {text}.")
        offset = f" + {self.constant(name, match[2])}" if match[2] else ""
        kind = (self.register(name, match[1]) or ("",))[0]
        if space == "s" and kind == "r":
            return f"{self.value(name, match[1], 'u')}{offset}"
        if kind != "l":
            letters = '"r" or "l"' if space == "s" else '"l"'
            found = _NAMES.get(kind, "not a register")
            raise _InvalidPtx(f"`{name}`: the address {match[1]} is {found}. Use the constraint {letters}.")
        whole = self.value(name, match[1], "w") + offset.replace("(unsigned)", "(long long)(int)")
        return f"(unsigned)({whole})" if space == "s" else whole


class _Body:
    """The C++ of one asm statement, built step by step: inputs, instructions, outputs."""

    def __init__(self, operands: list[_Operand]):
        self.registers = _Registers(operands)
        self.lines: list[str] = []
        self.since = OLDEST
        self.read_if: dict[int, str] = {}  # operand that may be unwritten -> the condition under which it is read

    def text(self) -> str:
        lines = []
        for n, o in enumerate(self.registers.operands):
            if o.kind != "n":
                read = o.expression
                if n in self.read_if:
                    read = f"::simt::ptx::sum_before({self.read_if[n]}, {o.expression})"
                value = f"::simt::ptx::from_{o.kind}({read})" if o.read else "{}"
                lines.append(f"{_TYPES[o.kind]} simt_{n} = {value};")
        lines += [f"{_TYPES[kind]} simt_r_{name} = {{}};" for name, kind in self.registers.declared.items()]
        lines += self.lines
        for n, o in enumerate(self.registers.operands):
            if o.output:
                lines.append(f"{o.expression} = ::simt::ptx::to_{o.kind}<decltype({o.expression})>(simt_{n});")
        return f"({{ {' '.join(lines)} }})" if lines else "((void)0)"

    def add(self, statement: str) -> None:
        if statement.startswith(".reg"):
            return self.registers.declare(statement)
        match = re.fullmatch(r"(?:@(!?)([%\w$]+) )?([a-z][\w.:]*)(?: (.*))?", statement)
        if not match:
            word = statement.split()[0]
            raise _UnsupportedPtx(f"`{word}`: PTX directives cannot run on the CPU. Write this part in C++.")
        name, operands = match[3], _split_operands(match[4] or "")
        line = self.call(name, operands)
        if match[2]:
            line = f"if ({match[1]}{self.registers.value(name, match[2], 'p')}) {{ {line} }}"
        self.lines.append(line)

    def call(self, name: str, operands: list[str]) -> str:
        if name.startswith("mov."):
            return self.move(name, operands)
        if match := re.fullmatch(WGMMA, name):
            self.since = max(self.since, 90)
            return self.multiply_group(name, int(match["n"]), match["t"], operands)
        for form in FORMS:
            if match := re.fullmatch(form.pattern, name):
                self.since = max(self.since, form.since)
                return self.apply(name, form, match.groupdict(), operands)
        instead = next(words for pattern, words in INSTEAD if re.match(pattern, name))
        raise _UnsupportedPtx(f"`{name}`: this PTX instruction cannot run on the CPU. Use {instead}.")

    def apply(self, name: str, form: Form, groups: dict[str, str], operands: list[str]) -> str:
        results, _, arguments = form.operands.rpartition("=")
        takes = [t.format(**groups) for t in (results + " " + arguments).split()]
        least = sum(not t.endswith("?") for t in takes)
        if not least <= len(operands) <= len(takes):
            raise _InvalidPtx(f"`{name}` takes {_format_count(least, 'operand')}, not {len(operands)}.")
        n = len(results.split())
        given = [each for text, t in zip(operands[n:], takes[n:]) for each in self.argument(name, text, t.rstrip("?"))]
        call = f"::simt::ptx::{form.call.format(**groups)}({', '.join(given)})"
        return self.store(name, operands[0], takes[0], call) if n else f"{call};"

    def argument(self, name: str, text: str, takes: str) -> list[str]:
        if takes[0] == "[":
            return [self.registers.address(name, text, takes[1])]
        if takes[0] == "#":
            return [f"::simt::ptx::constant<{self.registers.constant(name, text, takes[1:])}>{{}}"]
        return [self.registers.value(name, each, takes[-1]) for each in self.registers.vector(name, text, takes)]

    def store(self, name: str, text: str, takes: str, call: str) -> str:
        if "|" in takes:
            letters, found = takes.split("|"), [part.strip() for part in text.split("|")]
            parts = zip(found, letters, "xy")
            writes = " ".join(
                self.registers.write(name, each, letter, f"simt_v.{member}") for each, letter, member in parts
            )
            return f"{{ const auto simt_v = {call}; {writes} }}"
        found = self.registers.vector(name, text, takes)
        if len(found) == 1:
            return self.registers.write(name, found[0], takes[-1], call)
        parts = zip(found, "xyzw")
        writes = " ".join(self.registers.write(name, each, takes[-1], f"simt_v.{member}") for each, member in parts)
        return f"{{ const auto simt_v = {call}; {writes} }}"

    def multiply_group(self, name: str, columns: int, kind: str, operands: list[str]) -> str:
        """Translate wgmma.mma_async, which adds to as many registers as its shape says."""
        if columns % 8 or not 8 <= columns <= 256:
            raise _InvalidPtx(f"`{name}` has n{columns}. Use a multiple of 8 from 8 to 256.")
        in_registers, registers = len(operands) > 1 and operands[1].startswith("{"), self.registers
        count = 7 if in_registers else 8
        if len(operands) != count:
            where = "registers" if in_registers else "shared memory"
            raise _InvalidPtx(f"`{name}` with its first matrix in {where} takes {count} operands, not {len(operands)}.")
        sums, first, second, adds, *immediates = operands
        if in_registers:
            words = [registers.value(name, each, "b") for each in registers.vector(name, first, "4b")]
            a = f"Registers{{{', '.join(words)}}}"
        else:
            a = f"Descriptor{{{registers.value(name, first, 'w')}}}"
        names = registers.vector(name, sums, f"{columns // 2}f")
        given = [
            f"::simt::ptx::{a}", registers.value(name, second, "w"), registers.value(name, adds, "p"),
            *(f"::simt::ptx::constant<{registers.constant(name, each)}>{{}}" for each in immediates),
            f'"wgmma.m64n{columns}k16.{kind}"', "__builtin_LINE()",
            *(registers.value(name, each, "f") for each in names),
        ]  # fmt: skip
        writes = []
        for first in range(0, len(names), 4):
            parts = zip(names[first : first + 4], "xyzw")
            assigned = " ".join(registers.write(name, each, "f", f"simt_v.{member}") for each, member in parts)
            writes.append(f"{{ const auto simt_v = ::simt::ptx::four_group_sums({first}); {assigned} }}")
        # Sums are not read where scale-d is false, which is known before the instruction if it is a constant.
        constant = adds.isdigit() or (registers.register(name, adds) or ("",))[0] == "n"
        condition = registers.value(name, adds, "p") if constant else "false"
        self.read_if |= {int(each[1:]): condition for each in names if re.fullmatch(r"%\d+", each)}
        return f"::simt::ptx::wgmma<{columns}, ::simt::ptx::{kind}>({', '.join(given)}); {' '.join(writes)}"

    def move(self, name: str, operands: list[str]) -> str:
        """Translate mov of a register, a special register, a number, or two halves in braces."""
        match = re.fullmatch(r"mov\.([busf])(16|32|64)|mov\.pred", name)
        if not match:
            raise _UnsupportedPtx(
                f"`{name}`: this PTX instruction cannot run on the CPU. Use mov of 16, 32 or 64 bits."
            )
        if len(operands) != 2:
            raise _InvalidPtx(f"`{name}` takes 2 operands, not {len(operands)}.")
        (target, source), registers = operands, self.registers
        letters = {"16": "hhhh", "32": "buuf", "64": "lwwd"}[match[2]] if match[1] else "pppp"
        takes = letters["busf".index(match[1] or "b")]
        half, wide = {"32": ("h", ""), "64": ("b", "64")}.get(match[2] or "", ("", ""))
        if source.startswith("{") and half:
            low, high = registers.vector(name, source, f"2{half}")
            pair = f"packed{wide}({registers.value(name, low, half)}, {registers.value(name, high, half)})"
            return registers.write(name, target, takes, f"::simt::ptx::{pair}")
        if target.startswith("{") and half:
            low, high = registers.vector(name, target, f"2{half}")
            parts = f"::simt::ptx::unpacked{wide}({registers.value(name, source, takes)})"
            writes = f"{registers.write(name, low, half, 'simt_v.x')} {registers.write(name, high, half, 'simt_v.y')}"
            return f"{{ const auto simt_v = {parts}; {writes} }}"
        return registers.write(name, target, takes, registers.value(name, source, takes))


def _format_count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
