"""Describe in a few words which elements of an output are wrong, and what they hold instead."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

NAMES = {
    1: ("element",),
    2: ("row", "column"),
    3: ("batch item", "row", "column"),
    4: ("batch item", "channel", "row", "column"),
    5: ("batch item", "channel", "slice", "row", "column"),
}
BLOCKS = (1024, 512, 256, 128, 64, 32)  # sizes of a block or a warp at which indexing mistakes repeat
PROBED_ELEMENTS = 256  # a rule is tried on these before it is tried on the whole tensor


def names(dims: int, axes: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of an output's dimensions: the problem's own, its AXES, if these are as many."""
    if len(axes) == dims:
        return tuple(axes)
    return NAMES.get(dims) or tuple(f"index {d} of dimension" for d in range(dims))


def describe(
    got: torch.Tensor, expected: torch.Tensor, allowed: torch.Tensor, bad: torch.Tensor, axes: Sequence[str] = ()
) -> str | None:
    """Return where and how `got` differs, such as 'only channel 3, zero'; None if no rule fits.

    got: any float dtype. expected, allowed: float64. bad: bool. All of one shape. axes: as for names().
    """
    called = names(got.dim(), axes)
    got = got.double()
    slack = allowed + 8 * torch.finfo(torch.float32).eps * got.abs()
    whole = bool(bad.all()) or float(bad.double().mean()) > 0.5
    if whole:
        moved = _moved(got, expected, slack, called)
        if moved is not None:
            return moved
    how = _relation(got[bad], expected[bad], slack[bad])
    if how is None and whole:
        how = _per_slice(got, expected, slack, called)
    # where a 0 is right for every other element, as far below a row's maximum in softmax, the place says nothing
    shown = bool(bad.all()) or bool((expected.abs() > allowed)[~bad].any())
    place = where(bad, axes) if shown and not (how and bool(bad.all())) else None
    return ", ".join(part for part in (place, how) if part) or None


# --- where -----------------------------------------------------------------------------------------------------------


def where(bad: torch.Tensor, axes: Sequence[str] = ()) -> str | None:
    """Return which elements are wrong: 'only channel 3', 'last row', 'every 32nd element', …; None if no rule fits.

    axes: as for names().
    """
    called = names(bad.dim(), axes)
    if bad.dim() == 0 or bool(bad.all()):
        return "everything" if bad.numel() > 1 else None
    count = int(bad.sum())
    if count == 1:
        return "a single element"
    box = _box(bad, count, called)
    if len(box) in (1, 2):
        return ", ".join(box)
    rule = _flat(bad.flatten(), count)
    if rule is not None:
        return rule
    if box:
        return ", ".join(box)
    if _is_border(bad, count):
        return "the border"
    return _inside(bad, called)


def _projections(bad: torch.Tensor) -> list[torch.Tensor]:
    """Return for each dimension which of its indices have a wrong element."""
    flags = []
    for d in range(bad.dim()):
        others = [i for i in range(bad.dim()) if i != d]
        flags.append(bad.amax(others) if others else bad)
    return flags


def _box(bad: torch.Tensor, count: int, called: Sequence[str]) -> list[str]:
    """Return one phrase per dimension if the wrong elements are all combinations of some indices of each; else []."""
    flags = _projections(bad)
    size = 1
    for flag in flags:
        size *= int(flag.sum())
    if size != count:
        return []
    phrases = [_indices(flag, name) for flag, name in zip(flags, called) if not bool(flag.all())]
    known = [phrase for phrase in phrases if phrase]
    return known if len(known) == len(phrases) else []


def _inside(bad: torch.Tensor, called: Sequence[str]) -> str | None:
    """Return a phrase if all wrong elements have one of few indices, though not all elements there are wrong."""
    phrases = []
    for flag, name in zip(_projections(bad), called):
        if not bool(flag.all()):
            phrase = _indices(flag, name)
            if phrase:
                phrases.append(phrase)
    return "some in " + ", ".join(p.removeprefix("only ") for p in phrases) if phrases else None


def _indices(flag: torch.Tensor, name: str) -> str | None:
    """Return a proper subset of one dimension's indices in words; None if it follows no rule."""
    n = flag.numel()
    which = flag.nonzero().flatten().tolist()
    first, last, k = which[0], which[-1], len(which)
    if k == 1:
        if n > 2 and first == n - 1:
            return f"last {name}"
        if n > 2 and first == 0:
            return f"first {name}"
        return f"only {name} {first:,}"
    if last - first + 1 == k:
        if last == n - 1:
            return f"last {k} {_plural(name)}" if k <= 4 else f"{_plural(name)} {first:,} and up"
        return f"first {k:,} {_plural(name)}" if first == 0 else f"{_plural(name)} {first:,} to {last:,}"
    step = which[1] - which[0]
    if all(b - a == step for a, b in itertools.pairwise(which)) and first < step and last + step >= n:
        start = "" if first == 0 else f" from {first}"
        return f"every {_ordinal(step)} {name}{start}"
    if which == [0, n - 1]:
        return f"first and last {name}"
    return f"only {_plural(name)} {', '.join(map(str, which))}" if k <= 4 else None


def _flat(bad: torch.Tensor, count: int) -> str | None:
    """Return a rule on the row-major element number: a tail, a head, every k-th, or a part of every 32 to 1024."""
    n = bad.numel()
    which = bad.nonzero().flatten()
    first, last = int(which[0]), int(which[-1])
    if last - first + 1 == count and count > 1:
        if last == n - 1:
            return f"elements {first:,} and up"
        return f"first {count:,} elements" if first == 0 else f"elements {first:,} to {last:,}"
    if count > 2:
        step = int(which[1]) - first
        if first < step and last + step >= n and bool((which.diff() == step).all()):
            return f"every {_ordinal(step)} element" + ("" if first == 0 else f" from {first:,}")
    return _periodic(bad)


def _periodic(bad: torch.Tensor) -> str | None:
    for block in sorted(BLOCKS):
        rounds = bad.numel() // block
        if rounds < 2:
            break
        table = bad[: rounds * block].view(rounds, block)
        if bool((table == table[0]).all()) and bool((bad[rounds * block :] == table[0][: bad.numel() % block]).all()):
            phrase = _indices(table[0], "element")
            return f"{phrase} of every {block}".replace("only element", "element") if phrase else None
    return None


def _is_border(bad: torch.Tensor, count: int) -> bool:
    """Return whether exactly the outermost rows and columns of every image are wrong."""
    if bad.dim() < 2 or min(bad.shape[-2:]) < 3:
        return False
    images = bad.numel() // (bad.shape[-1] * bad.shape[-2])
    return count == images * (2 * sum(bad.shape[-2:]) - 4) and not bool(bad[..., 1:-1, 1:-1].any())


# --- how -------------------------------------------------------------------------------------------------------------


def _relation(got: torch.Tensor, expected: torch.Tensor, slack: torch.Tensor) -> str | None:
    """Return a rule for all wrong values: zero, a shift, a factor. Fewer than three values prove nothing but zero."""
    if bool((got == 0).all()):
        return "zero"
    if got.numel() < 3:
        return None
    if bool((got == got[0]).all()):
        return f"each {got[0].item():.6g}"
    probe = _probe(got)
    shift = (got - expected)[probe].median()
    if _equal(got, expected, slack, probe, add=shift):
        return f"off by {shift.item():.4g}"
    some = expected[probe]
    factor = (got[probe] * some).sum() / some.square().sum().clamp(min=1e-300)
    if _equal(got, expected, slack, probe, times=factor):
        return "the sign is wrong" if abs(factor + 1) < 1e-6 else f"scaled by {factor.item():.6g}"
    return None


def _per_slice(got: torch.Tensor, expected: torch.Tensor, slack: torch.Tensor, called: Sequence[str]) -> str | None:
    """Return a rule with one shift or one factor for each channel, or for each batch item."""
    probe = _probe(got)
    for d in (1, 0):
        if got.dim() <= d or got.shape[d] < 2 or got.numel() < 4 * got.shape[d]:
            continue
        others = [i for i in range(got.dim()) if i != d]
        name = called[d]
        shift = (got - expected).mean(others, keepdim=True)
        if _equal(got, expected, slack, probe, add=shift.expand_as(got)):
            return f"off by one constant per {name}"
        size = expected.square().sum(others, keepdim=True).clamp(min=1e-300)
        factor = (got * expected).sum(others, keepdim=True) / size
        if _equal(got, expected, slack, probe, times=factor.expand_as(got)):
            return f"scaled by one factor per {name}"
    return _statistics(got, expected, slack, called)


def _statistics(got: torch.Tensor, expected: torch.Tensor, slack: torch.Tensor, called: Sequence[str]) -> str | None:
    """Return a rule with one shift and one factor for each channel of each batch item.

    A normalisation with a wrong mean or variance follows it.
    """
    if got.dim() < 3 or got[0, 0].numel() < 8:
        return None
    g, y, s = (x.reshape(*got.shape[:2], -1) for x in (got, expected, slack))
    g0, y0 = g - g.mean(2, keepdim=True), y - y.mean(2, keepdim=True)
    slope = (g0 * y0).sum(2, keepdim=True) / y0.square().sum(2, keepdim=True).clamp(min=1e-300)
    if not bool(((g0 - slope * y0).abs() <= s).all()):
        return None
    first, second = called[:2]
    if bool((g0.abs() <= s).all()) and bool((y0.abs() > s).any()):
        return f"each {second} of each {first} holds one value"
    return f"each {second} of each {first} is shifted and scaled by its own amounts"


def _moved(got: torch.Tensor, expected: torch.Tensor, slack: torch.Tensor, called: Sequence[str]) -> str | None:
    """Return a rule for right values in the wrong places: swapped axes, reversed, shifted, or another slice's."""
    probe = _probe(got)
    for a, b in itertools.combinations(range(got.dim()), 2):
        if got.shape[a] < 2 or got.shape[b] < 2:
            continue
        turned = expected.transpose(a, b)
        same = turned.shape == expected.shape
        turned = turned if same else turned.reshape(expected.shape)
        if _equal(got, turned, slack, probe):
            return f"{_plural(called[a])} and {_plural(called[b])} are swapped" + ("" if same else " in memory")
    for d in range(got.dim() - 1, -1, -1):
        if got.shape[d] < 2:
            continue
        if got.shape[d] > 2 and _equal(got, expected.flip(d), slack, probe):
            return f"{_plural(called[d])} are in reverse order"
        for by, what in ((1, "next"), (-1, "previous")):
            if got.shape[d] > 2 and _shifted(got, expected, slack, d, by):
                return f"every {called[d]} holds the {what} one's values"
    for d in range(min(got.dim(), 2)):
        found = _exchanged(got, expected, slack, d, called[d])
        if found:
            return found
    return None


def _probe(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return index tensors of about PROBED_ELEMENTS elements spread over x."""
    step = max(1, x.numel() // PROBED_ELEMENTS)
    return torch.unravel_index(torch.arange(0, x.numel(), step, device=x.device), x.shape)


def _equal(got, other, slack, probe, times=None, add=None) -> bool:
    """Return whether got is other * times + add within slack; most candidates fail at the first few elements."""
    for part in (probe, ...):
        want = other[part]
        if times is not None:
            want = want * (times[part] if times.dim() else times)
        if add is not None:
            want = want + (add[part] if add.dim() else add)
        if not bool(((got[part] - want).abs() <= slack[part]).all()):
            return False
    return True


def _shifted(got, expected, slack, d: int, by: int) -> bool:
    """Return whether got at i holds expected at i + by along dimension d, wherever that exists."""
    n = got.shape[d] - 1
    here, there = got.narrow(d, 0 if by > 0 else 1, n), expected.narrow(d, 1 if by > 0 else 0, n)
    return _equal(here, there, slack.narrow(d, 0 if by > 0 else 1, n), _probe(here))


def _exchanged(got, expected, slack, d: int, name: str) -> str | None:
    """Return which slice's values the slices along dimension d hold, if each holds those of some slice."""
    n = got.shape[d]
    if not 2 <= n <= 512 or got.numel() // n < 4:
        return None
    g, y, s = (x.movedim(d, 0).reshape(n, -1) for x in (got, expected, slack))
    columns = torch.linspace(0, g.shape[1] - 1, min(16, g.shape[1]), device=g.device).long()
    fits = ((g[:, None, columns] - y[None, :, columns]).abs() <= s[:, None, columns]).all(2)
    if not bool(fits.any(1).all()):
        return None
    source = fits.to(torch.uint8).argmax(1)
    if not bool(((g - y[source]).abs() <= s).all()):
        return None
    held = source.tolist()
    if len(set(held)) == 1:
        return f"every {name} holds {name} {held[0]}'s values"
    wrong = next((i for i in range(n) if held[i] != i), None)
    if wrong is None:
        return None
    return f"{_plural(name)} are mixed up: {name} {wrong} holds {name} {held[wrong]}'s values"


def _plural(name: str) -> str:
    return f"{name}s"


def _ordinal(n: int) -> str:
    ending = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
