"""Time every step of a problem's ladder, eager, torch.compile and submissions on a GPU, in one run.

A child process measures each problem, so that a kernel that destroys the GPU's state costs one row: another child
measures the rest without it. Each round runs every row once, in random order: the L2 cache is flushed, and two events
on the stream enclose one call. The child reports each result at once as a line of JSON, so that an interruption keeps
what was measured.

rows, sizes, order: what is measured. work, times, models, backward: how. interleaved, sweep, child: the child process.
children, clocks, ncu, runs: the parent process. part, tables, growth, drawings: the data file, tables, text and
pictures.
"""

from __future__ import annotations

from grader.bench.drawings import draw
from grader.bench.rows import SPARED
from grader.bench.runs import SECONDS, SEEDS, NoBenchData, Options, choose, incomplete, run
from grader.bench.tables import sentences_of, tables_of

__all__ = [
    "SECONDS",
    "SEEDS",
    "SPARED",
    "NoBenchData",
    "Options",
    "choose",
    "draw",
    "incomplete",
    "run",
    "sentences_of",
    "tables_of",
]
