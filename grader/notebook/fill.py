"""%%fill: checks the few lines of CUDA that a lesson's cell leaves to the reader (`%load_ext blanks`).

A blank is compiled for the CPU with every check on, called with a few sizes, and its results are compared with what
Python computes. The first thing that is wrong is said in words, with the line.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class

from grader.notebook import slips
from grader.reports import feedback
from grader.reports.feedback import Words

if TYPE_CHECKING:
    import torch

    from simt.errors import Diagnostic

HOLE = "____"  # stands for what is to be written
FUNCTION = "run"  # the function that is called
SECONDS = 5.0  # for one launch
NEAR = 1e-4  # relative to the value or to 1: results are sums of a few floats


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of a blank's function. words: what is given, as in "with 5 numbers and 2 threads"."""

    words: str
    arguments: tuple[object, ...]


@dataclasses.dataclass(frozen=True)
class Blank:
    """A few lines that a lesson leaves to the reader.

    text: the cell as handed out, with HOLE in it. declaration: of the function `run`. host: its definition, where the
    cell does not contain it. calls: makes the calls, anew each time. expected: returns what a call must return, from
    copies of its arguments. slips: for wrong results, sentences on what was written, each with the regular expression
    that finds it in the cell's code without comments and spaces. launch: what is wrong with the number of blocks and of
    threads in each, for these arguments, though the result is right; empty if nothing is. right: what is said at the
    end.
    """

    text: str
    declaration: str
    calls: Callable[[], Sequence[Call]]
    expected: Callable[..., torch.Tensor]
    host: str = ""
    slips: tuple[tuple[str, str], ...] = ()
    launch: Callable[..., str] | None = None
    right: str = ""


class Answer:
    """What is said of a filled-in cell; displays itself. right: True, False, or None where nothing was filled in."""

    def __init__(self, right: bool | None, parts: list[object]):
        self.right, self._parts = right, parts

    def parts(self) -> list[object]:
        return self._parts

    def __repr__(self) -> str:
        return feedback.as_text(self.parts())

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return feedback.bundle(self.parts())


@magics_class
class FillMagics(Magics):
    """The cell magic %%fill NAME."""

    def __init__(self, shell, blanks: Mapping[str, Blank]):
        super().__init__(shell)
        self.blanks = blanks

    @cell_magic
    def fill(self, line: str, cell: str) -> Answer:
        """Check a cell whose blank has been filled in."""
        name = line.strip()
        if name not in self.blanks:
            near = difflib.get_close_matches(name, self.blanks, 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise UsageError(
                f"%%fill {name}: there is no such blank.{meant} The cell's first line is to stay as it was."
            )
        return check(name, self.blanks[name], cell)


def check(name: str, blank: Blank, cell: str) -> Answer:
    """Compile and run a cell, and say whether it does what the blank asks for."""
    import simt

    if HOLE in _code_of(cell) or cell.strip() == blank.text.strip():
        holes = "each" if _code_of(cell).count(HOLE) > 1 else "the"
        return Answer(
            None,
            [Words(f"Not filled in yet. Replace {holes} `{HOLE}` and run the cell again.", "text", "not_attempted")],
        )
    if not cell.strip():
        return Answer(
            False, [_wrong("The cell is empty. Undo that, or copy the cell from the lesson as it was handed out.")]
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = simt.load_inline(f"fill_{name}", blank.declaration, f"{cell}\n{blank.host}", functions=[FUNCTION])
        for call, again in zip(blank.calls(), blank.calls(), strict=True):  # the first call compiles the checked build
            if parts := _try_call(getattr(module, FUNCTION), blank, call, again, cell):
                return Answer(False, parts)
    except simt.CompileError as error:
        return Answer(False, _describe_build(error.diagnostics, cell))
    except simt.BuildError as error:
        return Answer(False, [_wrong(str(error))])
    return Answer(True, [Words(f"Right. {blank.right}".strip(), "text", "passed")])


def _try_call(function: Callable[..., object], blank: Blank, call: Call, again: Call, cell: str) -> list[object]:
    """Return what is wrong with one call; nothing if it is right. again: the same call, with tensors of its own.

    Raises simt.BuildError.
    """
    import torch

    import simt

    got: object = None
    simt.take_launches()
    with simt.check(seconds=SECONDS) as report:
        arguments = [value.clone() if isinstance(value, torch.Tensor) else value for value in call.arguments]
        try:
            got = function(*arguments)
        except simt.KernelError as error:  # the report has it too, but for a launch that was refused
            if error.reason == "launch_error":
                return [
                    _wrong(f"{call.words}: {error.message}"),
                    *feedback.show_line(cell, error.line),
                    *_find_slips(blank, cell),
                ]
        except simt.BuildError:
            raise
        except Exception as error:
            return [_wrong(f"{call.words}, the function raised {type(error).__name__}: {error}")]
    difference = "" if report.errors else _compare(got, blank.expected(*again.arguments))
    if report.findings and not difference:  # a wrong value says more than a warning
        first = report.findings[0]
        return [
            _wrong(f"{call.words}: {first.message}"),
            *feedback.show_line(cell, first.line),
            *_find_slips(blank, cell),
        ]
    if blank.launch and not difference:
        launches = [(math.prod(grid), math.prod(block)) for _, grid, block in simt.take_launches()]
        found = (blank.launch(*launch, *again.arguments) for launch in launches)
        difference = next(filter(None, found), "")
    return [_wrong(f"{call.words}, {difference}"), *_find_slips(blank, cell)] if difference else []


def _compare(got: object, expected: torch.Tensor) -> str:
    """Say which element is the first that is wrong; empty if none is."""
    import torch

    import simt

    if not isinstance(got, torch.Tensor):
        return f"`{FUNCTION}` returned {got!r} and not a tensor."
    if got.shape != expected.shape:
        return f"the result has the shape {tuple(got.shape)} and should have {tuple(expected.shape)}."
    unwritten = got.contiguous().view(torch.int32) == simt.GLOBAL_MARK if got.dtype == torch.float32 else got != got
    if got.is_floating_point():
        wrong = unwritten | ~torch.isclose(got.double(), expected.double(), rtol=NEAR, atol=NEAR, equal_nan=True)
    else:  # whole numbers are exact
        wrong = got != expected
    if not wrong.any():
        return ""
    index = tuple(wrong.nonzero()[0].tolist())
    place = f"element {list(index)}" if len(index) > 1 else f"element {index[0]}" if index else "the result"
    value, right = got[index].item(), expected[index].item()
    count, total = int(wrong.sum()), wrong.numel()
    many = f" ({count:,} of {total:,} are wrong)" if count > 1 else ""
    if unwritten[index]:
        return f"{place} was never written{many}; it should be {_show(right)}."
    return f"{place} is {_show(value)} and should be {_show(right)}{many}."


def _show(value: float) -> str:
    """Return a whole number with all its digits, another one with six."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}"


def _wrong(text: str) -> Words:
    return Words(text[:1].upper() + text[1:], "text", "failed")


def _find_slips(blank: Blank, cell: str) -> list[object]:
    """Return the sentences on the first known mistake that the cell contains: of any code, else of this blank."""
    if words := slips.find(_code_of(cell)):
        return [Words(words)]
    code = re.sub(r"\s+", "", _code_of(cell))
    found: list[object] = [Words(sentence) for pattern, sentence in blank.slips if re.search(pattern, code)]
    return found[:1]


def _code_of(cell: str) -> str:
    """Return the cell without comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", cell, flags=re.DOTALL)


def _describe_build(diagnostics: Sequence[Diagnostic], cell: str) -> list[object]:
    """Return the first error of the compiler with its line and an explanation."""
    from grader.judging import compiler_messages

    first = next((one for one in diagnostics if one.severity == "error"), None)
    if first is None:
        return [_wrong("The cell does not compile.")]
    lines = cell.split("\n")
    inside = 0 < first.line <= len(lines)
    place = f"Line {first.line} of the cell: " if inside else ""
    explanation = compiler_messages.explain(first.message, first.text, cell, first.line if inside else None)
    parts: list[object] = [_wrong(f"{place}{first.message}")]
    parts += [Words(explanation.text)] if explanation else []
    parts += feedback.show_line(cell, first.line)
    return parts
