"""Are answers found in whatever way they are disguised and wherever they are hidden, and nothing else?"""

import random
import re
import shutil

import pytest

from grader.authoring import pieces
from grader.authoring.answers import Answers
from grader.authoring.cuts import cut_exercise
from grader.authoring.leaks import find_leaks
from grader.paths import KERNELS_REF, KERNELS_STUDENT, ROOT
from grader.problems import exercises
from tests.grader.authoring.planted import ANSWER, DISGUISES, HIDDEN, make_cell, rename, write_notebook
from tests.sample import sample


@pytest.fixture(scope="module")
def answers():
    return Answers(exercises.exercises())


def name_found(found):
    return {find.exercise for find in found}


@pytest.mark.parametrize("way", sample(DISGUISES, ["renamed", "a diff", "all at once"]))
def test_a_disguised_answer_is_found(answers, way):
    assert "conv2d" in name_found(answers.find(f"before\n\n{DISGUISES[way](ANSWER)}\n\nafter"))


@pytest.mark.slow
def test_the_answer_of_each_exercise_is_found_in_its_solution(answers):
    """Also with other names than the solution's?"""
    for name in exercises.exercises():
        solution = exercises.read_solution(name)
        words = {*re.findall(r"(?:float|int|int64_t|T|auto) (?!main|T\b)([a-z]\w*) =", solution)}
        renamed = re.sub(r"\b\w+\b", lambda match, w=words: f"{match[0]}_2" if match[0] in w else match[0], solution)
        assert len(words) > 1 and renamed != solution
        assert name in name_found(answers.find(solution)) & name_found(answers.find(renamed)), name


def test_half_of_an_answer_is_found_and_a_line_is_not(answers):
    lines = ANSWER.split("\n")
    assert "conv2d" in name_found(answers.find("\n".join(lines[:11])))
    assert "conv2d" in name_found(answers.find("\n".join(lines[9:])))
    for line in lines:
        assert answers.find(line) == []


def test_the_place_and_the_share_of_a_find(answers):
    """Are the lines those that hold the answer, and is all of it counted?"""
    text = "int a;\n" * 7 + ANSWER
    find = next(one for one in answers.find(text) if one.exercise == "conv2d")
    assert find.lines == (8, text.count("\n") + 1) and find.share > 0.95 and find.tokens == find.total


@pytest.mark.slow
def test_what_is_handed_out_is_no_answer(answers):
    """Is no exercise's answer found in its own file, its model and its hints?"""
    for name in exercises.exercises():
        folder = exercises.source_of(name).parent
        texts = [KERNELS_STUDENT / f"{name}.py", folder / "model.py", *folder.glob("hints*.toml")]
        assert all(name not in name_found(answers.find(path.read_text(encoding="utf-8"))) for path in texts)


def test_other_kernels_are_no_answer(answers):
    """Are the answers of unlike exercises told apart, and shuffled tokens no answer?"""
    for name, others in {
        "ratio_interval": "conv2d matmul logsumexp",
        "logsumexp": "matmul conv2d ratio_interval",
    }.items():
        found = name_found(answers.find(exercises.read_solution(name)))
        assert name in found and not found & {*others.split()}
    words = ANSWER.split()
    random.Random(0).shuffle(words)
    assert answers.find(" ".join(words)) == []


@pytest.mark.parametrize(
    "name", sample(["conv_groupnorm_logsumexp", "conv_sigmoid_groupnorm", "groupnorm_backward"], ["groupnorm_backward"])
)
def test_an_exercise_without_the_answers_of_others(answers, name):
    """Are the kernels of earlier exercises to be written again, and is nothing else changed?"""
    before = (KERNELS_STUDENT / f"{name}.py").read_text(encoding="utf-8")
    text, again = cut_exercise(name, answers)
    assert "groupnorm" in name_found(answers.find(before, but=name)) or name == "groupnorm_backward"
    assert answers.find(text) == [] and "groupnorm" in again
    assert (
        "group_statistics_kernel(" in text
        and "squares" not in text.partition("class ModelNew")[0].split("Kernels:")[-1]
    )
    assert exercises.is_untouched(text, name) and len(exercises.empty_places(text)) > len(
        exercises.empty_places(before)
    )
    kept = [line for line in text.split("\n") if "YOUR CODE" not in line and line.startswith(" ")]
    assert {*kept[20:]} <= {*before.split("\n")} | {""}


@pytest.mark.parametrize("place", sample(HIDDEN, ["a hidden cell", "an output", "a zip in base64", "git's pack"]))
def test_a_hidden_answer_is_found(answers, tmp_path, place):
    write, named = HIDDEN[place]
    write(tmp_path, rename(ANSWER))
    leaks = find_leaks(tmp_path, answers)
    assert [leak.find.exercise for leak in leaks.found if named in leak.place].count("conv2d") == 1, leaks
    assert not leaks.unread


def test_a_copy_of_a_step_or_a_specimen_is_found(answers, tmp_path):
    """Is it found where it holds the answer of no exercise, whatever its name?"""
    kept = ["kernels_ref/groupnorm/steps/01_naive.py", "kernels_ref/conv2d_tensor_core/split.py"]
    kept += ["tests/specimens/scale_maxpool_clamp_scale_after_max.py"]
    for number, name in enumerate(kept):
        shutil.copy(ROOT / name, tmp_path / f"{number}.txt")
    leaks = find_leaks(tmp_path, answers)
    assert [(one.place, one.of) for one in leaks.copies] == [
        (f"{n}.txt", name) for n, name in enumerate(kept)
    ] and leaks


def test_a_tag_lets_a_cell_show_a_part_and_not_all(answers, tmp_path):
    half = "\n".join(ANSWER.split("\n")[:11])
    tag = {"tags": ["teaches-conv2d", "teaches-conv_sigmoid_groupnorm"]}
    write_notebook(tmp_path, make_cell(half, metadata=tag))
    leaks = find_leaks(tmp_path, answers)
    assert not leaks and "conv2d" in {leak.find.exercise for leak in leaks.taught}
    write_notebook(tmp_path, make_cell(ANSWER, metadata=tag))
    assert "conv2d" in {leak.find.exercise for leak in find_leaks(tmp_path, answers).found}


def test_what_cannot_be_looked_into_is_reported(answers, tmp_path, monkeypatch):
    """Are links, damaged and foreign archives, and large files no way out?"""
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to(tmp_path)
    (tmp_path / "a.7z").write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(100))
    (tmp_path / "cut.gz").write_bytes(b"\x1f\x8b\x08\x00" + bytes(10))
    monkeypatch.setattr(pieces, "MOST_BYTES", 1000)
    (tmp_path / "large").write_bytes(b"a" * 1001)
    leaks = find_leaks(tmp_path, answers)
    assert {one.place for one in leaks.unread} == {"link", "folder", "a.7z", "cut.gz", "large"} and leaks


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"[" * 5_000, b'{"cells": [1, null, {"source": {"a": []}}]}', b"\xff\xfe\0"]
)
def test_broken_files_raise_nothing(answers, tmp_path, data):
    (tmp_path / "a.ipynb").write_bytes(data)
    assert not find_leaks(tmp_path, answers)


@pytest.mark.slow
def test_no_text_of_the_project_that_leaves_gives_an_answer_away(answers):
    """Are the problems, and the grader's pages and templates, free of answers?"""
    for path in [*KERNELS_REF.glob("*/model.py"), *ROOT.glob("*.md"), *ROOT.glob("grader/authoring/templates/*")]:
        assert answers.find(path.read_text(encoding="utf-8")) == []
