"""grader.guess: compares what a reader expects with what a lesson's cell counts or computes."""

from __future__ import annotations

import math

NONE_YET = "No guess yet: write one in the cell and run it again."


def guess(said: float | str | None, truth: float | str, unit: str = "", within: float = 0.0) -> None:
    """Print a reader's guess beside the truth.

    said: the reader's guess, or None if there is none yet. truth: a number, or one of a question's choices as text.
    unit: of the number, in the plural ("sectors"). within: how far a number may be off, as a part of the truth, and
    still count as right: 0.1 is 10 %.
    """
    print(_answer(said, truth, unit, within))


def _answer(said: float | str | None, truth: float | str, unit: str, within: float) -> str:
    if said is None or said == "":
        return f"{NONE_YET} It is {_show(truth, unit)}."
    if isinstance(truth, str):
        if str(said).strip().casefold() == truth.casefold():
            return f"Your guess is right: {truth}."
        return f"You guessed {str(said).strip()}. It is {truth}."
    try:
        number = float(said)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        return f"Your guess {said!r} is not a number. It is {_show(truth, unit)}."
    if number == truth:
        return f"Your guess is right: {_show(truth, unit)}."
    if abs(number - truth) <= within * abs(truth):
        return f"Your guess is near enough: it is {_show(truth, unit)}, and you guessed {_show(number, unit)}."
    return f"You guessed {_show(number, unit)}. It is {_show(truth, unit)}{_compare(truth, number)}."


def _show(value: float | str, unit: str) -> str:
    if isinstance(value, str):
        return value
    text = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"
    return f"{text} {unit}".rstrip()


def _compare(truth: float, number: float) -> str:
    """Return how many times as much the truth is, where it is far from the guess."""
    if truth <= 0 or number <= 0 or 2 / 3 < truth / number < 1.5:
        return ""
    if truth > number:
        return f", {truth / number:.3g} times as much"
    less = number / truth
    return f", {_PARTS[less]} as much" if less in _PARTS else f", {less:.3g} times less"


_PARTS = {2.0: "half", 3.0: "a third", 4.0: "a quarter"}
