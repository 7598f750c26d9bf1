"""Pictures that explain: each takes plain data and is drawn without a GPU; matplotlib is imported when one is first looked at."""

from __future__ import annotations

from grader.pictures.access_map import access_map, past_the_end
from grader.pictures.alignment_map import alignment_map
from grader.pictures.bank_map import bank_map
from grader.pictures.error_map import error_map
from grader.pictures.explain import of, of_line
from grader.pictures.ladder import Step, ladder, steps_of
from grader.pictures.launch_map import launch_map
from grader.pictures.picture import Picture
from grader.pictures.race_map import Access as Meeting
from grader.pictures.race_map import race_map
from grader.pictures.reduction_tree import Add, reduction_tree
from grader.pictures.request import Access
from grader.pictures.roofline import Point, Roof, point_of, roof_of, roofline
from grader.pictures.sweep import Line, sweep
from grader.pictures.waterfall import Launched, launches_of, waterfall

__all__ = [
    "Access", "Add", "Launched", "Line", "Meeting", "Picture", "Point", "Roof", "Step", "access_map", "alignment_map", "bank_map", "error_map", "ladder",
    "launch_map", "launches_of", "of", "of_line", "past_the_end", "point_of", "race_map", "reduction_tree", "roof_of", "roofline", "steps_of", "sweep",
    "waterfall",
]  # fmt: skip
