"""Choose the shapes and input distributions on which a submission is judged."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import torch

DISTRIBUTIONS = ("file", "normal", "uniform", "large_mean", "large", "tiny", "zeros")
PRECISIONS = ("fp32", "tf32")  # what a file's PRECISION may say; without one it is the first
FIELDS = ("name", "set", "inputs", "reduction", "gradient")

# What a case may cost, so that a plain kernel run on one CPU core stays well below a second.
MOST_ELEMENTS = 400_000  # of all inputs, or all outputs
MOST_WEIGHTS = 4_000_000
MOST_WORK = 15_000_000  # multiply-adds
MOST_OPERATIONS = 2_000  # of a recurrent network, say
MOST_TRIED = 4_000  # operations in all trials together: they cost a millisecond each on the meta device

SMALL = 16  # integers up to this are kernel sizes, strides, groups, axes: they stay, unless they count a batch
BASES = (16, 32, 64, 128, 8, 4, 256, 512)  # ceilings tried for all sizes together, the likeliest first
# For each variant, the sizes that a slot is given in turn until Model accepts one. Neighbouring slots start at
# different places, so that no two dimensions agree by chance.
MINIMAL = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16)
PRIMES = (13, 17, 19, 23, 29, 31, 37, 11, 7, 5, 3)
POWERS = (32, 16, 64, 8, 128)
BATCH = {MINIMAL: (1, 2, 4), PRIMES: (3, 5, 7), POWERS: (4, 2, 8)}


class ProblemError(Exception):
    """A problem file that cannot be used; str() is one sentence, with the file and line where there is one."""

    def __init__(self, message: str, path: Path | None = None, line: int | None = None):
        self.message, self.path, self.line = message, path, line
        where = "" if path is None else f"{path}, line {line}: " if line else f"{path}: "
        super().__init__(where + message)


@dataclasses.dataclass(frozen=True)
class Case:
    """One shape and one kind of input.

    name: a few words. set: module-level names to values. inputs: one of DISTRIBUTIONS, for floating tensors.
    reduction: how many terms are summed for one output; None where nobody said. gradient: False where Model has no
    single right gradient, as at a tie of max or on the border of a clamp. precision: the file's, one of PRECISIONS.
    """

    name: str
    set: dict[str, object] = dataclasses.field(default_factory=dict)
    inputs: str = "file"
    reduction: int | None = None
    gradient: bool = True
    precision: str = PRECISIONS[0]


def declared(problem, entries: object) -> list[Case]:
    """The Cases that a file's CASES list declares. Raises ProblemError for an entry that means nothing."""
    if not isinstance(entries, (list, tuple)) or not entries:
        raise ProblemError("CASES must be a list of at least one case; remove it to have cases made.", problem.path)
    cases = [_declared_one(problem, entry, f"CASES[{number}]") for number, entry in enumerate(entries)]
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise ProblemError(f"CASES: two cases are called '{name}'; give each a name of its own.", problem.path)
    return cases


def _declared_one(problem, entry: object, where: str) -> Case:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        example = '{"name": "one pixel", "set": {"height": 3, "width": 3}}'
        raise ProblemError(f"{where} must be a dict with a name, such as {example}.", problem.path)
    where = f"{where} ('{entry['name']}')"
    for key in entry:
        if key not in FIELDS:
            raise ProblemError(f"{where}: unknown key '{key}'; a case has {', '.join(FIELDS)}.", problem.path)
    case = Case(entry["name"], entry.get("set", {}), entry.get("inputs", "file"), entry.get("reduction"), entry.get("gradient", True))
    if case.inputs not in DISTRIBUTIONS:
        known = ", ".join(DISTRIBUTIONS)
        raise ProblemError(f"{where}: inputs is '{case.inputs}', not one of {known}.", problem.path)
    if case.reduction is not None and (not isinstance(case.reduction, int) or case.reduction < 1):
        raise ProblemError(f"{where}: reduction is {case.reduction!r}, not a positive integer.", problem.path)
    if not isinstance(case.gradient, bool):
        raise ProblemError(f"{where}: gradient is {case.gradient!r}, not True or False.", problem.path)
    if not isinstance(case.set, dict):
        raise ProblemError(f"{where}: set must be a dict of names to values.", problem.path)
    for name in case.set:
        if name not in problem.literals:
            raise ProblemError(f"{where}: the file assigns no literal to '{name}'.", problem.path)
    return case


def lower(problem) -> list[Case]:
    """Cases for a file without CASES: its own sizes made small in several ways that its Model accepts.

    Sizes are the module-level integers above SMALL (and whatever counts a batch), alone or in a tuple. Every shape
    is tried on the file's own functions; those that Model refuses, or that cost too much, are dropped. Raises
    ProblemError, which says how --set helps, if nothing small enough is accepted.
    """
    trial = _Trial(problem)
    slots = _slots(problem)
    base = _base(trial, slots)
    if base is None:
        raise ProblemError(_no_case(trial, slots), problem.path)
    shapes = {"minimal": _walk(trial, slots, base, MINIMAL), "small": base, "odd": _walk(trial, slots, base, PRIMES)}
    others = ("normal", "large_mean") if trial.plain_inputs(base) else ()
    others = [inputs for inputs in others if trial.accepts(shapes["odd"], inputs)]
    shapes["powers of two"] = _walk(trial, slots, base, POWERS)
    shapes["larger"] = _grow(trial, slots, shapes["powers of two"])
    cases: list[Case] = []
    for name, sizes in shapes.items():
        case = Case(name, _as_set(problem, sizes))
        if all(case.set != other.set for other in cases):
            cases.append(case)
    return cases + [Case(f"odd, {i.replace('_', ' ')} inputs", _as_set(problem, shapes["odd"]), i) for i in others]


def _no_case(trial, slots) -> str:
    why = f" ({trial.refusal})" if trial.refusal else ""
    if not slots:
        return f"no case can be made: the file has no module-level sizes to lower, and its own do not fit{why}."
    names = ", ".join(dict.fromkeys(name for name, _ in slots))
    return f"no small enough case was found{why}; set sizes yourself: --set NAME=VALUE, with NAME among {names}."


# A slot is one integer that may be lowered: a module-level name, and its place if the value is a tuple.
Slot = tuple[str, int | None]
Sizes = dict[Slot, int]


def _slots(problem) -> Sizes:
    """The integers that may be lowered, with the file's values. What --set fixed stays fixed."""
    found: Sizes = {}
    for name, value in problem.literals.items():
        if name in problem.overrides:
            continue
        for place, number in enumerate(value) if isinstance(value, (tuple, list)) else ((None, value),):
            if type(number) is int and (number > SMALL or (_is_batch((name, place)) and number > 1)):
                found[(name, place)] = number
    return found


def _is_batch(slot: Slot) -> bool:
    return "batch" in slot[0].lower()


def _as_set(problem, sizes: Sizes) -> dict[str, object]:
    """What a Case sets so that the slots have these sizes."""
    values: dict[str, object] = {}
    for (name, place), size in sizes.items():
        if place is None:
            values[name] = size
        else:
            whole = list(values.get(name, problem.literals[name]))
            whole[place] = size
            values[name] = type(problem.literals[name])(whole)
    return values


def _base(trial, slots: Sizes) -> Sizes | None:
    """The first of several ways to make all sizes small together that Model accepts; batches become 2."""
    batch = {slot: min(2, size) for slot, size in slots.items() if _is_batch(slot)}
    for ceiling in BASES:
        for divide in (False, True):
            sizes = {slot: _lowered(size, max(slots.values()), ceiling, divide) for slot, size in slots.items()}
            for candidate in (sizes | batch, sizes):
                if trial.accepts(candidate):
                    return candidate
    return dict(slots) if trial.accepts(slots) else None


def _lowered(size: int, largest: int, ceiling: int, divide: bool) -> int:
    """One size below the ceiling: cut off there, or divided by what brings the largest below it (keeps ratios)."""
    if not divide:
        return min(size, ceiling)
    return max(1, size // max(1, largest // ceiling))


def _walk(trial, slots: Sizes, base: Sizes, series: tuple[int, ...]) -> Sizes:
    """The base with each size in turn replaced by the first of the series that Model accepts."""
    sizes = dict(base)
    for k, slot in enumerate(slots):
        start = 0 if series is MINIMAL else k % 4
        values = BATCH[series] if _is_batch(slot) else series[start:] + series[:start]
        for value in values:
            if value <= slots[slot] and trial.accepts(sizes | {slot: value}):
                sizes[slot] = value
                break
    return sizes


def _grow(trial, slots: Sizes, start: Sizes) -> Sizes:
    """Sizes doubled one after another for as long as the cost allows."""
    sizes, growing = dict(start), set(slots)
    while growing:
        for slot in sorted(growing, key=str):
            bigger = min(2 * sizes[slot], slots[slot])
            if bigger > sizes[slot] and trial.accepts(sizes | {slot: bigger}):
                sizes[slot] = bigger
            else:
                growing.discard(slot)
    return sizes


class _Trial:
    """Tries sizes on a problem's own functions and remembers the answers, whatever the speed of the machine."""

    def __init__(self, problem):
        self.problem = problem
        self.answers: dict[tuple, bool] = {}
        self.refusal: str | None = None  # the last reason
        self.left = MOST_TRIED

    def accepts(self, sizes: Sizes, inputs: str = "file") -> bool:
        """True if Model runs at these sizes within the budget and gives something worth comparing."""
        key = (inputs, *sizes.items())
        if key not in self.answers and self.left > 0:
            case = Case("trial", _as_set(self.problem, sizes), inputs)
            try:
                self.answers[key] = self._fits(case) and worth(self.problem.instantiate(case, seed=1).eager())
            except ProblemError as error:
                self.refusal = error.message
                self.answers[key] = False
        return self.answers.get(key, False)

    def _fits(self, case: Case) -> bool:
        """Judge the cost by shapes alone, on the meta device; what cannot run there is judged by running it."""
        try:
            return self._costs_little(case, "meta")
        except ProblemError:
            # It may be the file or only the meta device: make the real thing unless its sizes alone forbid that.
            return _product(case.set) <= 100 * MOST_ELEMENTS and self._costs_little(case, "cpu")

    def _costs_little(self, case: Case, device: str) -> bool:
        instance = self.problem.instantiate(case, seed=1, device=device)
        weights = list(instance.model.parameters())
        within = self._within(_elements(instance.inputs), MOST_ELEMENTS, "input elements")
        if not (within and self._within(_elements(weights), MOST_WEIGHTS, "weights")):
            return False
        outputs, watch = instance.watched(MOST_OPERATIONS)
        self.left -= watch.operations
        within = self._within(_elements(outputs), MOST_ELEMENTS, "output elements")
        return within and self._within(watch.work, MOST_WORK, "multiply-adds")

    def _within(self, number: int, most: int, what: str) -> bool:
        if number > most:
            self.refusal = f"it has {number:,} {what}"
        return number <= most

    def plain_inputs(self, sizes: Sizes) -> bool:
        """True if all floating inputs look like independent random numbers, so that others may take their place.

        Triangular, symmetric, diagonal or one-of-a-few inputs are what a submission may rely on.
        """
        inputs = self.problem.instantiate(Case("trial", _as_set(self.problem, sizes)), seed=1).inputs
        floats = [value for value in inputs if isinstance(value, torch.Tensor) and value.is_floating_point()]
        return bool(floats) and all(_plain(value) for value in floats)


def _plain(x: torch.Tensor) -> bool:
    if x.numel() < 8 or x.unique().numel() < 0.9 * x.numel() or bool((x == 0).sum() > 1):
        return False
    square = x.dim() >= 2 and x.shape[-1] == x.shape[-2]
    return not (square and torch.equal(x, x.transpose(-1, -2)))


def worth(outputs: list[torch.Tensor]) -> bool:
    """True if there is something to compare: elements, and finite ones."""
    floats = [out for out in outputs if out.is_floating_point()]
    filled = bool(outputs) and all(out.numel() for out in outputs)
    return filled and all(bool(torch.isfinite(out).any()) for out in floats)


def _product(values: dict[str, object]) -> int:
    """All integers in a case's set, multiplied."""
    numbers = [n for v in values.values() for n in (v if isinstance(v, (tuple, list)) else [v]) if type(n) is int]
    return math.prod(max(1, n) for n in numbers)


def _elements(values: object) -> int:
    if isinstance(values, torch.Tensor):
        return values.numel()
    if isinstance(values, dict):
        values = list(values.values())
    return sum(_elements(value) for value in values) if isinstance(values, (list, tuple)) else 0
