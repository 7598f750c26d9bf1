"""Are the ends of template argument lists found, and comparisons not taken for them?"""

import pytest

from simt.frontend.source import Source
from simt.frontend.tokens import find_angle_end


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("f<int>(x);", ">"),
        ("f<(1 > 2), int>(x);", ">"),
        ("f<g<int>>(x);", ">"),
        ("if (a < b) c = (d > e);", None),
        ("while (a < b) (f)(x > 1);", None),
        ("a < b; c > d;", None),
        ("a < b { c > d; }", None),
    ],
)
def test_end_of_template_arguments(text, end):
    tokens = Source(text, "test").tokens
    found = find_angle_end(tokens, next(i for i, t in enumerate(tokens) if t.text == "<"))
    assert (tokens[found].text if found >= 0 else None) == end
    if end:
        assert "".join(t.text for t in tokens[found + 1 :]) == "(x);"
