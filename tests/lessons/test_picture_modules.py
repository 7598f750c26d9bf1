"""Is each picture of a lesson's own module, lessons/*_pictures.py, shown in a lesson, described, and up to date?"""

from __future__ import annotations

import importlib
import re
import sys

import nbformat
import pytest

from benchmarks.paths import ROOT

LESSONS = ROOT / "lessons"
sys.path.append(str(LESSONS))  # the modules and the notebooks import from there
PICTURES = [
    (path.stem, name)
    for path in sorted(LESSONS.glob("*_pictures.py"))
    for name in re.findall(r"^def ([a-z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), PICTURES)
def test_a_picture_is_shown_with_todays_description(module, name):
    """Does the function return a PNG with alt text, and has a lesson one cell that shows it, with the same alt text?"""
    picture = getattr(importlib.import_module(module), name)()
    assert picture.data.startswith(b"\x89PNG") and len(picture.alt) > 40
    shown = [
        output.metadata["image/png"]["alt"]
        for path in LESSONS.glob("[0-9]*.ipynb")
        for cell in nbformat.read(path, 4).cells
        if cell.cell_type == "code" and cell.source == f"from {module} import {name}\n\n{name}()"
        for output in cell.outputs
    ]
    assert shown == [picture.alt], "run the lesson again and save it"
