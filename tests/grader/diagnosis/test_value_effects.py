"""Is a blamed number, comparison, term or argument told with what it does, in forms that no specimen has?"""

import pytest

from grader.diagnosis import value_effects

MAXIMUM = ["float best = 0.0f;", "for (int j = 0; j < n; ++j) best = fmaxf(best, x[j]);"]


@pytest.mark.parametrize(
    "what, needs, says",
    [
        (
            "c < C - 1",
            {"<="},
            "`c < C - 1` in line 4 is false where `c` is `C - 1`, and must be true there. Write `c <=",
        ),
        ("n >= last", {">", "<"}, "is true where `n` is `last`, and must be false there. Write `n > last`."),
        ("i > total", {"<"}, ""),
        ("1 << k <= n", {"<"}, "is true where `1 << k` is `n`, and must be false there."),
    ],
)
def test_a_comparison_is_told_by_the_equal_values(what, needs, says):
    """Is it said where the comparison goes wrong, and nothing if it goes wrong elsewhere too?"""
    found = value_effects.explain_comparison(what, needs, 4)
    assert says in found and bool(says) == bool(found)


@pytest.mark.parametrize(
    "number, needs, line, code, says",
    [
        (
            "0.0f",
            {"-INFINITY", "-1.0f"},
            1,
            MAXIMUM,
            "The maximum `best` starts at 0.0f in line 1: where all values are",
        ),
        ("0.0f", {"-INFINITY"}, 1, ["float sum = 0.0f;", "sum += x[0];"], ""),
        ("0", {"INFINITY"}, 1, ["float low = 0;", "if (v < low) low = v;"], "The minimum `low` starts at 0"),
        (
            "4",
            {"8"},
            1,
            ["for (int d = 4; d > 0; d /= 2)", "  v += __shfl_down_sync(~0u, v, d);"],
            "each sum takes the values of 8 lanes alone: a warp has 32. Start at 8.",
        ),
        ("3", {"4"}, 1, ["for (int k = 0; k < 3; ++k)"], "The loop in line 1 makes 3 passes, and 4 are needed."),
        ("1", {"0"}, 1, ["y[i] = x[i ^ 1];"], "`i ^ 1` in line 1 exchanges numbers: 0 with 1, 2 with 3"),
        ("7", {"8"}, 1, ["v = code - 7;"], "Line 1 subtracts 7, and it must subtract 8: the result is 1 too large."),
        ("2", {"1"}, 1, ["v = n + 2;"], "Line 1 adds 2, and it must add 1: the result is 1 too large."),
        ("1", {"0"}, 1, ["v = n + 1;"], "Line 1 adds 1, and it must add nothing"),
        ("4", {"8"}, 1, ["v = w >> 4;"], "Line 1 shifts by 4 where 8 is needed."),
        ("4", {"8", "5"}, 1, ["v = w >> 4;"], ""),
        (
            "0.0f",
            {"1.0f", "-1.0f"},
            1,
            ["const float v = i < n ? x[i] : 0.0f;", "__syncthreads();", "product *= v;"],
            "Where `i < n` is false there is no element, and line 1 takes 0.0f in its place. Line 3 uses that like an",
        ),
        ("0", {"1", "2"}, 1, ["int v = flag ? a[i] : b[0];", "s += v;"], ""),
        (
            "2u",
            {"1u"},
            1,
            ["int rank = __popc(same & ((2u << lane) - 1));"],
            "`(2u << lane) - 1` in line 1 has the bits of the lanes up to its own, and those of the lanes before its",
        ),
    ],
)
def test_a_number_is_told_by_what_it_does(number, needs, line, code, says):
    """Is the start of a maximum, a distance, a bound, a shift told as such, and nothing where two numbers would do?"""
    found = value_effects.explain_number(number, needs, line, code)
    assert says in found and bool(says) == bool(found)


@pytest.mark.parametrize(
    "what, needs, line, says",
    [
        ("at + 8", {"at"}, "for (int at = 0; at + 8 <= n; at += 8) {", "Let it run while `at < n`."),
        ("g + 1", {"g"}, "s += scales[4 * (g + 1)];", "adds `1` to `g` in the index of `scales`, and so takes another"),
        ("a - b", {"a + b"}, "v = a - b;", "Line 1 subtracts `b` from `a`, and must add it."),
        ("a + b", {"a", "b"}, "v = a + b;", ""),
        (
            "a * w - g + h * k",
            {"a * w - g - h * k"},
            "v = a * w - g + h * k;",
            "adds `h * k` to `a * w - g`, and must sub",
        ),
        ("i - at", {"i"}, "for (int i = at; i - at < n; i += 8) {", "runs where `i < n` is false. Let it run while `i"),
        ("n - 1", {"n", "one more", "n + 1"}, "v = s / (n - 1);", "Line 1 subtracts 1 from `n`, and the expected"),
    ],
)
def test_a_term_is_told_by_what_it_does(what, needs, line, says):
    """Is a loop that ends early, a moved index, a wrong sign told as such?"""
    found = value_effects.explain_term(what, needs, 1, [line])
    assert says in found and bool(says) == bool(found)


def test_another_operator_is_told():
    """Is the operation quoted that is needed, and nothing said where an operand alone or two operations would do?"""
    assert (
        value_effects.explain_other_operator("i / C", {"i % C"}, 3) == "Line 3 computes `i / C` where it needs `i % C`."
    )
    assert not value_effects.explain_other_operator("i / C", {"i"}, 3)
    assert not value_effects.explain_other_operator("i / C", {"i % C", "i * C"}, 3)


def test_an_argument_is_told_with_the_line_that_it_must_fit():
    """Is the line named that adds the maximum again, or the one whose argument is relative to it?"""
    code = ["s += expf(x[c]);", "y[p] = top + logf(s);"]
    assert "Line 2 adds `top` to the logarithm of the sum" in value_effects.explain_argument("expf", "- top", 1, code)
    code = ["s += expf(x[c]);", "y[c] = expf(x[c] - top) / s;"]
    found = value_effects.explain_argument("expf", "- top", 1, code)
    assert (
        found
        == "The argument of `expf` is relative to `top` in line 2, and it is not in line 1. Subtract `top` there too."
    )
    assert not value_effects.explain_argument("expf", "* top", 1, code)


@pytest.mark.parametrize(
    "code, value, line, says",
    [
        (["s += expf(x[c]);"], "infinity", 1, "is infinite for an argument above 88. Subtract the largest"),
        (["e = expf(v);", "y = e / (1.0f + e);"], "infinity", 1, "Write 1 / (1 + `expf(-…)`)"),
        (["y = expf(v) / (1 + expf(v));"], "infinity", 1, "`expf` in line 1 overflows"),
        (["y = logf(s);"], "infinity", 1, "`logf(0)` is -infinity"),
        (["y = a[c / 4] * b;"], "infinity", 1, "its result is larger than the largest float"),
        (["y = v / s;"], "NaN", 1, "Line 1 is the first to turn finite numbers into NaN: it divides 0 by 0."),
        (["y = sqrtf(v);"], "NaN", 1, "`sqrtf` of a negative number is NaN"),
        ([*MAXIMUM, "y = expf(x[0] - best) / s;"], "NaN", 3, "The maximum `best` starts at 0.0f in line 1. Where all"),
    ],
)
def test_where_infinity_or_nan_begins_is_explained(code, value, line, says):
    """Is the operation named that can make it of finite numbers, and a maximum that starts at 0 blamed for 0 / 0?"""
    at, words = value_effects.explain_birth(line, value, code)
    assert says in words and at == (1 if "best" in says else line)


SHUFFLES = "for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);"


@pytest.mark.parametrize(
    "number, needed, line, leaves",
    [
        ("16", "32", SHUFFLES, True),
        ("8", "16", SHUFFLES.replace("16", "8"), False),
        ("16", "32", "for (int d = 16; d > 0; d /= 2) sum += part[d];", False),
        ("16", "n", SHUFFLES, False),
        ("2", "32", SHUFFLES, False),
    ],
)
def test_no_shuffle_begins_with_a_whole_warp(number, needed, line, leaves):
    """Is a distance of 32 lanes, which gives each lane its own value and so doubles all sums, not taken for a cure?"""
    assert value_effects.leaves_the_warp(number, needed, 1, [line]) is leaves


@pytest.mark.parametrize(
    "loop, number, needed, undoes",
    [
        ("for (int c = own; c < n; c += 32) sum += x[c];", "32", "1", True),
        ("for (int c = first + own; c < n; c += 32) sum += x[c];", "32", "1", True),
        ("for (int c = threadIdx.x; c < n; c += 64) sum += x[c];", "64", "1", True),
        ("for (int c = first; c < n; c += 2) sum += x[c];", "2", "1", False),
        ("for (int c = own; c < n; c += 32) sum += x[c];", "32", "64", False),
    ],
)
def test_a_step_of_1_is_no_cure_of_a_shared_loop(loop, number, needed, undoes):
    """Is a step of 1, with which the first thread takes the elements of all, not taken for a cure?"""
    code = ["const int own = threadIdx.x % 32, first = 4;", loop]
    assert value_effects.undoes_sharing(number, needed, 2, code) is undoes


@pytest.mark.parametrize(
    "last, says",
    [
        ("y[b] = part[b];", "`mine` in line 2 is the threads' own part of `part`, and line 4 takes the first part"),
        ("part[b] = 0;", ""),
    ],
)
def test_parts_of_which_one_is_read(last, says):
    """Is it said where parts of a shared array are not added up, and not where no line reads the array?"""
    code = ["__shared__ int part[64];", "int* mine = part + threadIdx.x / 32 * n;", "atomicAdd(&mine[i], 1);", last]
    found = value_effects.explain_term("part + threadIdx.x / 32 * n", {"part", "n"}, 2, code)
    assert found.startswith(says) and bool(found) is bool(says)
