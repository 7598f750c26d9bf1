"""Read the GPU's clocks, power and temperature during a run."""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import statistics
import subprocess

import torch

CLOCKS = ("timestamp", "clocks.sm", "clocks.mem", "power.draw", "temperature.gpu")
INTERVAL_MS = 200  # between two readings of the clocks


class Clocks:
    """Reads the GPU's clocks and power in the background if nvidia-smi is installed.

    log: a list [seconds, SM MHz, memory MHz, watts, degrees] for each reading.
    """

    def __init__(self):
        self.start, self.process, self.rest = datetime.datetime.now(), None, b""
        self.log: list[list[float]] = []

    def __enter__(self) -> Clocks:
        program = shutil.which("nvidia-smi")
        if program and torch.cuda.is_available():
            which = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
            query = [f"--query-gpu={','.join(CLOCKS)}", "--format=csv,noheader,nounits", f"--loop-ms={INTERVAL_MS}"]
            command = [program, f"--id={which}", *query]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            assert self.process.stdout is not None
            os.set_blocking(self.process.stdout.fileno(), False)
        return self

    def __exit__(self, *_: object) -> None:
        self.read()
        if self.process:
            self.process.terminate()
            self.process.wait()

    def read(self) -> None:
        """Add the readings since the last call to the log."""
        if self.process is None or self.process.stdout is None:
            return
        with contextlib.suppress(BlockingIOError):
            *lines, self.rest = (self.rest + (self.process.stdout.read() or b"")).split(b"\n")
            self.log += filter(None, (parse_reading(line.decode(errors="replace"), self.start) for line in lines))

    def summarize(self, since: int = 0) -> dict | None:
        """Return minimum, median and maximum of each quantity from reading `since` on; None if there is no reading."""
        log = self.log[since:]
        if not log:
            return None
        columns = list(zip(*log, strict=True))[1:]
        names = ("sm_mhz", "memory_mhz", "watts", "celsius")
        ends = {n: [min(c), statistics.median(c), max(c)] for n, c in zip(names, columns, strict=True)}
        return ends | {"readings": len(log)}


def parse_reading(line: str, start: datetime.datetime) -> list[float] | None:
    """Return a line of nvidia-smi as seconds since the start and numbers; None if a field is no number ([N/A])."""
    when, *values = line.split(",")
    try:
        seconds = (datetime.datetime.strptime(when.strip(), "%Y/%m/%d %H:%M:%S.%f") - start).total_seconds()
        return [round(seconds, 1), *map(float, values)]
    except ValueError:
        return None
