"""Rewrite a kernel as somebody would who hands in another's work: rename, reorder, reformat, rewrite loops.

Each disguise edits text with regular expressions; none uses the parser that `grader class similar` compares with.
Disguised kernels mean the same. `disguise` applies all of them, each wherever its own dice allow it.
"""

from __future__ import annotations

import random
import re
import subprocess

from tests.grader.classroom.honest_kernels import OBVIOUS, make_kernels, put_together
from tests.grader.classroom.honest_student import Kernel

DECLARED = re.compile(
    r"\b(?:int|int64_t|long|size_t|unsigned|float|double)\s*\*?\s*([A-Za-z_]\w*)\s*(?==|\[|;|,(?! (?:int|float)))"
)
PLAIN = re.compile(r"^(?:const )?(?:int|int64_t|long|size_t|unsigned|float|double) \*?(\w+) = [^;{}]*;$")
FOR = re.compile(r"^for \((?P<init>[^;]*); (?P<test>[^;]*); (?P<step>[^;]*)\) \{$")
STYLES = ["Google", "Microsoft", "GNU", "WebKit", "Mozilla", "LLVM"]
OTHER_REMARKS = [
    "compute",
    "my index",
    "inner part",
    "done",
    "see the slides",
    "main loop",
    "index math",
    "result here",
]
SYLLABLES = "ka lo mi ne pu ra so ti ve wu xa yo zi".split()


def rename(text: list[str], dice: random.Random) -> list[str]:
    """Return the lines with other names for everything that they declare."""
    whole = "\n".join(text)
    names = dict.fromkeys(DECLARED.findall(whole))
    names |= dict.fromkeys(re.findall(r"(?:float|int) \w+(?: = \w+\.?\w*)?, (\w+) =", whole))
    for name in names:
        new = "".join(dice.choices(SYLLABLES, k=dice.randint(1, 3))) + dice.choice(
            ["", "", "_", str(dice.randint(0, 9))]
        )
        while re.search(rf"\b{new}\b", whole):
            new += dice.choice(SYLLABLES)
        whole = re.sub(rf"(?<![\w.]){name}\b", new, whole)
    return whole.split("\n")


def change_comments(text: list[str], dice: random.Random) -> list[str]:
    """Return the lines with other comments."""
    lines = [line for line in text if not line.startswith("//")]
    for _ in range(dice.randint(0, 4)):
        lines.insert(dice.randint(0, len(lines)), f"// {dice.choice(OTHER_REMARKS)}")
    return lines


def reorder(text: list[str], dice: random.Random) -> list[str]:
    """Return the lines with neighbouring declarations swapped that do not need each other, and factors swapped."""
    lines = list(text)
    for _ in range(3):
        for i in range(len(lines) - 1):
            one, other = PLAIN.match(lines[i]), PLAIN.match(lines[i + 1])
            if not one or not other or dice.random() < 0.4 or "++" in lines[i] + lines[i + 1]:
                continue
            if not re.search(rf"\b{one[1]}\b", lines[i + 1]) and not re.search(rf"\b{other[1]}\b", lines[i]):
                lines[i], lines[i + 1] = lines[i + 1], lines[i]
    return [line if FOR.match(line) else swap_operands(line, dice) for line in lines]


def swap_operands(line: str, dice: random.Random) -> str:
    """Return a line in which a * b became b * a here and there, for names and subscripts."""

    def swapped(match: re.Match) -> str:
        return match[0] if dice.random() < 0.4 else f"{match[2]} * {match[1]}"

    if line.startswith(("const float*", "float*", "//")):
        return line
    operand = r"[A-Za-z_]\w*(?:\[[^\[\]]*\])?"
    line = re.sub(rf"(?<![\w.*/%\])] )(?<![\w.*])({operand}) \* ({operand})(?! [*/%]|[\[(\w.])", swapped, line)
    return line


def rewrite_loops(text: list[str], dice: random.Random) -> list[str]:
    """Return the lines with other steps and tests, and some of the for loops as while loops."""
    lines, open_ = [], []  # open_: the step that each open brace's end takes
    for line in text:
        match = FOR.match(line)
        if line.startswith("}"):
            step = open_.pop() if open_ else ""
            lines += [f"{step};", "}", "}"] if step else [line]
            if line.endswith("{"):
                open_.append("")
            continue
        if not match:
            lines.append(line)
            open_ += [""] * line.endswith("{")
            continue
        init, test, step = match["init"], match["test"], rewrite_step(match["step"], dice)
        if dice.random() < 0.5:
            test = re.sub(r"^(\w+) < ([\w.]+)$", r"\2 > \1", test)
        rest = text[text.index(line) :]
        if dice.random() < 0.6 and "continue" not in " ".join(rest):
            lines += ["{", f"{init};", f"while ({test}) {{"]
            open_.append(step)
        else:
            lines.append(f"for ({init}; {test}; {step}) {{")
            open_.append("")
    return lines


def rewrite_step(step: str, dice: random.Random) -> str:
    """Return another wording of a loop's step."""
    name = re.sub(r"\W.*|^\W+", "", step.lstrip("+"))
    if step in (f"++{name}", f"{name}++", f"{name} += 1"):
        return dice.choice([f"++{name}", f"{name}++", f"{name} += 1", f"{name} = {name} + 1"])
    return re.sub(r"^(\w+) \+= (.*)$", r"\1 = \1 + \2", step) if dice.random() < 0.5 else step


def change_types(text: list[str], dice: random.Random) -> list[str]:
    """Return the lines with other integer types, const here and there, and declarations apart from their values."""
    other = dice.choice(["int", "int64_t", "long long", "unsigned int"])
    lines = []
    for line in text:
        if not FOR.match(line):
            line = re.sub(r"\b(?:int|size_t|long|unsigned) (?=\w+ =)", f"{other} ", line)
        split = re.fullmatch(r"(int|int64_t|float|double|long long) (\w+) = ([^;{}]*);", line)
        if split and dice.random() < 0.2 and "," not in line:
            lines += [f"{split[1]} {split[2]};", f"{split[2]} = {split[3]};"]
        else:
            lines.append(line.removeprefix("const ") if dice.random() < 0.3 and "*" not in line.split("=")[0] else line)
    return lines


def change_guards(text: list[str], dice: random.Random) -> list[str]:
    """Return the lines with `if (a >= b) return;` turned into a block around the rest, and other spellings."""
    lines = list(text)
    for i, line in enumerate(lines):
        match = re.fullmatch(r"if \((\w+) >= (\w+)\) return;", line)
        if match and dice.random() < 0.5:
            return [*lines[:i], f"if ({match[1]} < {match[2]}) {{", *lines[i + 1 :], "}"]
        if match and dice.random() < 0.5:
            lines[i] = f"if ({match[2]} <= {match[1]}) {{\nreturn;\n}}"
    return "\n".join(lines).split("\n")


def extract_value(text: list[str], dice: random.Random) -> list[str]:
    """Return the lines with one subscript computed in a line of its own."""
    places = [i for i, line in enumerate(text) if re.match(r"^\w+ \+= x\[[^\[\]]*\] \*", line)]
    if not places or dice.random() < 0.5:
        return list(text)
    at = dice.choice(places)
    inside = re.search(r"x\[([^\[\]]*)\]", text[at])
    assert inside
    lines = [f"const int64_t place = {inside[1]};", text[at].replace(inside[0], "x[place]", 1)]
    return [*text[:at], *lines, *text[at + 1 :]]


def add_idle_lines(text: list[str], dice: random.Random) -> list[str]:
    """Return the lines with one or two that do nothing."""
    lines = list(text)
    for number in range(dice.randint(0, 2)):
        lines.insert(dice.randint(0, 1), f"{dice.choice(['int', 'float'])} unused{number} = {dice.randint(0, 9)};")
    return lines


def rename_parameters(text: str, seed: str) -> str:
    """Return a submission whose kernels have other parameters' names."""
    dice = random.Random(seed)
    for head in re.findall(r"__global__ void \w+\(([^)]*)\)", text):
        at = text.index(head)
        end = text.find("\n}\n", at)
        kernel = text[at:end]
        for name in re.findall(r"(\w+)(?=,|$)", head):
            new = dice.choice(SYLLABLES).upper() + dice.choice(SYLLABLES)
            if dice.random() < 0.7 and not re.search(rf"\b{new}\b", kernel):
                kernel = re.sub(rf"(?<![\w.]){name}\b", new, kernel)
        text = text[:at] + kernel + text[end:]
    return text


STEPS = (change_guards, rewrite_loops, reorder, extract_value, change_types, add_idle_lines, rename, change_comments)


def disguise(kernel: Kernel, seed: str) -> Kernel:
    """Return a copy of a kernel in which all disguises were used, and functions stand in another order."""
    dice = random.Random(seed)
    bodies = []
    for body in kernel.bodies:
        lines = "\n".join(body).split("\n")
        for step in STEPS:
            lines = step(lines, dice)
        bodies.append(lines)
    helpers = kernel.helpers
    if helpers:
        name = re.search(r"(\w+)\(", helpers[0])
        assert name
        new = "do_" + dice.choice(SYLLABLES) + dice.choice(SYLLABLES)
        inside = rename(rewrite_loops(helpers[1:], dice), dice)
        helpers = [helpers[0].replace(name[1], new), *inside]
        bodies = [[line.replace(f"{name[1]}(", f"{new}(") for line in body] for body in bodies]
    return Kernel(bodies, helpers, kernel.edits)


def disguise_file(exercise: str, kernel: Kernel, seed: str) -> str:
    """Return the file of somebody who hands in a disguised copy of a kernel."""
    text = put_together(exercise, disguise(kernel, seed))
    if random.Random(seed).random() < 0.5:
        text = rename_parameters(text, seed)
    return reformat(text, seed)


def reformat(text: str, seed: str) -> str:
    """Return a submission whose CUDA source clang-format laid out in another style."""
    dice = random.Random(seed)
    style = f"{{BasedOnStyle: {dice.choice(STYLES)}, ColumnLimit: {dice.choice([60, 80, 100, 120])}}}"
    before, start, rest = text.partition('cuda_source = r"""\n')
    source, end, after = rest.partition('"""')
    command = ["clang-format", f"--style={style}", "--assume-filename=x.cu"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    return before + start + done.stdout + end + after


def plant_copies(exercise: str, count: int, copies: int, seed: int) -> tuple[list[str], list[tuple[int, int]]]:
    """Return the files of a class, the last `copies` of them disguised, and (original, copy) by their places.

    Nobody copies what every tenth student wrote by himself: a copy of that is no different from one more of them.
    """
    kernels = make_kernels(exercise, count - copies, seed)
    originals = random.Random(seed).sample(range(int(OBVIOUS * count), count - copies), copies)
    widths = random.Random(f"{exercise} {seed}")
    texts = [put_together(exercise, one, widths.choice([2, 4, 4])) for one in kernels]
    texts += [disguise_file(exercise, kernels[at], f"{exercise} {seed} {n}") for n, at in enumerate(originals)]
    return texts, [(at, count - copies + n) for n, at in enumerate(originals)]
