"""Is what a file passes to load_inline read without running it, and nothing made up where it cannot be?"""

import pytest

from grader.paths import KERNELS_STUDENT
from grader.source.inline_call import Binding, read_bindings


@pytest.mark.parametrize(
    "text, expected",
    [
        ('load_inline(name="m", cpp_sources="void f();", functions=["f"])', [Binding(("void f();",), ("f",))]),
        ('d = "void f();"\nx = ext.load_inline("m", cpp_sources=[d], functions="f")', []),  # a name within a list
        (
            'd = ["a();", "b();"]\nload_inline("m", cpp_sources=d, functions=("a", "b"))',
            [Binding(("a();", "b();"), ("a", "b"))],
        ),
        ('load_inline("m", cpp_sources="x();", functions={"x": "its help"})', []),
        ('load_inline("m", cpp_sources=open("f").read(), functions=["f"])', []),
        ('load_inline("m", "x();", functions=["x"])', []),
        ('load_inline("m", cpp_sources=other, functions=["f"])', []),
        ('load_inline("m", cpp_sources=3, functions=["f"])', []),
        ("load_inline(**everything)", []),
        ("def load_inline(:", []),
        ("", []),
    ],
)
def test_bindings_are_read_where_they_are_literals(text, expected):
    assert read_bindings(text) == expected


def test_every_exercise_of_the_course_has_one():
    files = sorted(KERNELS_STUDENT.glob("*.py"))
    found = {file.stem: read_bindings(file.read_text(encoding="utf-8")) for file in files}
    assert len(found) > 20 and all(found.values())
    for bindings in found.values():
        for one in bindings:
            assert all(any(name in source for source in one.cpp_sources) for name in one.functions)
