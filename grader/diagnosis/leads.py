"""Turn the mutants that pass into the line to blame: what is wrong there, what to do, and the evidence."""

from __future__ import annotations

import dataclasses
import re
import string
from collections.abc import Sequence

from grader.diagnosis import effects, value_effects
from grader.diagnosis.cuda_map import Mutant
from grader.diagnosis.mutants import KINDS
from grader.diagnosis.operator_mutants import ONE_LESS, ONE_MORE, ROUNDED_UP
from grader.verdict import Reason, Status, Verdict

# Threads race: a missing barrier is likelier than anything else.
RACES = {Reason.race, Reason.uninitialized, Reason.schedule_dependent, Reason.nondeterministic}

# What is wrong in a line and what to do, by the kind of the mutant with which the failing cases pass. A kind has
# several sentences because not every mutant shows all names: make_lead takes the first one for which it knows them.
SENTENCES: dict[str, tuple[str, ...]] = {
    "guard": (
        "Where `{what}` is false there is no element, and line {line} runs there, too, with what line {until} puts in "
        "the place of one. Let it run only where `{what}`.",
        "Line {line} also runs for threads that have no element, with what line {until} puts in the place of one.",
    ),
    "comparison": ("Line {line} tests `{what}` the wrong way round: it needs `{needed}` between the two.",),
    "sign": (
        "`{what}` in line {line} takes values {side} 0 for 0, and they are needed. Write `{needed}`, and the same "
        "wherever this is tested.",
        "Line {line} takes values of one sign for 0, and they are needed. Test whether values are 0.",
    ),
    "index": (
        "The index of `{what}` in line {line} is off by one.",
        "An index in line {line} is off by one.",
    ),
    "variable": ("Line {line} uses `{what}` where it needs `{needed}`.",),
    "swapped": (
        "`{what}` and `{needed}` are swapped in an index of line {line}.",
        "Two variables are swapped in an index of line {line}.",
    ),
    "first pass": (
        "Line {line} resets `{what}` in every pass of the loop over `{needed}`. Do that once, before that loop.",
        "Line {line} resets `{what}` in every pass of the loop. Do that once, before the loop.",
        "Line {line} resets its variable in every pass of the loop. Do that once, before the loop.",
    ),
    "first value": (
        "`{what}` was changed before line {line} uses it. Keep a copy of its first value, and use the copy there.",
        "A variable was changed before line {line} uses it. Keep a copy of its first value, and use the copy there.",
    ),
    "operator": ("Line {line} computes `{what}` where it needs `{needed}` alone.",),
    "term": ("Line {line} computes `{what}` where it needs `{needed}` alone.",),
    "number": ("Line {line} needs {needed} in place of {what}.",),
    "order": (
        "Line {line} and line {until} take `{what}` apart in the wrong order: `{needed}` must be the one that changes "
        "with every step of `{what}`.",
        "Line {line} and line {until} take an index apart in the wrong order.",
    ),
    "parentheses": (
        "`{what}` in line {line} must be added before it is multiplied. Put parentheses around the sum.",
        "A sum in line {line} must be added before it is multiplied. Put parentheses around the sum.",
    ),
    "type": (
        "The type of `{what}` in line {line}, `{needed}`, is too small for its values. Use a larger one.",
        "A type in line {line} is too small for the values of its variable. Use a larger one.",
    ),
    "outer index": (
        "The index of `{what}` in line {line} leaves out `{outer}`. Use `({needed})` in place of `{inner}`.",
        "The index of `{what}` in line {line} leaves out a variable.",
        "An index in line {line} leaves out a variable.",
    ),
    "shared loop": (
        "Every thread runs all passes of the loop in line {line}. Divide them among the threads: start `{what}` at "
        "`threadIdx.x` and step by `blockDim.x`.",
        "Every thread runs all passes of the loop in line {line}. Divide them among the threads: start at "
        "`threadIdx.x` and step by `blockDim.x`.",
    ),
    "unused": (
        "The kernel never uses its parameter `{what}`. {apply} in line {line}.",
        "The kernel never uses its parameter `{what}`. It is missing in line {line}.",
        "The kernel never uses one of its parameters, which is missing in line {line}.",
    ),
    "function": (
        "Line {line} calls `{what}` where it needs `{needed}`.",
        "Line {line} calls the wrong function.",
    ),
    "bounds test": (
        "No bounds test stops the threads with `{needed}`. Let them return between line {line} and line {until}.",
        "No bounds test stops the threads whose `{what}` is past the end. Let them return between line {line} and line "
        "{until}.",
        "A bounds test is missing between line {line} and line {until}.",
    ),
    "barrier": (
        "The threads do not wait for each other between line {line} and line {until}. Put a `__syncthreads()` there.",
    ),
    "scale": (
        "`{what}` in line {line} lacks a factor. Multiply it by `{needed}`.",
        "`{what}` in line {line} lacks a factor.",
        "A value in line {line} lacks a factor.",
    ),
    "unscaled": (
        "Line {line} multiplies one sum by `{needed}`, and `{what}`, another sum, keeps its old scale. Multiply "
        "`{what}` by `{needed}` as well.",
        "Line {line} multiplies one sum by a factor, and another sum keeps its old scale.",
    ),
    "too early": (
        "Line {until} overwrites `{what}` before line {line} uses its old value. Move line {until} below line {line}.",
        "Line {until} overwrites a value before line {line} uses the old one. Move line {until} below line {line}.",
    ),
    "own value": (
        "Line {line} stores a sum that includes `{needed}`, from which `{what}` starts. The sum of what comes before "
        "`{needed}` is needed. Subtract `{needed}`.",
        "Line {line} stores a sum that includes the thread's own value. The sum of what comes before it is needed.",
    ),
    "tile start": (
        "`{what}` in line {line} counts from the first element of all, and inside the loop over `{start}` the elements "
        "are counted from `{start}` on. Use `{needed}`.",
        "A variable in line {line} counts from the first element of all, not from the first one of this pass.",
    ),
    "argument": (
        "The argument of `{what}` in line {line} lacks a term or a factor. {apply}.",
        "The argument of `{what}` in line {line} lacks a term or a factor.",
        "The argument of a call in line {line} lacks a term or a factor.",
    ),
    "call": (
        "Line {line} must not call `{what}`. Use its argument alone.",
        "Line {line} makes a call that it must not make. Use the argument alone.",
    ),
    "identity": (
        "`{what}` returns something else than its argument in line {line}, and `{needed}` itself is needed.",
        "The function of line {line} returns something else than its argument, which itself is needed.",
    ),
    "each value": (
        "Line {line} changes `{what}` after the loop that compares the values: the one that was chosen need not be the "
        "right one after such a change. Change each value inside that loop, before it is compared.",
        "Line {line} comes after the loop that compares the values. Change each value inside that loop, before it is "
        "compared.",
    ),
    "sum factor": (
        "Line {line} adds terms to `{what}` that lack the factor `{needed}`: the sum weights all of them alike. "
        "Multiply each term by it.",
        "Line {line} adds terms to `{what}` that lack a factor.",
        "Line {line} adds terms to a sum that lack a factor.",
    ),
    "condition": ("The condition `{what}` in line {line} is wrong.", "The condition in line {line} is wrong."),
    "statement": (
        "Line {line} makes the result wrong: `{what}`.",
        "A statement in line {line} makes the result wrong.",
    ),
}
ROUNDS_DOWN = "`{what}` in line {line} rounds down: what is left over by the division is left out. Round it up."
APPLY = {"+": "Add `{}`", "-": "Subtract `{}`", "*": "Multiply by `{}`"}
APPLY_TO = {"+": "Add {term} to {value}", "-": "Subtract {term} from {value}", "*": "Multiply {value} by {term}"}
LONGEST_VALUE = 40  # characters of an expression that a sentence quotes
BIRTH = "birth"  # the kind of a lead that no mutant gave
# Of these kinds several mutants may pass by chance, each in another way: no line is blamed unless they agree on what it
# needs.
EXACT = {"comparison", "variable", "operator", "term", "number"}
# The other line of a race whose accesses are in one pass of a loop, or in none.
RACING = re.compile(r" in line (\d{1,9}) without a barrier in between\. Put a `__sync\w+\(\)` between the two\.")
BETWEEN = {"bounds test", "barrier"}  # kinds that name a place between two lines


@dataclasses.dataclass(frozen=True)
class Lead:
    """A line of the file that a mutant shows to be wrong.

    until: the second line of a place between two lines, or of two lines that disagree; else 0. words: what is wrong,
    what to do, and the evidence.
    also: other lines in which a mutant makes as many cases pass.
    """

    line: int
    until: int
    words: str
    kind: str
    also: tuple[int, ...] = ()

    @property
    def says_all(self) -> bool:
        """Return whether it says what to correct, and not only where a wrong value appears first."""
        return self.kind != BIRTH


@dataclasses.dataclass
class Candidate:
    """A mutant and its results. line, until: of the file. passed: the number of failing cases that pass with it.

    spoils_none: whether the cases that passed still pass.
    """

    mutant: Mutant
    line: int
    until: int
    passed: int = 0
    spoils_none: bool = True


def make_lead(good: list[Candidate], tested: int, verdict: Verdict, source: str = "") -> Lead | None:
    """Return the likeliest of the best candidates of which it is known what is wrong, with its sentences.

    tested: the number of failing cases tried. source: the submission's text.
    """
    code = source.split("\n")
    good = _leave_out_lone_lanes(good, code)
    if not good:
        return None
    good = sorted(
        _leave_out_far_barriers(_leave_out_disguises(good), verdict),
        key=lambda one: (
            _rank(one, verdict, code), *_distance_to_race(one, verdict), _reads_only(one, verdict, code), one.line
        ),
    )  # fmt: skip
    best = good[0]
    kind = best.mutant.kind
    alike = (one for one in good if one.mutant.kind == kind)  # another edit that helps may only hide the mistake
    also = tuple(dict.fromkeys(one.line for one in alike if one.line not in (best.line, best.until)))
    line, until = _span(best, good)
    stage = verdict.first_problem
    failing = sum(case.status is Status.failed for case in stage.cases) if stage else 0
    if failing == 1:
        result = "the failing case pass"
    else:
        result = "the failing cases pass" if best.passed == tested else "some of the failing cases pass"
    instead = f", or line {also[0]} instead," if len(also) == 1 and kind not in BETWEEN else ""
    mistake = describe_mistake(best, good, line, until, code, verdict)
    if not mistake:
        others = [one for one in good if (one.line, one.mutant.kind) != (best.line, kind)]
        return make_lead(others, tested, verdict, source) if others else None
    words = f"{mistake} Correcting this{instead} makes {result}."
    until = until if kind in BETWEEN | {"order", "too early"} else 0
    if kind == "swapped" and len(also) == 1:  # two lines that disagree: each of them may be the wrong one
        until = also[0]
    return Lead(line, until, words, kind, also)


def _leave_out_disguises(good: list[Candidate]) -> list[Candidate]:
    """Return the candidates without those that only keep a statement from running, where leaving it out does as well.

    Such as another variable or number in its condition, with which the condition never holds.
    """
    idle = {one.line: one.mutant.what for one in good if one.mutant.kind == "condition"}
    left_out = {one.line for one in good if one.mutant.kind == "statement"}
    return [
        one
        for one in good
        if one.mutant.kind not in ("variable", "number")
        or one.line not in left_out
        or not re.search(rf"(?<![\w.]){re.escape(one.mutant.what)}(?![\w.])", idle.get(one.line, ""))
    ]


def _leave_out_lone_lanes(good: list[Candidate], code: Sequence[str]) -> list[Candidate]:
    """Return the candidates without those that match each lane with itself alone, by an index of threads.

    Whatever is wrong with what a group's leader does for all of it, each lane then does for itself.
    """

    def is_lone(one: Candidate) -> bool:
        if one.mutant.kind != "variable" or not 0 < one.line <= len(code) or not one.mutant.needed:
            return False
        own = rf"(?<![\w.]){re.escape(one.mutant.needed)}\s*=(?!=)[^;]*\bthreadIdx\b"
        return "__match_any_sync" in code[one.line - 1] and any(re.search(own, line) for line in code)

    return [one for one in good if not is_lone(one)]


def _leave_out_far_barriers(good: list[Candidate], verdict: Verdict) -> list[Candidate]:
    """Return the candidates without the barriers that do not lie between the two accesses that race, if others do.

    A barrier in front of both only changes the order in which the threads of a block run on a CPU.
    """
    races = (stage for stage in verdict.stages if stage.reason in RACES and stage.evidence and stage.evidence[0].line)
    race = next(races, None)
    other = RACING.search(race.message) if race is not None else None
    if race is None or other is None:
        return good
    first, last = sorted((race.evidence[0].line or 0, int(other[1])))
    far = [one for one in good if one.mutant.kind == "barrier" and not (first <= one.line and one.until <= last)]
    barriers = sum(one.mutant.kind == "barrier" for one in good)
    return [one for one in good if one not in far] if len(far) < barriers else good


def describe_mistake(
    best: Candidate,
    good: list[Candidate],
    line: int,
    until: int,
    code: Sequence[str] = (),
    verdict: Verdict | None = None,
) -> str:
    """Return what is wrong in a line and what to do; empty where it is not known (EXACT).

    good: all candidates that did as well as the best one.
    What the line needs instead is only named if no two mutants of the same text disagree on it. code: the lines of the
    file.
    """
    kind, what = best.mutant.kind, best.mutant.what
    alike = [one.mutant for one in good if (one.line, one.mutant.kind) == (best.line, kind)]
    whats = {mutant.what for mutant in alike}
    needs = {mutant.needed for mutant in alike}
    if len(whats) == 1 and what and (words := _explain_value(kind, what, needs, line, code)):
        return words
    if kind in ("operator", "term") and len(whats) == 1 and what:
        # A grid that is rounded up passes, and so does any larger one: rounding is then the mistake.
        needs = {ROUNDED_UP} if ROUNDED_UP in needs else needs
        if needs == {ROUNDED_UP}:
            return ROUNDS_DOWN.format(what=what, line=line)
        if needs == {ONE_MORE}:
            return effects.explain_too_small(
                what, line, code, verdict is not None and verdict.reason is Reason.non_finite
            )
        stage = verdict.first_problem if verdict else None
        pattern = (stage.evidence[0].pattern or "") if stage and stage.evidence else ""
        if words := effects.explain_operation(what, needs, line, code, _find_twice(best, good), pattern):
            return words
    if (
        kind == "scale"
        and len(needs) == 1
        and (words := effects.explain_missing_factor(what, best.mutant.needed, line, code))
    ):
        return words
    if kind == "guard" and len(needs) == 1 and len(whats) == 1 and what:
        return effects.explain_missing_guard(what, best.mutant.needed, line, until, code)
    if kind == "index" and len(needs) == 1 and len(whats) == 1 and what:
        return effects.explain_shifted_index(what, next(iter(needs)) == ONE_LESS, line, code)
    if kind in ("condition", "statement") and (words := _explain_idle(best, good)):
        return words
    if kind == "too early" and len(whats) == 1 and what:
        return effects.explain_overwritten(what, line, until, code)
    if kind == "order" and until == line:
        return f"Line {line} takes `{what}` apart in the wrong order."
    names: dict[str, str | int] = {"line": line, "until": until}
    if len(whats) == 1 and what:
        names["what"] = what
        if kind == "sign":
            names["side"] = "above" if "<" in what else "below"
        if len(needs) == 1 and best.mutant.needed:
            names |= _name_needed(kind, best.mutant.needed)
    if kind in EXACT and "needed" not in names:
        return ""
    for sentence in SENTENCES[kind]:
        if {field for _, field, _, _ in string.Formatter().parse(sentence) if field} <= {*names}:
            return sentence.format(**names)
    raise AssertionError(f"no sentence for {kind} without names")


def _explain_value(kind: str, what: str, needs: set[str], line: int, code: Sequence[str]) -> str:
    """Return what a comparison, a number, a term or an argument does; empty for another kind, or if it is not known."""
    if kind == "comparison":
        return value_effects.explain_comparison(what, needs, line)
    if kind == "number":
        return value_effects.explain_number(what, needs, line, code)
    if kind == "term" and (words := value_effects.explain_term(what, needs, line, code)):
        return words
    if kind in ("term", "operator"):
        return value_effects.explain_other_operator(what, needs, line)
    if kind == "argument" and len(needs) == 1:
        return value_effects.explain_argument(what, next(iter(needs)), line, code)
    return ""


def _explain_idle(best: Candidate, good: list[Candidate]) -> str:
    """Return that a statement must not run where its condition holds; empty unless both are known to be in one line."""
    here = {one.mutant.kind: one.mutant.what for one in good if one.line == best.line}
    condition, statement = here.get("condition"), here.get("statement")
    if not condition or not statement or "{" in statement:
        return ""
    return f"Line {best.line} runs `{statement}` where `{condition}`, and must not run it there."


def _find_twice(best: Candidate, good: list[Candidate]) -> int:
    """Return the other line whose operation applies the same operand as the best candidate's; 0 if not just one."""
    applied = {
        one.line
        for one in good
        if one.mutant.kind == best.mutant.kind
        and all(effects.split_operation(one.mutant.what, one.mutant.needed))
        and effects.split_operation(one.mutant.what, one.mutant.needed)
        == effects.split_operation(best.mutant.what, best.mutant.needed)
    }
    others = applied - {best.line}
    return others.pop() if len(others) == 1 else 0


def _name_needed(kind: str, needed: str) -> dict[str, str]:
    """Return the fields of a sentence that say what a line needs. needed: of the mutant."""
    names = {"needed": needed}
    if kind == "outer index":  # n * C + c
        names |= {"outer": needed.partition(" ")[0], "inner": needed.rpartition(" ")[2]}
    elif kind == "tile start":  # query - first
        names |= {"start": needed.rpartition(" ")[2]}
    elif kind == "unused":
        value, sign, term = needed.rsplit(" ", 2)  # sum + bias[c]
        value = f"`{value}`" if len(value) <= LONGEST_VALUE else "the value"
        names |= {"apply": APPLY_TO[sign].format(term=f"`{term}`", value=value)}
    elif kind == "argument":
        sign, _, name = needed.partition(" ")
        names |= {"apply": APPLY[sign].format(name)}
    return names


def make_birth_lead(line: int, value: str, source: str) -> Lead:
    """Return the lead of the line that is the first to turn finite numbers into `value`, NaN or infinity."""
    at, words = value_effects.explain_birth(line, value, source.split("\n"))
    return Lead(at, 0, words, BIRTH)


def _rank(one: Candidate, verdict: Verdict, code: Sequence[str]) -> int:
    """Return how likely the kind of a mutant is; lower is likelier.

    Least likely is one that drops what is subtracted in the argument of exp: without it small values are right too.
    """
    if one.mutant.kind == "term" and effects.is_in_exponent(one.mutant.what, one.line, code):
        return len(KINDS)
    if (
        one.mutant.kind == "operator"
        and one.mutant.needed
        and one.mutant.what.startswith(f"{one.mutant.needed} /")
        and 0 < one.line <= len(code)
        and effects.ends_loop(one.mutant.what, code[one.line - 1])
    ):
        return -1  # a loop that ends too early is said in fewer words than a comparison that lets it run further
    if one.mutant.kind == "number" and value_effects.is_lane_mask(one.mutant.what, one.mutant.needed, one.line, code):
        return -1  # a mask with the lane's own bit explains why an index is one too large
    raced = any(stage.reason in RACES for stage in verdict.stages)
    return -1 if raced and one.mutant.kind == "barrier" else KINDS.index(one.mutant.kind)


def _reads_only(one: Candidate, verdict: Verdict, code: Sequence[str]) -> bool:
    """Return whether a swapped index is one that a line reads, where the result itself lies in memory swapped.

    The index of the store is then likelier to be wrong than those of the reads, which agree with each other.
    """
    stage = verdict.first_problem
    pattern = (stage.evidence[0].pattern or "") if stage and stage.evidence else ""
    if one.mutant.kind != "swapped" or not 0 < one.line <= len(code) or "swapped" not in pattern:
        return False
    return re.search(r"\]\s*=(?!=)", code[one.line - 1]) is None


def _span(best: Candidate, good: list[Candidate]) -> tuple[int, int]:
    """Return the place of the best candidate, joined with the places next to it where a barrier helps too."""
    line, until = best.line, best.until
    barriers = [
        one
        for one in good
        if one.mutant.kind == best.mutant.kind == "barrier" and one.mutant.depth == best.mutant.depth
    ]
    for _ in barriers:
        for one in barriers:
            if one.until == line or one.line == until:
                line, until = min(line, one.line), max(until, one.until)
    return line, until


def _distance_to_race(one: Candidate, verdict: Verdict) -> tuple[int, bool, int]:
    """Return how far a barrier is from the race: outside of inner loops and soon after the race is best."""
    races = [
        stage.evidence[0].line
        for stage in verdict.stages
        if stage.reason in RACES and stage.evidence and stage.evidence[0].line
    ]
    if one.mutant.kind != "barrier" or not races:
        return 0, False, 0
    return one.mutant.depth, one.until < races[0], abs(one.until - races[0])
