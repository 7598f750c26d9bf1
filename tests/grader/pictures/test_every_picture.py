"""Has every picture an alt text, is no text cut off, and do two renderings give the same bytes?"""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from grader import pictures
from grader.pictures import request as rules
from tests.grader.pictures.drawn import SVG, words

ROOT = Path(__file__).resolve().parents[3]


def grown(powers):
    """A line for each kind and class that a sweep may have."""
    kinds = [
        (k, p) for k in ("beside", "reference", "submission", "step", "eager", "compile") for p in ("fp32", "tf32")
    ]
    return [
        pictures.Line(f"{k} {p}", k, p, tuple((2**n, (i + 1) * 1e-9 * (1 + 8 / 2**n)) for n in powers))
        for i, (k, p) in enumerate(kinds)
    ]


# Stays whole: it is a list of pictures.
def gallery():
    rng = np.random.default_rng(0)
    mixed = np.zeros((4, 16, 62, 62), bool)
    mixed[:, 3, 16::16, :] = mixed[:, 5, :, 15::16] = True
    mixed[2, 7] = rng.random((62, 62)) < 0.1
    strided, wide = (
        rules.Access([128 * lane for lane in range(32)]),
        rules.Access([2048 * lane for lane in range(32)], 16, start=24),
    )
    long = "a_kernel_with_a_very_long_name_indeed<float, 256, true>"
    steps = pictures.steps_of("groupnorm")
    many: Any = 1024  # one number, as in <<<(32, 8, 3), 1024>>>
    one: Any = 1
    eager = [pictures.TimedLaunch(long, 1e-3 * (i + 1), 1e9, 1 + i * 999) for i in range(9)]
    return {
        "error map": pictures.error_map(mixed, tile=(16, 16), pattern="some in channels 3, 5, 7"),
        "error map of two images": pictures.error_map(mixed[:2, :1] | True, tile=(16, 16)),
        "error map, flat": pictures.error_map(np.arange(1000) > 991, block=256),
        "error map, noise": pictures.error_map(rng.random((2, 3, 254, 254)) < 0.3, pattern="x" * 200),
        "launch map": pictures.launch_map(
            (32, 8, 3),
            many,
            thread=(1000,),
            at=(31, 7, 2),
            shape=(112, 64, 512, 512),
            writes=(0, 3, 200, 488),
            kernel=long,
        ),
        "launch map, small": pictures.launch_map(1, one),
        "access map": pictures.access_map(strided, text="const float v = x[i * 32];" * 9),
        "access map, 17 bytes": pictures.access_map(wide, strided, titles=[long, long]),
        "past the end": pictures.out_of_bounds_map(
            long, 2**31 - 1, 10, verb="updates atomically", thread=(1023, 0, 63), block=(2**31 - 1, 65535, 65535)
        ),
        "past the end of one": pictures.out_of_bounds_map("x", 4, 1),
        "error map of one number a channel": pictures.error_map(np.arange(64).reshape(1, 64, 1, 1) > 0),
        "error map of one element": pictures.error_map(np.ones((1, 1), bool)),
        "alignment map": pictures.alignment_map(
            long,
            2**40 + 6,
            16,
            6,
            verb="updates atomically",
            thread=(1023, 0, 63),
            block=(2**31 - 1, 65535, 65535),
            text=long,
        ),
        "alignment map of few bytes": pictures.alignment_map("x", 2, 4, 2, size=6),
        "bank map": pictures.bank_map(strided, row=32, text="tile[threadIdx.x][threadIdx.y]"),
        "bank map, float4": pictures.bank_map(wide),
        "race": pictures.race_map(
            "partial",
            1,
            pictures.RaceAccess((0, 0, 0), (0, 0, 0), "reads", 16),
            pictures.RaceAccess((1, 0, 0), (0, 0, 0), "writes", 16),
        ),
        "race of blocks": pictures.race_map(
            long,
            2**31 - 1,
            pictures.RaceAccess((1023, 31, 63), (2**31 - 1, 65535, 65535), "updates atomically", 1234),
            pictures.RaceAccess((1022, 31, 63), (2**31 - 2, 65535, 65535), "writes"),
        ),
        "tree": pictures.reduction_tree(list(range(100, 116)), barriers=[True, False, True, False]),
        "tree, shuffle": pictures.reduction_tree(32, kind="shuffle"),
        "roofline": pictures.roofline(
            [pictures.Point(long, 2.6e9 * 9**i, 1.5e10, 8.4e-3 * 3**i, i == 2) for i in range(4)]
        ),
        "roofline of a T4": pictures.roofline([pictures.Point("mine", 1e3, 1e9, 1.0)], "T4"),
        "ladder": pictures.ladder(steps, pictures.Step(long, 7.1e-3, True), problem="groupnorm"),
        "waterfall": pictures.waterfall({"eager": eager, "fused": [pictures.TimedLaunch("k", 1e-5, 1e3)]}),
        "sweep": pictures.sweep(
            {"batch": grown(range(10)), "side": grown(range(5, 10))}, "conv_groupnorm_logsumexp", "No cliff."
        ),
        "sweep of decades": pictures.sweep(
            {"batch": [pictures.Line(long, "step", "fp32", ((1, 3e-5), (3, 1e-12)))]}, long, "No cliff."
        ),
    }


GALLERY = gallery()


@pytest.mark.slow
@pytest.mark.parametrize("name", GALLERY)
def test_no_text_is_cut_off_or_overlaps_another(name, monkeypatch):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    from grader.pictures.picture import style

    placed, draw = [], Text.draw

    def noting(text, renderer):
        draw(text, renderer)
        if text.get_text().strip() and text.get_visible():
            placed.append((text.get_text(), text.get_window_extent(renderer), text.get_rotation()))

    monkeypatch.setattr(Text, "draw", noting)
    with style():
        FigureCanvasAgg(GALLERY[name].figure).draw()
    whole = GALLERY[name].figure.bbox
    for text, box, _ in placed:
        assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1, (
            f"{text!r} is cut off: {box}"
        )
    straight = [(text, box.padded(-1)) for text, box, turned in placed if turned in (0, 90)]
    for i, (one, a) in enumerate(straight):
        for other, b in straight[i + 1 :]:
            assert not a.overlaps(b), f"{one!r} overlaps {other!r}"


@pytest.mark.parametrize("name", GALLERY)
def test_svg_has_alt_text_real_text_and_a_fixed_size(name):
    picture = GALLERY[name]
    root = xml.fromstring(picture.svg())
    assert root.find(f"{SVG}title").text == picture.name and root.find(f"{SVG}desc").text == picture.alt == root.get(
        "aria-label"
    )
    assert root.get("role") == "img" and picture.alt.endswith(".")
    assert len(picture.svg()) < 150_000 and len(words(picture)) > 20
    assert root.get("width") == "576pt"
    assert "<metadata" not in picture.svg()


@pytest.mark.parametrize("name", GALLERY)
def test_html_takes_the_theme_s_colours_for_all_but_data(name):
    drawn = GALLERY[name].html()
    of_theme = {"#1d1d1f", "#55555c", "#a9a69d", "#dedbd2", "#ebe8e0", "#faf9f5"}
    assert not of_theme & set(re.findall(r": (#[0-9a-f]{6})", drawn))
    assert "fill: var(--jp-layout-color0, #faf9f5)" in drawn and "color1, #1d1d1f)" in drawn
    assert GALLERY[name].svg() in re.sub(r"var\(--jp-[a-z0-9-]+, (#[0-9a-f]{6})\)", r"\1", drawn)


@pytest.mark.slow
def test_two_renderings_are_the_same_bytes():
    again = gallery()
    assert all(
        again[name].svg() == picture.svg() and again[name].png(60) == picture.png(60)
        for name, picture in GALLERY.items()
    )


@pytest.mark.slow
def test_another_process_draws_the_same(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from grader.pictures import *\n"
        "access_map(Access([8 * i for i in range(32)])).save(sys.argv[2])"
    )
    for seed in "12":
        own = os.environ | {"PYTHONHASHSEED": seed, "HOME": str(tmp_path / seed)}
        subprocess.run([sys.executable, "-c", code, str(ROOT), str(tmp_path / f"{seed}.svg")], check=True, env=own)
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.svg").read_bytes()


def test_svg_is_shown_in_a_browser_and_png_under_nbval(monkeypatch, tmp_path):
    picture = pictures.ladder(pictures.steps_of("conv2d"))
    monkeypatch.delenv("NBVAL", raising=False)
    monkeypatch.delenv("GRADER_PICTURES", raising=False)
    assert picture._repr_mimebundle_() == {"text/plain": picture.alt, "text/html": picture.html()}
    monkeypatch.setenv("GRADER_PICTURES", "png")
    data, metadata = cast(tuple[dict, dict], picture._repr_mimebundle_())
    assert set(data) == {"text/plain", "image/png"} and metadata["image/png"]["alt"] == picture.alt
    assert picture.save(tmp_path / "a.svg").read_text() == picture.svg()
    assert picture.save(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="svg"):
        picture.save(tmp_path / "a.pdf")


def test_grader_works_without_matplotlib_and_a_picture_says_what_is_missing():
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.path.insert(0, sys.argv[1])\n"
        "import grader.judging.grading, grader.pictures as p\n"
        "x = p.reduction_tree(8); print(x.alt)\n"
        "try: x.svg()\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(ROOT)], capture_output=True, text=True, check=True)
    assert (
        done.stdout.splitlines()[1]
        == "Pictures need matplotlib, which is not installed: install it with `pip install matplotlib`."
    )


def test_matplotlib_is_imported_when_a_picture_is_first_shown():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import grader.pictures as p\n"
        "p.reduction_tree(8)\n"
        "print([m for m in sys.modules if m.startswith('matplotlib')])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(ROOT)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
