"""Choose the shapes and input distributions on which a submission is judged."""

from __future__ import annotations

import dataclasses
import difflib
import math
from pathlib import Path

import torch

from grader.problems.values import is_floating

DISTRIBUTIONS = ("file", "normal", "uniform", "large_mean", "large", "tiny", "zeros")
OWN_SIZES = "own sizes"  # as CASES: one case, with the file's own sizes and inputs
PRECISIONS = ("fp32", "tf32", "fp16")  # what a file's PRECISION may say; without one it is the first
OF_FLOAT32 = PRECISIONS[:2]  # in which products of float32 may be computed
FIELDS = ("name", "set", "inputs", "reduction", "gradient")

# What a case may cost, so that a plain kernel run on one CPU core stays well below a second.
MOST_ELEMENTS = 400_000  # of all inputs, or all outputs
MOST_WEIGHTS = 4_000_000
MOST_WORK = 15_000_000  # multiply-adds
MOST_OPERATIONS = 2_000  # of a recurrent network, say
MOST_TRIED = 4_000  # operations in all trials together: they cost a millisecond each on the meta device

SMALL = 16  # integers up to this are kernel sizes, strides, groups, axes: they stay, unless they count a batch, or
SMALL_BASES = (8, 4, 3, 2, 1)  # no case is small enough with them: then they get these ceilings in turn
BASES = (16, 32, 64, 128, 8, 4, 256, 512)  # ceilings tried for all sizes together, the likeliest first
# For each variant, the sizes that a slot is given in turn until Model accepts one. Neighbouring slots start at
# different places, so that no two dimensions agree by chance.
MINIMAL = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16)
PRIMES = (13, 17, 19, 23, 29, 31, 37, 11, 7, 5, 3)
POWERS = (32, 16, 64, 8, 128)
FEW_PRIMES = (3, 5, 7, 11, 13, 17, 19)
BLOCK = 1024  # threads that a block may have: a thread for each of fewer elements, which may be no power of two
BATCH = {MINIMAL: (1, 2, 4), PRIMES: (3, 5, 7), FEW_PRIMES: (2, 3, 5), POWERS: (4, 2, 8)}
FEW = 3  # different sizes, of the five that are wanted: with fewer, the verdict warns its reader


class ProblemError(Exception):
    """A problem file that cannot be used; str() is one sentence, with the file and line where there is one."""

    def __init__(self, message: str, path: Path | None = None, line: int | None = None):
        self.message, self.path, self.line = message, path, line
        where = "" if path is None else f"{path}, line {line}: " if line else f"{path}: "
        super().__init__(where + message)


class TooMuch(ProblemError):
    """A case costs more than a case may."""


@dataclasses.dataclass(frozen=True)
class Case:
    """One shape and one kind of input.

    name: a few words. set: module-level names to values. inputs: one of DISTRIBUTIONS, for floating tensors.
    reduction: how many terms are summed for one output; None if unknown. gradient: False where Model has no
    single right gradient, as at a tie of max or on the border of a clamp. precision: the file's, one of PRECISIONS.
    axes: the file's names of its outputs' dimensions. made: by lower(); then the name ends in the sizes.
    """

    name: str
    set: dict[str, object] = dataclasses.field(default_factory=dict)
    inputs: str = "file"
    reduction: int | None = None
    gradient: bool = True
    precision: str = PRECISIONS[0]
    axes: tuple[str, ...] = ()
    made: bool = False


class UnknownCase(ProblemError):
    """No case of a problem has the name that is asked for."""


def choose(problem_name: str, cases: list[Case], wanted: str) -> list[Case]:
    """Return the cases of that name; one made by lower() is named without its sizes, too. Raises UnknownCase."""
    chosen = [case for case in cases if wanted in (case.name, case.name.partition(" (")[0] if case.made else None)]
    if not chosen:
        names = [case.name for case in cases]
        near = difflib.get_close_matches(wanted, names, n=3)
        meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise UnknownCase(f"{problem_name} has no case {wanted!r}: it has {'; '.join(names)}.{meant}")
    return chosen


def declared(problem, entries: object) -> list[Case]:
    """The Cases that a file's CASES declares. Raises ProblemError for an entry that means nothing."""
    if entries == OWN_SIZES:
        return [Case(OWN_SIZES)]
    if not isinstance(entries, (list, tuple)) or not entries:
        says = f'CASES must be a list of at least one case, or "{OWN_SIZES}"; remove it to have cases made.'
        raise ProblemError(says, problem.path)
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
    case = Case(
        entry["name"],
        entry.get("set", {}),
        entry.get("inputs", "file"),
        entry.get("reduction"),
        entry.get("gradient", True),
    )
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

    Sizes are the module-level integers above SMALL (and whatever counts a batch), alone or in a tuple, that Model's
    code does not read itself; where these do not make it small enough, the smaller ones as well. Every shape is tried
    on the file's own functions; those that Model refuses, or that cost too much, are dropped. Raises ProblemError,
    which says what helps, if nothing small enough is accepted.
    """
    trial = _Trial(problem)
    slots = _slots(problem)
    base = _base(trial, slots)
    if base is None:
        further = {slot: size for slot, size in _slots(problem, above=1).items() if slot not in slots}
        base = _base_of_all(trial, slots, further)
        if base is None:
            raise ProblemError(_no_case(problem, trial, slots | further), problem.path)
        slots = slots or {slot: size for slot, size in further.items() if base[slot] < size}
    shapes = {"minimal": _walk(trial, slots, base, MINIMAL), "small": base, "odd": _walk(trial, slots, base, PRIMES)}
    others = ("normal", "large_mean") if trial.plain_inputs(base) else ()
    others = [inputs for inputs in others if trial.accepts(shapes["odd"], inputs)]
    if math.prod(size for slot, size in shapes["odd"].items() if not _is_batch(slot)) > BLOCK:
        shapes["odd, few elements"] = _walk(trial, slots, base, FEW_PRIMES)
    shapes["powers of two"] = _walk(trial, slots, base, POWERS)
    shapes["larger"] = _grow(trial, slots, shapes["powers of two"])
    if math.prod(slots.values()) <= MOST_WORK and trial.accepts(slots):  # what is much too large is not even tried
        shapes["full"] = slots
    cases: list[Case] = []
    for name, sizes in shapes.items():
        case = _made(problem, name, sizes)
        if all(case.set != other.set for other in cases):
            cases.append(case)
    return cases + [_made(problem, f"odd, {i.replace('_', ' ')} inputs", shapes["odd"], i) for i in others]


def _made(problem, name: str, sizes: Sizes, inputs: str = "file") -> Case:
    """A case called "odd (batch_size=3, features=17)": the sizes that are not the file's (or --set's) own, as --set
    takes them.
    """
    values = _as_set(problem, sizes)
    changed = _listed({name: value for name, value in values.items() if value != problem.literals[name]})
    return Case(f"{name} ({changed or 'own sizes'})", values, inputs, made=True)


def has_own_sizes(problem, case: Case) -> bool:
    """Return whether a case has the sizes and inputs of the file itself (or --set's)."""
    return case.inputs == "file" and all(value == problem.literals[name] for name, value in case.set.items())


def too_few_sizes_warning(cases: list[Case]) -> str:
    """Return a warning about generated cases with too few different sizes; empty where there are enough."""
    made = [case.set for case in cases if case.made]
    different = sum(values not in made[:number] for number, values in enumerate(made))
    if not made or different >= FEW:
        return ""
    which = "All cases have the same sizes" if different == 1 else f"The cases have only {different} different sizes"
    found = f"{which}, as no other small ones were found that Model takes"
    return f"{found}: a kernel that is right for these alone passes too."


def _listed(values: dict[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _no_case(problem, trial, slots: Sizes) -> str:
    """Why there is none, and what helps."""
    why = "; ".join(trial.why.values()) or "too many were tried"
    kept = ", ".join(
        f"{name}={problem.literals[name]!r}" for name, _ in _sizes(problem) if name in problem.read_by_model
    )
    if kept:
        why += f"; Model's own code reads {kept}, which stays, as a submission cannot get another value"
    if not slots and problem.overrides:
        given = f"no case can be made with --set {_listed(problem.overrides)}: {why}"
        return f"{given}; set others, or leave them out to have them lowered."
    too_much = trial.costs_too_much(dict.fromkeys(slots, 1))
    if too_much and kept:
        return f"no small enough case can be made ({why}); have Model take it as an argument of __init__."
    if not slots:
        missing = f"no case can be made: the file has no module-level sizes to lower, and its own do not fit ({why})"
        return f"{missing}; name its sizes at module level."
    if too_much and not problem.overrides:
        own = 'CASES = [{"name": "small", "set": ' + repr({name: 1 for name, place in slots if place is None}) + "}]"
        problem_text = f"no small enough case can be made, as no --set makes Model itself small enough ({why})"
        return f"{problem_text}; the file may declare cases, which have no limit: {own}."
    names = ", ".join(dict.fromkeys([*(name for name, _ in slots), *problem.overrides]))
    return f"no small enough case was found ({why}); set sizes yourself: --set NAME=VALUE, with NAME among {names}."


# A slot is one integer that may be lowered: a module-level name, and its place if the value is a tuple.
Slot = tuple[str, int | None]
Sizes = dict[Slot, int]


def _slots(problem, above: int = SMALL) -> Sizes:
    """The integers that may be lowered, with the file's values. What --set fixed stays fixed, and what Model's own code
    reads: a submission gets the arguments of Model, and of other names it knows only what its own file gives
    them."""
    sizes = _sizes(problem, above)
    return {(name, place): size for (name, place), size in sizes.items() if name not in problem.read_by_model}


def _sizes(problem, above: int = SMALL) -> Sizes:
    """All integers above a limit, and those that count a batch, that --set did not fix."""
    found: Sizes = {}
    for name, value in problem.literals.items():
        if name in problem.overrides:
            continue
        for place, number in enumerate(value) if isinstance(value, (tuple, list)) else ((None, value),):
            if type(number) is int and (number > above or (_is_batch((name, place)) and number > 1)):
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
            before = values.get(name, problem.literals[name])
            assert isinstance(before, (tuple, list))  # what has a place in it
            whole = list(before)
            whole[place] = size
            values[name] = type(before)(whole)
    return values


def _base(trial, slots: Sizes, further: Sizes | None = None) -> Sizes | None:
    """The first of several ways to make all sizes small together that Model accepts, next to further ones that stay;
    batches become 2.
    """
    further = further or {}
    if not slots:
        return dict(further) if trial.accepts(further) else None
    batch = {slot: min(2, size) for slot, size in slots.items() if _is_batch(slot)}
    for ceiling in BASES:
        for divide in (False, True):
            sizes = {slot: _lowered(size, max(slots.values()), ceiling, divide) for slot, size in slots.items()}
            for candidate in (sizes | batch | further, sizes | further):
                if trial.accepts(candidate):
                    return candidate
    return slots | further if trial.accepts(slots | further) else None


def _base_of_all(trial, slots: Sizes, further: Sizes) -> Sizes | None:
    """A base with the first ceiling for further sizes that Model accepts; those that can stay as they are do so."""
    for ceiling in SMALL_BASES:
        base = _base(trial, slots, {slot: min(size, ceiling) for slot, size in further.items()})
        if base is not None:
            for slot in sorted(further, key=lambda slot: (further[slot], str(slot))):  # kernel sizes, axes first
                if trial.accepts(whole := base | {slot: further[slot]}):
                    base = whole
            return base
    return None


def _lowered(size: int, largest: int, ceiling: int, divide: bool) -> int:
    """One size below the ceiling: cut off there, or divided by what brings the largest below it (keeps ratios)."""
    if not divide:
        return min(size, ceiling)
    return max(1, size // max(1, largest // ceiling))


def _walk(trial, slots: Sizes, base: Sizes, series: tuple[int, ...]) -> Sizes:
    """The base with each size in turn replaced by the first of the series that Model accepts.

    Where it refuses to have one changed alone, all that are alike in the file are changed together.
    """
    sizes, together = dict(base), set()
    for k, slot in enumerate(slots):
        if slot in together:
            continue
        start = 0 if series is MINIMAL else k % 4
        turned = series[start:] + series[:start]
        values = BATCH[series] if _is_batch(slot) else turned
        value = _first(trial, slots, sizes, [slot], values)
        alike = _alike(slots, slot)
        if value in (None, sizes[slot]) and value != values[0] and len(alike) > 1:
            common = _first(trial, slots, sizes, alike, BATCH[series] if all(map(_is_batch, alike)) else turned)
            if common is not None:
                sizes |= dict.fromkeys(alike, common)
                together.update(alike)
        elif value is not None:
            sizes[slot] = value
    return sizes


def _first(trial, slots: Sizes, sizes: Sizes, moved: list[Slot], values: tuple[int, ...]) -> int | None:
    """The first value that Model accepts for all of these slots, or None."""
    fitting = (value for value in values if value <= slots[moved[0]])
    return next((value for value in fitting if trial.accepts(sizes | dict.fromkeys(moved, value))), None)


def _alike(slots: Sizes, slot: Slot) -> list[Slot]:
    """The slots of this one's size in the file, itself among them: Model may want them equal, as factors of one
    product.
    """
    return [other for other, size in slots.items() if size == slots[slot]]


def _grow(trial, slots: Sizes, start: Sizes) -> Sizes:
    """Sizes doubled one after another for as long as the cost allows; together where Model refuses one alone."""
    sizes, growing = dict(start), set(slots)
    while growing:
        for slot in sorted(growing, key=str):
            bigger = min(2 * sizes[slot], slots[slot])
            alike = [other for other in _alike(slots, slot) if sizes[other] == sizes[slot]]
            ways = [{slot: bigger}, dict.fromkeys(alike, bigger)] if bigger > sizes[slot] else []
            way = next((way for way in ways if trial.accepts(sizes | way)), None)
            if way:
                sizes |= way
            else:
                growing.discard(slot)
    return sizes


class _Trial:
    """Tries sizes on a problem's own functions and remembers the answers, whatever the speed of the machine."""

    def __init__(self, problem):
        self.problem = problem
        self.answers: dict[tuple, bool] = {}
        self.why: dict[str, str] = {}  # the first reason of each kind for which sizes were refused
        self.left = MOST_TRIED

    def accepts(self, sizes: Sizes, inputs: str = "file") -> bool:
        """True if Model runs at these sizes within the budget and gives something worth comparing."""
        key = (inputs, *sizes.items())
        if key not in self.answers and self.left > 0:
            case = Case("trial", _as_set(self.problem, sizes), inputs)
            try:
                self.check_cost(case)
                self.answers[key] = has_comparable_output(self.problem.instantiate(case, seed=1).eager())
                if not self.answers[key]:
                    self.why.setdefault("empty", f"Model returns {NOTHING}{self._at(case)}")
            except ProblemError as error:
                self._note(error, case)
                self.answers[key] = False
        return self.answers.get(key, False)

    def _note(self, error: ProblemError, case: Case) -> None:
        line = f" (line {error.line})" if error.line else ""
        kind = "cost" if isinstance(error, TooMuch) else "raised"
        self.why.setdefault(kind, f"{error.message}{line}{self._at(case)}")

    def _at(self, case: Case) -> str:
        """ ", at batch_size=2": which sizes a reason is about."""
        values = case.set | self.problem.overrides
        return f", at {_listed(values)}" if case.set else ""

    def costs_too_much(self, sizes: Sizes) -> bool:
        """True if the sizes are refused for their cost."""
        try:
            self.check_cost(Case("trial", _as_set(self.problem, sizes)))
        except ProblemError as error:
            return isinstance(error, TooMuch)
        return False

    def check_cost(self, case: Case) -> None:
        """Judge the cost by shapes alone, on the meta device; what cannot run there is judged by running it. Raises
        ProblemError.
        """
        try:
            self._check_cost_on(case, "meta")
        except TooMuch:
            raise
        except ProblemError:
            # It may be the file or only the meta device: make the real thing unless its sizes alone forbid that.
            if _product(case.set) > 100 * MOST_ELEMENTS:
                raise
            self._check_cost_on(case, "cpu")

    def _check_cost_on(self, case: Case, device: str) -> None:
        instance = self.problem.instantiate(case, seed=1, device=device)
        _within(_elements(instance.inputs), MOST_ELEMENTS, "input elements")
        _within(_elements(list(instance.model.parameters())), MOST_WEIGHTS, "weights")
        outputs, watch = instance.watched(MOST_OPERATIONS)
        self.left -= watch.operations
        _within(_elements(outputs), MOST_ELEMENTS, "output elements")
        _within(watch.work, MOST_WORK, "multiply-adds")

    def plain_inputs(self, sizes: Sizes) -> bool:
        """True if all floating inputs look like independent random numbers, so that others may take their place.

        Triangular, symmetric, diagonal or one-of-a-few inputs are what a submission may rely on.
        """
        inputs = self.problem.instantiate(Case("trial", _as_set(self.problem, sizes)), seed=1).inputs
        floats = [value for value in inputs if is_floating(value)]
        return bool(floats) and all(_plain(value) for value in floats)


def check_cost(problem, case: Case) -> None:
    """Raise ProblemError for a case that Model refuses, or that costs more than a generated case may."""
    _Trial(problem).check_cost(case)


def _within(number: int, most: int, what: str) -> None:
    if number > most:
        raise TooMuch(f"it has {number:,} {what}, and a case may have {most:,} at most")


def _plain(x: torch.Tensor) -> bool:
    if x.numel() < 8 or x.unique().numel() < 0.9 * x.numel() or bool((x == 0).sum() > 1):
        return False
    square = x.dim() >= 2 and x.shape[-1] == x.shape[-2]
    return not (square and torch.equal(x, x.transpose(-1, -2)))


NOTHING = "no tensor, or one that is empty or without a finite number"  # of which has_comparable_output() is False


def has_comparable_output(outputs: list[torch.Tensor]) -> bool:
    """Return whether outputs can be compared: each has elements, and floating ones a finite number."""
    floats = [out for out in outputs if out.is_floating_point()]
    filled = bool(outputs) and all(out.numel() for out in outputs)
    return filled and all(bool(torch.isfinite(out).any()) for out in floats)


def check_comparable(case: Case, outputs: list[torch.Tensor], path: Path) -> None:
    """Raise ProblemError where Model's outputs in a case cannot be compared."""
    if not has_comparable_output(outputs):
        raise ProblemError(f"the case '{case.name}' leaves nothing to compare: Model returns {NOTHING}.", path)


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
