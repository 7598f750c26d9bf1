"""Write submissions as students who do not know of each other might: one idea in many wordings, or another idea.

`make_submissions("conv2d", 300, seed)` returns the same texts for the same seed. About a tenth is nearly the same short
kernel, the one that the exercise's hint suggests. They are written to be compared, not to be graded.
"""

from __future__ import annotations

import random
import re

from grader.paths import KERNELS_STUDENT
from grader.problems.exercises import MARK
from tests.grader.classroom.honest_conv2d import write_conv2d
from tests.grader.classroom.honest_groupnorm import write_groupnorm
from tests.grader.classroom.honest_student import Kernel, Student

OBVIOUS = 0.1  # share of students who write what the hint says, in the most usual words

WRITERS = {"conv2d": write_conv2d, "groupnorm": write_groupnorm}

# -- habits --


def add_habits(s: Student, body: list[str]) -> list[str]:
    """Return a body with what some students do in all their kernels."""
    text = "\n".join(body)
    ahead: list[str] = []
    for axis in "xyz":
        if f"threadIdx.{axis}" in text and s.chance(0.2):
            name = s.pick(f"t{axis}", f"th_{axis}", f"my_{axis}")
            ahead.append(s.let(name, f"threadIdx.{axis}", "int"))
            text = text.replace(f"threadIdx.{axis}", name)
        if f"blockIdx.{axis}" in text and s.chance(0.15):
            name = s.pick(f"b{axis}", f"blk_{axis}", f"block{axis.upper()}")
            ahead.append(s.let(name, f"blockIdx.{axis}", "int"))
            text = text.replace(f"blockIdx.{axis}", name)
    for name, value in (
        ("taps", "C * KH * KW"),
        ("n_pix", "OH * OW"),
        ("last", "elements - 1"),
        ("size", "OC * OH * OW"),
    ):
        if re.search(rf"(?<![*\w] ){re.escape(value)}(?! \*)", text) and s.chance(0.3):
            ahead.append(s.let(name, value))
            text = re.sub(rf"(?<![*\w] ){re.escape(value)}(?! \*)", name, text)
    if s.chance(0.12):
        text = re.sub(r"\bx\[", "in[", text)
        ahead.append("const float* in = x;" if "in[" in text and "x +=" not in text else "")
        text = text if ahead[-1] else text.replace("in[", "x[")
    if "THREADS" in text and s.chance(0.2):
        text = text.replace("THREADS", "blockDim.x")
    if s.chance(0.2):
        text = re.sub(r"\n(y\[.*\]) = ([^;]*[*+(][^;]*);", r"\nfloat out_value = \2;\n\1 = out_value;", text)
    if s.chance(0.15):
        text = re.sub(r"\ny\[([^\]]*[*+][^\]]*)\] =", r"\nint64_t out_at = \1;\ny[out_at] =", text)
    lines = [one for one in ahead if one] + text.split("\n")
    if s.chance(0.08):
        lines.append("__syncthreads();")
    if s.chance(0.05):
        lines.insert(0, s.pick("if (C <= 0) return;", "if (x == nullptr) return;"))
    return lines


def indent(lines: list[str], depth: int, width: int) -> str:
    """Return lines of code indented by their braces."""
    out = []
    for line in "\n".join(lines).split("\n"):
        depth -= line.startswith("}")
        out.append(" " * (width * depth) + line)
        depth += line.endswith("{")
    return "\n".join(out) + "\n"


def put_together(exercise: str, kernel: Kernel, width: int = 4) -> str:
    """Return the exercise's file with what a student wrote in its places."""
    text = (KERNELS_STUDENT / f"{exercise}.py").read_text(encoding="utf-8")
    text = text.partition("\n# Made from")[0] + "\n"
    head, *rest = text.split("// " + MARK + ":")  # what stands before the marks, and behind their hints
    text = head.rpartition("\n")[0] + "\n"
    for number, (part, body) in enumerate(zip(rest, kernel.bodies)):
        after = part.partition("\n")[2]
        last = number == len(rest) - 1
        text += indent(body, 1, width) + (after if last else after.rpartition("\n")[0] + "\n")
    for old, new in kernel.edits:
        text = text.replace(old, new)
    if kernel.helpers:
        comment, kernel_head, behind = text.partition("__global__")
        text = comment.rpartition("\n//")[0] + "\n\n" + indent(kernel.helpers, 0, width) + kernel_head + behind
    return text


def make_kernels(exercise: str, count: int, seed: int = 0) -> list[Kernel]:
    """Return what `count` students wrote."""
    found = []
    for number in range(count):
        student = Student(f"{exercise} {seed} {number}", number < OBVIOUS * count)
        kernel = WRITERS[exercise](student)
        bodies = [student.remark(add_habits(student, body)) for body in kernel.bodies]
        found.append(Kernel(bodies, kernel.helpers, kernel.edits))
    return found


def make_submissions(exercise: str, count: int, seed: int = 0) -> list[str]:
    """Return the files of `count` students."""
    widths = random.Random(f"{exercise} {seed}")
    return [put_together(exercise, one, widths.choice([2, 4, 4])) for one in make_kernels(exercise, count, seed)]
