"""Decide whether a submission's outputs are right, and describe in a few words how they are wrong."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import MutableMapping, Sequence

import msgspec
import torch
from torch.utils.weak import WeakIdKeyDictionary

from grader.judging import pattern as _pattern
from grader.judging.cores import one_core
from grader.verdict import WrongMap
from grader.verdict.wrong_map import pack

GLOBAL_MARK = 0x7FC67FC6  # simt.run(guard=...) poisons new global memory with it
SHARED_MARK = 0x7FC57FC5  # simt poisons shared memory with it
DEFAULT_REDUCTION = 256  # terms summed, where neither the case nor the model gives their number
LONGEST_SUM = 2**14  # terms of one serial float32 sum that is tolerated: longer sums are split over threads
TF32_FACTOR = 10  # times the root mean square of eager TF32's own error, whose maximum is about 5 times as large
FP16_FACTOR = 10  # likewise, of eager's error with factors of 16 bits
KEPT_ELEMENTS = 2**23  # of an output, whose tolerance is kept as long as the output
PIECE_ELEMENTS = 2**26  # compared at once: full-size outputs on a GPU would need too much memory in float64


@dataclasses.dataclass(frozen=True)
class Difference:
    """Why an output is wrong.

    reason: a name from verdict.Reason. message: one sentence for the student. output: the number of the model's output.
    index: the first wrong element, row-major; expected, got, tolerance: of that element. pattern: which elements are
    wrong or how, in a few words; wrong: a map of the wrong elements. max_error: the largest absolute error. Fields that
    do not apply are None.
    """

    reason: str
    message: str
    case: str | None = None
    output: int = 0
    index: list[int] | None = None
    expected: float | None = None
    got: float | None = None
    wrong_count: int | None = None
    total: int | None = None
    pattern: str | None = None
    max_error: float | None = None
    tolerance: float | None = None
    detail: str | None = None
    wrong: WrongMap | None = None


def compare(got, expected, eager, case=None, noise=None, reduction=None) -> Difference | None:
    """Return None if every output is right, else the first difference.

    got, expected, eager, noise: one tensor or a list of tensors each. expected is the float64 result, eager the
    reference's own result in its own dtype (got must have its shape and dtype), noise what one rounding of every input
    and weight does to the result (Instance.noise()). reduction: terms summed per output; the case's is used if it is
    larger. got may hold anything that the submission returned. The case's precision selects the tolerance, and its axes
    name the dimensions.
    """
    got, expected, eager = _listed(got), _listed(expected), _listed(eager)
    noise = [None] * len(expected) if noise is None else _listed(noise)
    name = getattr(case, "name", None)
    if len(got) != len(expected):
        message = f"forward returned {_count(len(got), 'tensor')} where Model returns {len(expected)}."
        return Difference("wrong_type", message, name)
    reduction = max(reduction or 0, getattr(case, "reduction", None) or 0) or DEFAULT_REDUCTION
    precision, axes = getattr(case, "precision", "fp32"), getattr(case, "axes", ())
    for number, (g, y, e, n) in enumerate(zip(got, expected, eager, noise)):
        with one_core(y.numel()):
            difference = _contract(g, e, axes) or _values(g.detach(), y, e, n, reduction, precision, axes)
        if difference is not None:
            message = difference.message
            if len(expected) > 1:
                message = f"Output {number}: {message}"
            wrong = difference.wrong
            if wrong is not None and len(axes) == len(wrong.shape):
                wrong = msgspec.structs.replace(wrong, axes=list(axes))
            return dataclasses.replace(difference, message=message, case=name, output=number, wrong=wrong)
    return None


def tolerance(expected, eager, reduction: int | None = None, noise=None, precision: str = "fp32") -> torch.Tensor:
    """Return the largest error (absolute, float64, one per element) that a correct implementation makes.

    It is the sum of three parts, where R is the reduction (at most LONGEST_SUM) and eps the dtype's:
    - (8 + sqrt(R)) eps |y| + 2 eps mean|y|: for a few operations on the result and a serial sum of R terms of one sign;
    - (16 + 4 sqrt(R)) L: for rounding of intermediate results, where L is the local level of `noise` and of eager's own
      error beyond its last rounding. The error of a serial sum of R terms is about sqrt(R) times that of eager's tree
      sum;
    - the smallest normal number, because a GPU may flush smaller numbers to zero.

    In precision "tf32" eager's factors are rounded to TF32 (Instance.eager). Its own error is then thousands of times
    that of noise, and a correct implementation makes the same error in any order of its sums. TF32_FACTOR times its
    level is allowed, about twice its largest error; bfloat16 makes eight times the error, and truncated factors make
    three times the error.

    In precision "fp16" inputs and outputs have 16 bits, and so may have what goes into a product; sums are float32. For
    the same reason FP16_FACTOR times the levels of eager's own error, its last rounding included, and of noise are
    allowed, and twice the output's eps.

    Whole numbers must be equal.
    """
    if not eager.is_floating_point():
        return torch.zeros(expected.shape, dtype=torch.float64, device=expected.device)
    if precision == "fp16":
        return _find_tolerance_of_16_bits(expected, eager, noise)
    eps = torch.finfo(eager.dtype).eps
    root = math.sqrt(min(reduction or DEFAULT_REDUCTION, LONGEST_SUM))
    size = _finite(expected).abs_()
    own = _finite(eager.double() - expected).abs_().sub_(size, alpha=eps).clamp_(min=0)
    level, rounding = _level(own), 0.0
    if precision == "tf32":
        level, rounding = torch.zeros_like(level), TF32_FACTOR * level
    if noise is not None:
        level = torch.maximum(level, _level(_finite(noise.double()).abs_()))
    mean = size.mean() if size.numel() else size.sum()
    budget = size.mul_((8 + root) * eps).add_(2 * eps * mean + torch.finfo(eager.dtype).tiny)
    return budget.add_(level * (16 + 4 * root) + rounding)


@dataclasses.dataclass(frozen=True)
class _Known:
    """A tolerance, and what it was computed from besides the expected output: tensors, their versions, the rest."""

    tolerance: torch.Tensor
    eager: torch.Tensor
    noise: torch.Tensor | None
    rest: tuple


# by the expected output, which is compared with five results and more
_known: MutableMapping[torch.Tensor, _Known] = WeakIdKeyDictionary()


def _find_tolerance(expected, eager, reduction: int, noise, precision: str) -> torch.Tensor:
    """Return tolerance(), computed once for the same tensors. The caller does not change it."""
    if expected.numel() > KEPT_ELEMENTS or expected is eager or expected is noise:
        return tolerance(expected, eager, reduction, noise, precision)
    rest = (reduction, precision, *(each._version for each in (expected, eager, noise) if each is not None))
    known = _known.get(expected)
    if known is None or known.eager is not eager or known.noise is not noise or known.rest != rest:
        known = _Known(tolerance(expected, eager, reduction, noise, precision), eager, noise, rest)
        _known[expected] = known
    return known.tolerance


def _find_tolerance_of_16_bits(expected, eager, noise) -> torch.Tensor:
    """Return tolerance() in precision "fp16"."""
    level = _level(_finite(eager.double() - expected).abs_())
    if noise is not None:
        level = level + _level(_finite(noise.double()).abs_())
    kept = torch.finfo(eager.dtype)
    return _finite(expected).abs_().mul_(2 * kept.eps).add_(FP16_FACTOR * level + kept.tiny)


def _level(error: torch.Tensor) -> torch.Tensor:
    """Return the size of a nonnegative error around each element, broadcastable to the error.

    It is the root mean square over the element's channel and batch item, or over more where these have fewer than 64
    elements, and never less than the median of all levels.
    """
    if error.dim() == 0 or error.numel() == 0:
        return error
    first = next((d for d in (2, 1) if d < error.dim() and math.prod(error.shape[d:]) >= 64), 0)
    local = error.square().mean(tuple(range(first, error.dim())), keepdim=True).sqrt_()
    return local.clamp_(min=local.median())


def _finite(x: torch.Tensor) -> torch.Tensor:
    """Return a copy with 0 in place of NaN and infinity."""
    return torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0).clone()


def _listed(x) -> list:
    return list(x) if isinstance(x, (list, tuple)) else [x]


def _contract(got, eager: torch.Tensor, axes: Sequence[str]) -> Difference | None:
    """Return the difference in type, shape or dtype, if there is one."""
    if not isinstance(got, torch.Tensor):
        what = _article(type(got).__name__)
        return Difference("wrong_type", f"forward returned {what} where Model returns a tensor.")
    if got.shape != eager.shape:
        message = f"the shape is {list(got.shape)}, not {list(eager.shape)}."
        hint = _shape_hint(list(got.shape), list(eager.shape), axes)
        return Difference("wrong_shape", _sentence(message), pattern=hint)
    if got.dtype != eager.dtype:
        return Difference("wrong_dtype", f"The dtype is {_dtype(got)}, not {_dtype(eager)}.")
    return None


def _shape_hint(got: list[int], want: list[int], axes: Sequence[str]) -> str | None:
    if len(got) != len(want):
        return f"{len(got)} dimensions, not {len(want)}"
    if sorted(got) == sorted(want):
        return "the dimensions are in another order"
    names = _pattern.names(len(want), axes)
    return ", ".join(f"{n}: {g}, not {w}" for n, g, w in zip(names, got, want) if g != w)


def _values(got, expected, eager, noise, reduction, precision, axes) -> Difference | None:
    """Compare the values of one output, in pieces along its first dimension if it is very large."""
    expected, eager = expected.to(got.device), eager.to(got.device)
    noise = None if noise is None else noise.to(got.device)
    if got.is_complex():
        got, expected, eager, noise = *(torch.view_as_real(x) for x in (got, expected, eager)), None
    if got.numel() <= PIECE_ELEMENTS or got.shape[0] == 1:
        bad, allowed = _bad(got, expected, eager, noise, reduction, precision)
        return _explain(got, expected, allowed, bad, precision, axes) if bool(bad.any()) else None
    rows = max(1, PIECE_ELEMENTS // got[0].numel())
    bad, first = torch.zeros_like(got, dtype=torch.bool), None
    for start in range(0, got.shape[0], rows):
        part = slice(start, start + rows)
        some = None if noise is None else noise[part]
        bad[part], allowed = _bad(got[part], expected[part], eager[part], some, reduction, precision)
        if first is None and bool(bad[part].any()):
            first = _explain(got[part], expected[part], allowed, bad[part], precision, axes)
            assert first.index  # got has a first dimension
            first = dataclasses.replace(first, index=[first.index[0] + start, *first.index[1:]])
    if first is None:
        return None
    # The reason is that of the first piece that differs; the count and the pattern are those of all pieces.
    what = first.message.partition(":")[0]
    where = _pattern.where(bad, axes)
    whole = {"wrong_count": int(bad.sum()), "total": bad.numel(), "pattern": where, "wrong": pack(bad)}
    return _describe(what, dataclasses.replace(first, **whole))


def _bad(got, expected, eager, noise, reduction, precision) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return which elements are wrong, and the tolerance (None for integers, which must be equal)."""
    if not got.is_floating_point():
        # Where the expected output and eager differ (a tie in an argmax), either is right.
        return (got != expected.to(got.dtype)) & (got != eager), None
    allowed = _find_tolerance(expected, eager, reduction, noise, precision)
    bad = ~((got.double() - expected).abs_() <= allowed)
    if bool(bad.any()):
        # Where eager or the expected output is not finite, either of their values is right.
        odd = ~torch.isfinite(eager) | ~torch.isfinite(expected)
        same = (got == eager) | (got.double() == expected) | (got.isnan() & (eager.isnan() | expected.isnan()))
        bad &= ~(odd & same)
    return bad, allowed


def _explain(got, expected, allowed, bad, precision, axes) -> Difference:
    """Return the difference: unwritten memory, NaN or infinity, a constant, low precision, or else wrong values."""
    if allowed is None:
        return _wrong("wrong_values", got, expected, bad, allowed, _pattern.where(bad, axes), "the values are wrong")
    for mark, memory, local in ((GLOBAL_MARK, "memory", False), (SHARED_MARK, "shared memory", True)):
        marked = _marked(got, mark) & bad
        if bool(marked.any()):
            what = f"the output contains {memory} that no thread wrote" + (" before it was read" if local else "")
            return _wrong("not_written", got, expected, marked, allowed, _pattern.where(marked, axes), what)
    odd = bad & ~torch.isfinite(got)
    if bool(odd.any()):
        kinds = [name for name, has in (("NaN", got.isnan()), ("infinite", got.isinf())) if bool((has & bad).any())]
        what = f"the output is {' or '.join(kinds)}"
        return _wrong("non_finite", got, expected, odd, allowed, _pattern.where(odd, axes), what)
    constant = _constant(got, expected)
    if constant is not None:
        what = "every value is the same"
        return _wrong("constant_output", got, expected, bad, allowed, f"each {_number(constant)}", what)
    coarse = _low_precision(got, expected, allowed, bad, precision)
    if coarse is not None:
        return _wrong("low_precision", got, expected, bad, allowed, coarse, "the values are right to a few digits only")
    how = _pattern.describe(got, expected, allowed, bad, axes) or _closeness(got, expected)
    return _wrong("wrong_values", got, expected, bad, allowed, how, "the values are wrong")


def _wrong(reason, got, expected, bad, allowed, pattern, what) -> Difference:
    """Return a Difference with its numbers, its first index and its sentence."""
    flat = int(bad.flatten().to(torch.uint8).argmax())
    index = [int(i) for i in torch.unravel_index(torch.tensor(flat), bad.shape)] if bad.dim() else []
    error = _finite((got.double() - expected.double())[bad]).abs_()
    difference = Difference(
        reason,
        "",
        index=index,
        expected=expected.flatten()[flat].item(),
        got=got.flatten()[flat].item(),
        wrong_count=int(bad.sum()),
        total=bad.numel(),
        pattern=pattern,
        max_error=float(error.max()),
        tolerance=None if allowed is None else float(allowed.flatten()[flat]),
        wrong=pack(bad),
    )
    return _describe(what, difference)


def _describe(what: str, d: Difference) -> Difference:
    """Return the difference with its sentence."""
    assert d.expected is not None and d.got is not None  # _wrong sets both
    share = f"all {d.total:,} values" if d.wrong_count == d.total else f"{d.wrong_count:,} of {d.total:,} values"
    where = f" ({d.pattern})" if d.pattern and d.pattern != "everything" else ""
    if d.total == 1:
        what, share = ("the only value is wrong", "") if what == "the values are wrong" else (what, ": the only value")
    else:
        share = f": {share}"
    place = f"at {d.index} " if d.index else ""
    message = f"{what}{share}{where}; {place}expected {_number(d.expected)}, got {_number(d.got)}."
    return dataclasses.replace(d, message=_sentence(message))


def _marked(got: torch.Tensor, mark: int) -> torch.Tensor:
    """Return which elements hold the 32-bit mark, or a NaN computed from it (its sign may have changed)."""
    if got.dtype == torch.float32:
        return (got.contiguous().view(torch.int32) & 0x7FFFFFFF) == mark
    if got.dtype == torch.float64:
        return got.contiguous().view(torch.int64) == (mark << 32 | mark)
    if got.element_size() == 2:  # the mark's halves lie in two neighbouring elements
        bits = got.contiguous().view(torch.int16)
        return (bits == _signed16(mark & 0xFFFF)) | (bits == _signed16(mark >> 16))
    return torch.zeros_like(got, dtype=torch.bool)


def _signed16(bits: int) -> int:
    return bits - 0x10000 if bits & 0x8000 else bits


def _constant(got: torch.Tensor, expected: torch.Tensor) -> float | None:
    """Return the only value of an output that should have several; None if it has several."""
    flat, want = got.flatten(), expected.flatten()
    if flat.numel() < 2 or bool((flat != flat[0]).any()) or bool((want == want[0]).all()):
        return None
    return flat[0].item()


def _low_precision(got, expected, allowed, bad, precision) -> str | None:
    """Return how many digits are correct, if the errors look like rounding to a coarser format."""
    if got.dtype not in (torch.float32, torch.float64):
        return None
    error = got.double() - expected
    scale = expected.abs().add_(expected.abs().mean())
    relative = (error / scale).abs_()
    worst = float(relative.max())
    if not worst < 0.06:  # bfloat16 keeps 2 to 3 digits
        return None
    wrong = got[bad]
    if bool((wrong == wrong[0]).all()):  # such as the initial 0 of a maximum over negative values
        return None
    right = expected[bad]
    if bool((wrong == wrong.round()).all()):  # whole numbers are exact in any format
        if bool((right != right.round()).any()):
            return "every wrong value is a whole number"
    else:
        for name, dtype in (("bfloat16", torch.bfloat16), ("float16", torch.float16)):
            if _is_exact(wrong, dtype) and not _is_exact(right, dtype):
                return f"every wrong value is rounded to {name}"
    if precision == "tf32" and worst < 2**-9 and float((error * expected.sign() < 0)[bad].double().mean()) > 0.95:
        return "too close to 0, as with factors that are truncated instead of rounded"
    # Values slightly less precise than TF32 exceed its tolerance in few places.
    rare, small = (
        precision == "fp32" and float(bad.double().mean()) < 0.02,
        float(relative.square().mean().sqrt()) < 8e-6,
    )
    if rare or small or not _like_noise(error, expected):
        return None
    digits = max(1, int(-math.log10(max(worst, 1e-12))))
    formats = "bfloat16, or TF32 without rounding" if precision == "tf32" else "half precision or TF32"
    return f"about {_count(digits, 'correct digit')}, as with {formats}"


def _is_exact(values: torch.Tensor, dtype: torch.dtype) -> bool:
    """Return whether a format holds all of these values without rounding."""
    return bool((values.to(dtype).to(values.dtype) == values).all())


def _closeness(got: torch.Tensor, expected: torch.Tensor) -> str | None:
    """Return how small the errors of values without a pattern are; None if they are not small."""
    error = float((got.double() - expected).abs().max() / expected.abs().mean().clamp(min=1e-300))
    return f"off by up to {100 * error:.1g} % of the mean magnitude" if error < 0.01 else None


def _like_noise(error: torch.Tensor, expected: torch.Tensor) -> bool:
    """Return whether the errors have no bias, and no shift and factor per channel and batch item explain them.

    Errors that come from rounding the inputs are such; those of a wrong mean, variance or eps are not.
    """
    if error.mean().abs() > 0.25 * error.square().mean().sqrt():
        return False
    rows = 1 if error.dim() < 2 else error.shape[0] * (error.shape[1] if error.dim() > 2 else 1)
    e, y = error.reshape(rows, -1), expected.reshape(rows, -1)
    if e.shape[1] < 16:
        e, y = error.reshape(1, -1), expected.reshape(1, -1)
    if e.shape[1] < 16:
        return False
    e0, y0 = e - e.mean(1, keepdim=True), y - y.mean(1, keepdim=True)
    slope = (e0 * y0).sum(1, keepdim=True) / y0.square().sum(1, keepdim=True).clamp_(min=1e-300)
    rest = (e0 - slope * y0).square().sum()
    return bool(rest > 0.1 * e.square().sum())


def _number(value: float) -> str:
    if isinstance(value, (bool, int)):
        return str(value) if isinstance(value, bool) else f"{value:,}"
    return "NaN" if value != value else f"{value:,.6g}"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def _article(noun: str) -> str:
    return "None" if noun == "NoneType" else ("an " if noun[0] in "aeiou" else "a ") + noun


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
