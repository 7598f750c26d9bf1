"""Find where a failure of the stage "gradient" comes from, in the torch.autograd.Function and the C++ that it calls.

Only what the text proves is named: a None in the place of a gradient, the line that makes the tensor of a wrong shape,
the pointer of a tensor that may not be contiguous. If the text leaves two possibilities, no line is named.
"""

from __future__ import annotations

import ast
import re

from grader.diagnosis.backward_memory import find_modified, find_overwritten, find_strided
from grader.diagnosis.gradient_shapes import find_exchanged, find_shape
from grader.diagnosis.missing_gradients import find_missing
from grader.source import syntax
from grader.source.autograd import Student, returns
from grader.source.cpp import Text
from grader.source.places import Place
from grader.verdict import Reason, Stage, StageName


def of(stage: Stage, source: str) -> Place | None:
    """Return the lines that are wrong; None if the text does not show them."""
    if stage.name is not StageName.gradient or stage.reason is None or stage.reason not in LOOKS:
        return None
    try:
        return LOOKS[stage.reason](stage, Student(syntax.parse(source), Text(source)))
    except (SyntaxError, ValueError, RecursionError):  # the search for the origin in a = b; b = a never ends
        return None


def _find_raised(stage: Stage, student: Student) -> Place | None:
    """Find where backward returns, or takes, a wrong number of gradients."""
    count = re.search(
        r"function (\w+)Backward returned an incorrect number of gradients \(expected (\d+), got (\d+)\)", stage.message
    )
    own = next((own for own in student.owns if count and own.name == count[1]), None)
    if own is not None and count is not None:
        wanted, got = int(count[2]), int(count[3])
        lines = [
            line
            for value, line in returns(own.backward)
            if not isinstance(value, (ast.Tuple, ast.List)) or len(value.elts) == got
        ]
        named = f" ({', '.join(f'`{name}`' for name in own.arguments)})" if len(own.arguments) == wanted else ""
        number = f"{wanted} argument{'s' if wanted > 1 else ''}"
        words = (
            f"`backward` returns {got} value{'s' if got > 1 else ''} here. It must return one for each argument of "
            f"`forward` except ctx, and {own.name}'s takes {number}{named}:"
        )
        return Place(words, tuple(lines)) if len(lines) == 1 else None
    given = re.search(r"(\w+)\.backward\(\) (?:takes|missing)", stage.message)
    own = next((own for own in student.owns if given and own.name == given[1]), None)
    return (
        Place(
            "`backward` must take ctx and one gradient for each result of `forward`, and takes another number:",
            (own.backward.lineno,),
        )
        if own
        else None
    )


LOOKS = {
    Reason.missing_gradient: find_missing,
    Reason.gradient_shape: find_shape,
    Reason.wrong_gradient: find_exchanged,
    Reason.backward_exception: _find_raised,
    Reason.backward_modified: find_modified,
    Reason.noncontiguous_gradient: find_strided,
    Reason.saved_overwritten: find_overwritten,
}
