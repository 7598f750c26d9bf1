"""Are disguised copies ranked before independent work, and does only what a student wrote count?"""

import json
import re
import shutil
import time

import numpy as np
import pytest
from click.testing import CliRunner

from grader.classroom.collect import Attempt
from grader.classroom.handed_out import read_handed, read_handed_exercise
from grader.classroom.similar_page import Part, make_page
from grader.classroom.similarity import (
    GRAM,
    NEIGHBOUR,
    WINDOW,
    Pair,
    Work,
    find_grams,
    find_pairs,
    find_surroundings,
    make_prints,
    read_class,
)
from grader.cli.main import cli
from grader.judging.grading import grade
from grader.problems.exercises import read_solution
from grader.problems.skeletons import skeleton
from grader.source.statements import read_statements
from grader.verdict import Outcome
from tests.grader.classroom.class_folder import make_class
from tests.grader.classroom.disguises import disguise_file, plant_copies
from tests.grader.classroom.honest_kernels import make_kernels, make_submissions, put_together

needs_clang_format = pytest.mark.skipif(not shutil.which("clang-format"), reason="no clang-format: pip install it")


def rank(texts: list[str], exercise: str, most: int = 30) -> list[Pair]:
    """Return the first pairs of a class in which each text is another student's."""
    works = [Work(f"{n:03}", f"student {n}", "1", text) for n, text in enumerate(texts)]
    return find_pairs(read_class(works, read_handed_exercise(exercise)), most)


def name(pair: Pair) -> tuple[int, int]:
    return int(pair.first.student), int(pair.second.student)


@needs_clang_format
@pytest.mark.parametrize("exercise", ["conv2d", pytest.param("groupnorm", marks=pytest.mark.slow)])
def test_copies_are_ranked_first(exercise):
    texts, planted = plant_copies(exercise, 25, 3, seed=1)
    pairs = rank(texts, exercise)
    assert set(planted) <= {name(pair) for pair in pairs[:5]}
    assert [pair.score for pair in pairs] == sorted((pair.score for pair in pairs), reverse=True)


@pytest.mark.slow
@needs_clang_format
@pytest.mark.parametrize("exercise", ["conv2d", "groupnorm"])
def test_copies_in_a_whole_class(exercise):
    """Are nearly all of 24 copies among 300 submissions in the first 30 pairs, in under a minute of one core?

    benchmarks/validate/similar.py counts exactly, and over several classes.
    """
    texts, planted = plant_copies(exercise, 300, 24, seed=1)
    begun = time.process_time()
    first = {name(pair) for pair in rank(texts, exercise)}
    assert len(first & set(planted)) >= 21
    assert time.process_time() - begun < 60


@pytest.mark.slow
@needs_clang_format
@pytest.mark.parametrize("exercise, student", [("conv2d", 20), ("groupnorm", 7)])
def test_disguised_kernels_mean_the_same(exercise, student, tmp_path):
    """Is what is planted a copy that passes, and not only a text that resembles another?"""
    kernel = make_kernels(exercise, 30, 3)[student]
    for number, text in enumerate([put_together(exercise, kernel), disguise_file(exercise, kernel, "a disguise")]):
        file = tmp_path / f"{exercise}_{number}.py"
        file.write_text(text, encoding="utf-8")
        assert grade(file, device="cpu", seed=1).outcome is Outcome.passed


@pytest.mark.slow
@needs_clang_format
def test_a_ring_of_five():
    """Do five students with one kernel not hide each other?"""
    texts = make_submissions("conv2d", 40)
    kernel = make_kernels("conv2d", 40)[20]
    texts += [disguise_file("conv2d", kernel, f"ring {n}") for n in range(4)]
    members = {20, 40, 41, 42, 43}
    assert all(set(name(pair)) <= members for pair in rank(texts, "conv2d", 10))


def test_what_was_handed_out_does_not_count():
    exercise = skeleton(read_solution("conv2d"), "conv2d")
    solution = read_solution("conv2d")
    others = make_submissions("conv2d", 5)[1:]
    pairs = rank(
        [exercise, exercise.replace("    ", "  "), solution, solution.replace("THREADS", "N"), *others], "conv2d"
    )
    assert not [pair for pair in pairs if max(name(pair)) < 4]


def test_only_marked_lines_are_the_students():
    text = make_submissions("groupnorm", 1)[0]
    given = read_statements(read_handed_exercise("groupnorm").exercise).statements
    own = make_prints(text, given).own
    lines = text.split("\n")
    bodies = "\n".join(line for number, line in enumerate(lines, 1) if number in own)
    assert "TORCH_CHECK" not in bodies and "load_inline" not in bodies and "warp_sum" not in bodies
    assert re.search(r"block_sum\(\w+\) / elements", bodies) and re.search(r"y\[\w+\] = ", bodies)


def test_marks_name_the_same_code_in_both_files():
    texts = make_submissions("groupnorm", 12)
    copy = texts[9].replace("    ", "\t").replace("\nimport torch\n", "\n\n\nimport torch\n")
    first = rank([*texts, copy], "groupnorm", 1)[0]
    assert name(first) == (9, 12) and first.alike == 1 and first.passages == 1
    ours, theirs = first.first.text.split("\n"), first.second.text.split("\n")
    for line, mark in first.marks[0].items():
        assert mark.other == line + 2 and ours[line - 1].split() == theirs[mark.other - 1].split()


def test_a_copy_of_an_earlier_attempt_is_found():
    texts = make_submissions("conv2d", 12)
    works = [Work(f"{n:03}", "", "last", text) for n, text in enumerate(texts)]
    works += [Work("011", "", "first", texts[8].replace("total", "all_of_them"))]
    pair = find_pairs(read_class(works, read_handed_exercise("conv2d")), 1)[0]
    assert name(pair) == (8, 11) and (pair.first.label, pair.second.label) == ("last", "first")


def test_attempts_of_one_student_are_no_pair():
    texts = make_submissions("conv2d", 2)
    works = [Work("ada", "", str(n), texts[1] + "\n" * n) for n in range(3)]
    assert find_pairs(read_class(works, read_handed_exercise("conv2d")), 9) == []


def test_winnowing_keeps_its_promise():
    """Does every common run of GRAM + WINDOW - 1 tokens leave a common fingerprint, whatever surrounds it?"""
    run = " ".join(f"v{n} += {n};" for n in range(4))  # 5 tokens of each form: 16 and a few
    for before, behind in (("a = 1;", "b = c / d;"), ("f(g);", ""), ("", "h = x[i] % 3;")):
        one = find_grams(read_statements(f"void f() {{ {before} {run} {behind} }}").statements)
        other = find_grams(read_statements(f"void f() {{ z = q - r; {run} k(); }}").statements)
        assert one.keys() & other.keys()
    dice = np.random.default_rng(0)
    words = " ".join(f"a = b + {number};" for number in dice.integers(0, 1000, 200))
    statements = read_statements(words).statements
    kept, tokens = find_grams(statements), 200 * len("= ( v + ( number v ) ) ;".split())
    density = len(kept) / (tokens - GRAM + 1)
    assert 0.8 < density * (WINDOW + 1) / 2 < 1.2  # theorem 1 of the paper: 2 / (w + 1)


def test_surroundings_are_the_sixth_neighbours():
    dice = np.random.default_rng(1)
    alike = dice.random((12, 12))
    alike = (alike + alike.T) / 2
    found = find_surroundings(alike)
    for a in range(12):
        for b in range(12):
            sixth = [sorted((alike[i, j] for j in range(12) if j != i), reverse=True)[NEIGHBOUR - 1] for i in (a, b)]
            assert found[a, b] == max(sixth)
    assert not find_surroundings(alike[:6, :6]).any()


HOSTILE = "</td><script>alert(1)</script> \u202e &amp; {{ 7 * 7 }} \x1b[31m"


def test_hostile_text_stays_text():
    texts = [text.replace("// ", f"// {HOSTILE} ") for text in make_submissions("conv2d", 8)]
    works = [Work(f"s{n}", f"{HOSTILE}{n}", HOSTILE, text) for n, text in enumerate([*texts, texts[3]])]
    pairs = find_pairs(read_class(works, read_handed_exercise("conv2d")), 5)
    page = make_page(HOSTILE, [Part("conv2d", 9, 9, pairs), Part(HOSTILE, 0, 0, [])], HOSTILE)
    assert "<script" not in page and "&lt;script&gt;" in page and "{{ 7 * 7 }}" in page and "49 " not in page[:200]
    assert "\u202e" not in page and "\x1b" not in page
    assert not re.search(r"src=|url\(|href=(?!\"#)", page)
    assert "a ranking, not a verdict" in page and page.count("<details") == len(pairs) == 5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0" * 9,
        "class ModelNew(",
        "def f(:\n  x = 1;",
        "x = 1\n" * 500,
        "é\ud800".encode(errors="replace").decode(),
    ],
)
def test_broken_files_are_compared(text):
    pairs = rank([text, text, *make_submissions("conv2d", 3)], "conv2d")
    assert all(0 <= pair.alike <= 1 for pair in pairs)


def test_the_command(tmp_path):
    texts = make_submissions("groupnorm", 3)
    attempts = [
        Attempt(student, "groupnorm", f"{student}/groupnorm.py", text.encode(), None)
        for student, text in zip(("ada", "bob", "cyd"), (texts[1], texts[2], texts[1].replace("// ", "// oh ")))
    ]
    with make_class(tmp_path, attempts):
        pass
    page, data = tmp_path / "pairs.html", tmp_path / "pairs.json"
    course = ["--course", str(tmp_path)]
    done = CliRunner().invoke(cli, ["class", "similar", "groupnorm", *course, "--html", str(page), "--json", str(data)])
    assert done.exit_code == 0 and "not a verdict" in done.output
    found = json.loads(data.read_text())["groupnorm"]
    assert found["pairs"][0]["students"] == ["ada", "cyd"] and found["pairs"][0]["alike"] == 1
    assert "Ada Abel" in page.read_text() and page.stat().st_mode & 0o077 == 0
    everything = CliRunner().invoke(cli, ["class", "similar", *course, "--most", "1"])
    assert "logsumexp: 0 submissions of 0 students, no pair" in everything.output
    assert CliRunner().invoke(cli, ["class", "similar", "matmul", *course]).exit_code == 2
    assert CliRunner().invoke(cli, ["class", "similar", *course, "--json", str(tmp_path / "no/x")]).exit_code == 3


def test_a_problem_of_the_courses_own(tmp_path):
    (tmp_path / "mine.py").write_text("class Model: pass\n")
    rules = 'title = "x"\n[problems.mine]\nfile = "mine.py"\n'
    with make_class(tmp_path, [], rules) as (_, course, _students):
        handed = read_handed("mine", course, tmp_path)
        assert handed.exercise == "class Model: pass\n" and handed.solutions == ()
        (tmp_path / "mine.py").unlink()
        with pytest.raises(OSError):
            read_handed("mine", course, tmp_path)
