"""Times every step of a problem's ladder, eager, torch.compile and submissions beside one another on a GPU, in one run.

Each problem is measured by a process of its own, the child, so that a kernel that destroys the GPU's state costs one
row: the rest is measured again without it. In each round every row is run once, in random order: the L2 cache is
flushed, and two events on the stream stand around one call. What the child finds it says at once, a line of JSON each,
so that whatever was measured is kept when somebody interrupts.

rows: what is measured; work, times, models, backward, child, sweep: how, in the child; children, runs, clocks, ncu: what
starts and hears it; part, tables, growth, drawings: what becomes of the figures.
"""

from __future__ import annotations

from grader.bench.backward import within
from grader.bench.child import TASKS, WARM_UPS, Order, child
from grader.bench.children import PATIENCE, Measured, build, measure
from grader.bench.clocks import Clocks, reading
from grader.bench.drawings import draw
from grader.bench.models import error_of, expected_of, load, prepared
from grader.bench.ncu import launches_in, short
from grader.bench.part import PROOF, told
from grader.bench.rows import KINDS, MODES, OURS, SPARED, Entry, backward_of, entries, ladder_of, precision_of, sweep_entries
from grader.bench.runs import DATA, SECONDS, SEEDS, NoData, Options, choose, incomplete, machine, run, write
from grader.bench.tables import HEADS, SUMMARY, sentences_of, summary, table, tables_of
from grader.bench.times import FEWEST, MOST, NARROW, SLOW, Events, is_narrow, median, rank, rounds, wall
from grader.bench.work import Work, allow_tf32, roof_of, work_of

__all__ = [
    "Clocks", "DATA", "Entry", "Events", "FEWEST", "HEADS", "KINDS", "MODES", "MOST", "Measured", "NARROW", "NoData",
    "OURS", "Options", "Order", "PATIENCE", "PROOF", "SECONDS", "SEEDS", "SLOW", "SPARED", "SUMMARY", "TASKS",
    "WARM_UPS", "Work", "allow_tf32", "backward_of", "build", "child", "choose", "draw", "entries", "error_of",
    "expected_of", "incomplete", "is_narrow", "ladder_of", "launches_in", "load", "machine", "measure", "median",
    "precision_of", "prepared", "rank", "reading", "roof_of", "rounds", "run", "sentences_of", "short", "summary",
    "sweep_entries", "table", "tables_of", "told", "wall", "within", "work_of", "write",
]  # fmt: skip
