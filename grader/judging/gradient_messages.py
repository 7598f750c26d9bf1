"""Make the sentences on gradients: missing, wrong, not required, of a wrong shape."""

from __future__ import annotations

import dataclasses
import re

from grader.judging.trial import Finding
from grader.verdict import Reason

# The reason for a wrong output -> the reason for a wrong gradient. Other reasons are the same for both.
REASONS = {
    Reason.wrong_values: Reason.wrong_gradient,
    Reason.constant_output: Reason.wrong_gradient,
    Reason.wrong_shape: Reason.gradient_shape,
    Reason.wrong_dtype: Reason.gradient_shape,
}

OPENINGS = {  # the beginning of compare's sentence on an output -> that of the sentence on a gradient
    "The values are wrong": "{} is wrong",
    "The values are right": "{} is right",
    "The output": "{}",
    "Every value": "{}: every value",
    "The shape is": "{} has the shape",
    "The dtype is": "{} has the dtype",
}

INVALID = re.compile(
    r"returned an invalid gradient at index (\d{1,9}) - got (\[[\d, ]*\]) "
    r"but expected shape compatible with (\[[\d, ]*\])"
)


def describe_wrong(finding: Finding, name: str, part: str) -> Finding:
    """Return compare's finding about an output as one about the gradient of `name`.

    part: the only part of the gradient that there is, in words; empty if that is not known.
    """
    opening = next((opening for opening in OPENINGS if finding.message.startswith(opening)), "")
    begin = OPENINGS.get(opening, "{}: ").format(f"The gradient of `{name}`")
    message = f"{begin}{finding.message.removeprefix(opening)}"
    if part:
        message = f"{message.rstrip('.')}. It contains {part}."
    return Finding(REASONS.get(finding.reason, finding.reason), message, finding.evidence[:1])


def describe_missing(names: list[str], unknown: list[str], graph: bool) -> str:
    """Return the sentence on inputs and parameters without a gradient.

    unknown: those that ModelNew does not have. graph: whether forward's result has one.
    """
    get = f"get{'s' if len(names) == 1 else ''}"
    if not graph:
        return f"forward's result carries no gradient, so {quote(names)} {get} none."
    if unknown:
        return (
            f"ModelNew has no parameter {quote(unknown)}, so there is no gradient of it: name parameters as Model does."
        )
    return f"{quote(names)} {get} no gradient."


def describe_modified(modified: list[str]) -> str:
    """Return the sentence on what backward changed; modified: in words, with repetitions."""
    return f"backward changed {_join(list(dict.fromkeys(modified)))}: write to a new tensor."


def explain_unrequired(finding: Finding) -> Finding:
    """Return the finding with the reason why a gradient is graded that the problem does not ask for."""
    message = (
        "\nThis problem asks for no gradient, but the result carries one: make it right with a "
        "torch.autograd.Function, or return the result detached."
    )
    return dataclasses.replace(finding, message=finding.message + message)


def explain_accidental(finding: Finding) -> str:
    """Return the message about a wrong gradient that neither the problem requires nor the submission computes."""
    return (
        "This problem asks for no gradient. The result carries one, of PyTorch's operators around the kernels, and it "
        f"is wrong: do not train with this module. {finding.message}"
    )


def translate_shape_error(finding: Finding) -> Finding:
    """Return a finding with torch's message on a gradient's shape in plainer words; any other finding unchanged."""
    match = INVALID.search(finding.message)
    if finding.reason is not Reason.gradient_shape or not match:
        return finding
    number, got, wanted = int(match[1]) + 1, match[2], match[3]
    message = (
        f"backward returned a gradient of shape {got} as value {number}, and the argument that it belongs to has the "
        f"shape {wanted}."
    )
    return dataclasses.replace(finding, message=message)


def quote(names: list[str]) -> str:
    """Return "`a`, `b` and `c`"."""
    return _join([f"`{name}`" for name in names])


def _join(phrases: list[str]) -> str:
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"
