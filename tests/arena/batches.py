"""Divide dishonest submissions into batches, and grade a batch.

Files that should achieve nothing are graded together, which takes half the time; what surprises is graded again by
itself, so that the result belongs to one file.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from tests.arena.arena import Arena
from tests.arena.specimen import Attempt, Specimen

TOGETHER = 20  # files in one batch


def make_batches(specimens: Sequence[Specimen], level: str) -> Iterator[list[Specimen]]:
    """Divide specimens into batches: by itself what should harm others here, or is handed in in another way."""
    alone = [one for one in specimens if not _is_plain(one) or (level in one.succeeds_at and not one.tells)]
    yield from ([one] for one in alone)
    for _, alike in itertools.groupby(sorted((one for one in specimens if one not in alone), key=_alike), key=_alike):
        waiting = list(alike)
        while waiting:
            yield waiting[:TOGETHER]
            del waiting[:TOGETHER]


def _alike(specimen: Specimen) -> tuple[str, float]:
    return specimen.problem, specimen.seconds


def _is_plain(specimen: Specimen) -> bool:
    """Return whether a specimen can be in a batch with others."""
    return not specimen.refused and specimen.names_problem and not specimen.handed_in_as


def attempt_batch(
    arena: Arena, batch: list[Specimen], notify: Callable[[list[str]], None] = lambda harms: None
) -> Iterator[Attempt]:
    """Grade a batch, and then by itself what surprises in it; each file where the batch as a whole does.

    notify: called with what a batch of several achieved.
    """
    attempts, harms = arena.attempt_together(batch)
    if len(batch) == 1:
        attempts[0].harms += harms
        yield attempts[0]
        return
    if harms:
        notify(harms)
    for made in attempts:
        yield arena.attempt(made.specimen) if harms or made.find_mistake() else made
