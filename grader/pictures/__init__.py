"""Draw pictures that explain a kernel, from plain data and without a GPU.

matplotlib is imported when a picture is first shown.
"""

from __future__ import annotations

from grader.pictures.access_map import access_map, out_of_bounds_map
from grader.pictures.alignment_map import alignment_map
from grader.pictures.bank_map import bank_map
from grader.pictures.error_map import error_map
from grader.pictures.explain import explain_line, explain_verdict
from grader.pictures.ladder import Step, ladder, steps_of
from grader.pictures.launch_map import launch_map
from grader.pictures.picture import Picture
from grader.pictures.race_map import RaceAccess, race_map
from grader.pictures.reduction_tree import Add, reduction_tree
from grader.pictures.request import Access
from grader.pictures.roofline import Point, Roof, point_of, roof_of, roofline
from grader.pictures.sweep import Line, sweep
from grader.pictures.waterfall import TimedLaunch, launches_of, waterfall

__all__ = [
    "Access",
    "Add",
    "Line",
    "Picture",
    "Point",
    "RaceAccess",
    "Roof",
    "Step",
    "TimedLaunch",
    "access_map",
    "alignment_map",
    "bank_map",
    "error_map",
    "explain_line",
    "explain_verdict",
    "ladder",
    "launch_map",
    "launches_of",
    "out_of_bounds_map",
    "point_of",
    "race_map",
    "reduction_tree",
    "roof_of",
    "roofline",
    "steps_of",
    "sweep",
    "waterfall",
]
