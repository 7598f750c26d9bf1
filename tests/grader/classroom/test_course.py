"""Is course.toml read as it is meant, and does each mistake in it name its line?"""

import datetime
import tomllib

import pytest
from click.testing import CliRunner

from grader.classroom.course import FILE, CourseError, parse_course, read_course
from grader.classroom.new_course import make_course, write_course
from grader.classroom.toml_lines import find_line, find_lines
from grader.cli.main import cli
from grader.problems.exercises import exercises
from grader.verdict import StageName

BASE = 'title = "x"\n[problems.groupnorm]\ndue = 2026-12-01\n'


def test_a_new_course_reads_as_its_comments_say(tmp_path):
    """Has every exercise its points, and do those of a backward exercise ask for gradients?"""
    write_course(tmp_path / "deep" / "er", 'Kernels "A" \\ \n é', "Europe/Zurich", [])
    course = read_course(tmp_path / "deep" / "er")
    assert course.title == 'Kernels "A" \\ \n é' and course.zone.key == "Europe/Zurich"
    assert list(course.problems) == exercises()
    assert sum(course.points_of("groupnorm").by_stage().values()) == 100
    assert course.points_of("groupnorm").gradient == 0 < course.points_of("groupnorm_backward").gradient
    assert sum(course.points_of("groupnorm_backward").by_stage().values()) == 100
    assert list(course.points.by_stage()) == [stage for stage in StageName if stage != "contract"]
    assert [(band.from_, band.share) for band in course.speed_of("groupnorm").reference] == [(0.5, 0.5), (0.9, 1.0)]


@pytest.mark.parametrize(
    "due, zone, utc",
    [
        ("2026-12-01T18:00:00", "Europe/Zurich", "2026-12-01 17:00"),
        ("2026-07-01T18:00:00", "Europe/Zurich", "2026-07-01 16:00"),
        ("2026-12-01T18:00:00-05:00", "Europe/Zurich", "2026-12-01 23:00"),
        ("2026-12-01", "UTC", "2026-12-02 00:00"),
        ("2026-10-25", "Europe/Zurich", "2026-10-25 23:00"),  # a day of 25 hours
    ],
)
def test_deadlines(tmp_path, due, zone, utc):
    course = parse_course(f'title = "x"\ntimezone = "{zone}"\n[problems.groupnorm]\ndue = {due}\n', tmp_path)
    found = course.due("groupnorm")
    assert found is not None and found.tzinfo is datetime.UTC and f"{found:%Y-%m-%d %H:%M}" == utc


@pytest.mark.parametrize(
    "text, says",
    [
        ("title = 3\n[problems.groupnorm]\n", "line 1: `title`: Expected a text, got a whole number."),
        (BASE + 'weight = "a"\n', "line 4: `problems.groupnorm.weight`: Expected a number, got a text."),
        (
            BASE + 'leaderboard = "on"\n',
            '`problems.groupnorm.leaderboard`: Write "off", "pseudonyms" or "names".',
        ),
        (BASE + "weigth = 2\n", "line 4: `problems.groupnorm.weigth`: There is no such key here."),
        (BASE + "[problems.group_norm]\n", "line 4: `problems.group_norm`: The course kit has no problem of this name"),
        (BASE + "[problems.groupnrm]\n", "Is groupnorm meant?"),
        (BASE + "[speed]\neager = [\n{ from = 1, share = 2 },\n]\n", "line 5: `speed.eager.share`: Expected"),
        (
            BASE + "[speed]\neager = [{ from = 1, share = 1 }, { from = 0.5, share = 0 }]\n",
            "line 5: `speed.eager`: The",
        ),
        (BASE + "[late]\npercent_a_day = -3\n", "line 5: `late.percent_a_day`: Expected a number >= 0.0."),
        (BASE + "[late]\npercent_a_day = nan\n", "line 5: `late.percent_a_day`"),
        ('timezone = "Mars"\n' + BASE, 'line 1: `timezone`: "Mars" is no time zone.'),
        ('counts = "first"\n' + BASE, 'line 1: `counts`: Write "best" or "last".'),
        (BASE + 'allow = "some"\n', 'line 4: `problems.groupnorm.allow`: Write "all", or a list of operators'),
        (BASE + 'cases = "all"\n', 'line 4: `problems.groupnorm.cases`: Write "own sizes".'),
        (BASE + '[problems.matmul]\nfile = "no.py"\n', "line 5: `problems.matmul.file`: "),
        (BASE + '[problems.matmul]\ndue = "soon"\n', "line 5: `problems.matmul.due`: Write a time as"),
        (
            BASE + "[problems.matmul]\nweight = 0\n[problems.groupnorm.points]\nbuild = []\n",
            "line 7: `problems.groupnorm",
        ),
        ('title = "x"\n[problems]\n', "line 2: `problems`: There is no problem."),
        ('title = "x"\n[problems.matmul]\nweight = 0\n', "line 2: `problems`: Every problem has the weight 0."),
        ('title = "x"\nproblems = 3\n', "line 2: `problems`: Expected a table, got a whole number."),
        ('title = "x"\n', "The key `problems` is missing."),
        (BASE + "x", "at its end: this is not TOML"),
        ("a b\n" + BASE, "line 1: this is not TOML"),
    ],
)
def test_each_mistake_names_its_line(tmp_path, text, says):
    with pytest.raises(CourseError) as raised:
        parse_course(text, tmp_path)
    assert str(raised.value).startswith(FILE) and says in str(raised.value)


def test_files_that_are_no_course(tmp_path):
    """Is there a sentence for a missing file, for bytes that are no text, for a folder, and for a huge file?"""
    with pytest.raises(CourseError, match="grader class init"):
        read_course(tmp_path)
    (tmp_path / FILE).write_bytes(b'title = "x"\n# \xff\n')
    with pytest.raises(CourseError, match="line 2: this is not UTF-8"):
        read_course(tmp_path)
    (tmp_path / FILE).write_bytes(b"#" * (2 << 20))
    with pytest.raises(CourseError, match="more than 1,048,576 bytes"):
        read_course(tmp_path)
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    with pytest.raises(CourseError, match="cannot be read"):
        read_course(tmp_path)


def test_lines_of_keys_agree_with_tomllib():
    """Is each value found on its line, among strings and lists of several lines, arrays of tables and quoted keys?"""
    text = '''title = "at 1"
text = """
fake = 1
[fake]
""" # "
[a."b.c"] # at 6
inner = "at 7 # ]"
list = [ "at 8",
  "]", # [
  { fake = 2 },
]
last = "at 12"
[[part]]
name = "at 14"
[part.sub]
name = "at 16"
[[part]]
x.y = "at 18"
'raw \\' = "at 19"
'''
    lines = find_lines(text)

    def walk(value, path=()):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from walk(inner, (*path, key))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, inner in enumerate(value):
                yield from walk(inner, (*path, number))
        else:
            yield path, value

    found = dict(walk(tomllib.loads(text)))
    for path, value in found.items():
        if isinstance(value, str) and value.startswith("at "):
            assert lines[path] == int(value.split()[1]), path
    assert set(found) <= set(lines) and not [path for path in lines if "fake" in path]
    assert find_line(text, ("part", 1, "x", "nothing")) == 17 and find_line(text, ("nothing",)) is None


def test_commands(tmp_path):
    """Is a course written once, shown, and refused with exit status 2?"""
    run = CliRunner().invoke
    folder = str(tmp_path / "course")
    made = run(cli, ["class", "init", folder, "--problem", "groupnorm", "--problem", "groupnorm"])
    assert made.exit_code == 0 and "class check" in made.output
    text = (tmp_path / "course" / FILE).read_text()
    assert text == make_course("GPU kernels", "UTC", ["groupnorm"])
    again = run(cli, ["class", "init", folder])
    assert again.exit_code == 2 and "exists" in again.output and (tmp_path / "course" / FILE).read_text() == text
    shown = run(cli, ["class", "check", folder])
    assert shown.exit_code == 0 and "correct 50" in shown.output and "GPU kernels" in shown.output
    (tmp_path / "course" / FILE).write_text(text.replace("fast = 20", "fast = -20"))
    refused = run(cli, ["class", "check", folder])
    assert refused.exit_code == 2 and "line 11" in refused.output
    for arguments in (["--problem", "nosuch"], ["--timezone", "Mars"]):
        assert run(cli, ["class", "init", str(tmp_path / "other"), *arguments]).exit_code == 2
    assert not (tmp_path / "other").exists()
