"""Is it told why a loop does not end, where its text shows it?"""

import pytest

from grader.source.loops import find_endless_loop

SAYS_NOTHING = "Check which values of"


def find(text: str, line: int = 1):
    place = find_endless_loop("", text.split("\n"), line)
    assert place is not None and place.instead
    return place


@pytest.mark.parametrize(
    "head, why",
    [
        ("for (int i = lane; i < n; i %= n)", "`i %= n` leaves each `i` below `n` as it is, so `i < n` always holds."),
        ("for (int k = 0; K > k; k = k % K)", "`k = k % K` leaves each `k` below `K` as it is"),
        ("while (p != W)\n    p = p % W;", "`p = p % W` leaves each `p` below `W` as it is"),
        ("for (int i = 2; i < n; i = i)", "`i = i` leaves `i` as it is."),
        ("for (int i = 0; i < n; i += 0)", "`i += 0` leaves `i` as it is."),
        ("for (int d = 0; d < 64; d *= 2)", "`d` starts at 0, and `d *= 2` leaves 0 as it is. Let `d` start at 1."),
        ("for (int d = 0; d < 64; d = 2 * d)", "`d` starts at 0, and `d = 2 * d` leaves 0 as it is."),
        ("for (int d = 0; d < n; d <<= 1)", "`d` starts at 0, and `d <<= 1` leaves 0"),
        ("for (int i = n - 1; i >= 0; ++i)", "`++i` makes `i` larger, so `i >= 0` always holds. Let `i` shrink"),
        ("for (int s = 1; s < 256; s /= 2)", "`s /= 2` makes `s` smaller, so `s < 256` always holds. Let `s` grow"),
        ("for (int i = 0; i < n; i -= THREADS)", "`i -= THREADS` makes `i` smaller"),
        ("for (size_t i = n; i >= 0; --i)", "`i` is unsigned, so `i >= 0` always holds. Declare it `int`."),
        (
            "for (int i = 1; i != n; i += 2)",
            "`i += 2` can step over `n`, so that `i` is never equal to it. Test `i < n`.",
        ),
        ("for (int s = 64; s > 0; s = (s + 1) / 2)", "leaves 1 as it is, so `s > 0` always holds. Test `s > 1`."),
        ("for (int i = 0; i < n; ++j)", "nothing in it changes `i` or `n`."),
    ],
)
def test_why_a_loop_does_not_end(head, why):
    text = head if ";\n" in head or head.endswith(";") else f"{head} {{\n    y[i] = 1;\n}}"
    place = find(text)
    assert why in place.words and place.words.startswith("The loop in line 1 does not end: ") and place.lines == (1,)


@pytest.mark.parametrize(
    "head",
    [
        "for (int i = 1; i < n; i = i % m)",  # another limit
        "for (int i = 0; i < n; i += step)",  # it may be 0, or negative
        "for (int i = a; i < n; i = (i + 1) % m)",
        "for (int d = s; d < 64; d *= 2)",  # it may start at 0
        "for (int i = n; i > 0 && b; ++i)",  # two tests
        "for (int i = 0; i < n; i = next(i))",
    ],
)
def test_no_reason_is_made_up(head):
    assert SAYS_NOTHING in find(f"{head} {{\n    y[i] = 1;\n}}").words
    assert find_endless_loop("", [f"{head} {{", "    y[i] = 1;", "}"], 0) is None


def test_another_change_in_the_body_is_seen():
    """Is nothing certain of a loop whose body changes the variable too, or leaves the loop?"""
    assert SAYS_NOTHING in find("for (int i = 0; i < n; i = i % n) {\n    ++i;\n}").words
    left = "for (int i = n; i > 0; ++i) {\n    if (x[i]) break;\n}"
    assert "makes `i` larger" in find(left).words and find_endless_loop("", [*left.split("\n")], 0) is None


def test_a_body_without_braces_may_be_a_loop():
    """Is the change seen in a loop that is itself the body, or one with braces?"""
    for body in ("    for (int k = 0; k < 3; ++k)\n        i += x[k];", "    for (;;) {\n        i += 2;\n    }"):
        assert SAYS_NOTHING in find(f"while (i < n)\n{body}").words
