"""grader.guess: compares what a reader expects with what a lesson's cell counts or computes."""

from __future__ import annotations

import math

from grader.reports.terminal import line

NONE_YET = "No guess yet: write one in the cell and run it again."
MOST_SHOWN = 40  # characters of a guess that is no number


def guess(said: object, truth: float | str, unit: str = "", within: float = 0.0) -> None:
    """Print a reader's guess beside the truth.

    said: the reader's guess, or None if there is none yet. truth: a finite number, or one of a question's choices as
    text. unit: of the number, in the plural ("sectors"). within: how far a number may be off, as a part of the truth,
    and still count as right: 0.1 is 10 %.
    """
    print(_answer(said, truth, unit, within))


def _answer(said: object, truth: float | str, unit: str, within: float) -> str:
    if said is None or (isinstance(said, str) and not said.strip()):
        return f"{NONE_YET} It is {_show(truth, unit)}."
    if isinstance(truth, str):
        told = _quote(said)
        if told.casefold() == truth.casefold():
            return f"Your guess is right: {truth}."
        return f"You guessed {told}. It is {truth}."
    number = _read(said)
    if number is None:
        return f"Your guess {_quote(said)!r} is not a number. It is {_show(truth, unit)}."
    if math.isclose(number, truth, rel_tol=1e-6):
        return f"Your guess is right: {_show(truth, unit)}."
    if abs(number - truth) <= within * abs(truth) * (1 + 1e-9):
        return f"Your guess is near enough: it is {_show(truth, unit)}, and you guessed {_show(number, unit)}."
    return f"You guessed {_show(number, unit)}. It is {_show(truth, unit)}{_compare(truth, number)}."


def _read(said: object) -> float | None:
    """Return a guess as a number, also one written with commas ("1,000"); None for anything else."""
    try:
        number = float(said.replace(",", "") if isinstance(said, str) else said)  # type: ignore[arg-type]
    except Exception:  # whatever a reader has put there
        return None
    return number if math.isfinite(number) else None


def _quote(said: object) -> str:
    """Return a guess as text in one line."""
    try:
        text = line(str(said)).strip()
    except Exception:
        text = type(said).__name__
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "…"


def _show(value: float | str, unit: str) -> str:
    if isinstance(value, str):
        return value
    if abs(value) >= 1e15:
        text = f"{value:.4g}"
    else:
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
