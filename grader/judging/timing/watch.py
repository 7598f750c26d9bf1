"""Keep the submission away from the GPU while others are timed, and notice where it, or anything else, is not."""

from __future__ import annotations

import time

import torch

from grader.worker.process import Process

CANARY_S = 0.004  # several time slices, which contexts of a GPU get in turn
CANARY_BYTES = 64 << 20
CALIBRATIONS = 20
SLOW_FACTOR = 1.1  # times the usual time: a second program that computes makes it 2, one that idles half the time 1.5
TRIES = 3
BUSY_SHARE = 0.2  # of the turns of baselines that may be disturbed


class Canary:
    """A fixed piece of work of the judge's own, by whose time it sees whether something else uses the GPU.

    Calibrated when it is made, which must be before anything of the submission runs.
    """

    def __init__(self):
        count = min(CANARY_BYTES, torch.cuda.mem_get_info()[0] // 16)
        self.source = torch.zeros(count, dtype=torch.uint8, device="cuda")
        self.target = torch.empty_like(self.source)
        self.repeats = 1
        once = min(self._measure() for _ in range(CALIBRATIONS))
        self.repeats = max(1, round(CANARY_S / once))
        self.usual = min(self._measure() for _ in range(CALIBRATIONS))

    def _measure(self) -> float:
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(self.repeats):
            self.target.copy_(self.source)
        torch.cuda.synchronize()
        return time.perf_counter() - started

    def is_disturbed(self) -> bool:
        """Return whether the work takes longer than usual, also when repeated."""
        return all(self._measure() > SLOW_FACTOR * self.usual for _ in range(TRIES))


class Watch:
    """Stops the submission's processes but for its own turns, and looks with a canary before and after each other turn.

    turns, disturbed: of others, and how many of them something else on the GPU disturbed.
    """

    def __init__(self, canary: Canary, process: Process):
        self.canary, self.process = canary, process
        self.turns = self.disturbed = 0
        self.noted = False

    def begin_own(self) -> None:
        """Let the submission run."""
        self.process.thaw()

    def end_own(self) -> None:
        """Stop the submission."""
        self.process.freeze()

    def begin_other(self) -> None:
        """Stop the submission before another's turn, and look."""
        self.process.freeze()
        self.turns += 1
        self.noted = self.canary.is_disturbed()
        self.disturbed += self.noted

    def end_other(self) -> None:
        """Look after another's turn, which is counted once."""
        if not self.noted:
            self.disturbed += self.canary.is_disturbed()

    def is_disturbed(self) -> bool:
        """Return whether too many turns were disturbed for a conclusion."""
        return self.disturbed > BUSY_SHARE * self.turns
