"""Do the pages of a class show what the gradebook says, to each student no other one, and is hostile text text?"""

import base64
import hashlib
import html.parser
import re
import time
import urllib.parse
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader import pictures
from grader.classroom.collect import Attempt, Collected, Remark, State
from grader.classroom.course import read_course
from grader.classroom.gradebook import add_adjustment, read_gradebook
from grader.classroom.journal import Journal
from grader.classroom.pages.site import OWN, TEMPLATES
from grader.classroom.pages.speeds import FEWEST, Speed, find_quartiles, make_pseudonyms
from grader.classroom.pages.student import WITHHELD
from grader.classroom.pages.text import make_address, make_slug, show_hidden, show_words
from grader.classroom.roster import FILE, read_roster
from grader.cli.main import cli
from grader.diagnosis import hints
from grader.verdict import from_json, to_json
from tests.grader.classroom.made_class import (
    DUE,
    PROBLEMS,
    fail,
    keep,
    measure,
    read_verdicts,
    write_class,
    write_rules,
)
from tests.pace import measure_pace

RTL = "\u202e"
HOSTILE = f'"><script>window.pwned=1</script><img src=x onerror="window.pwned=1">{RTL}\x1b[31m'
PEOPLE = {"a<b": "Ada \u200fAbel</title><script>window.pwned=1</script>", "bob": "Bob Blum", "cyd": "Cyd Chan"}


VOID = {"meta", "img", "br", "link", "input", "rect", "line", "circle"}


class Page(html.parser.HTMLParser):
    """A page as a parser of Python's standard library reads it, which knows nothing of templates."""

    def __init__(self, file: Path):
        super().__init__()
        self.source = file.read_text(encoding="utf-8")
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self.rows: list[list[str]] = []
        self.inside: list[str] = []
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag, attrs):
        """Note an element, and begin a row or a cell of a table."""
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.inside.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        """End an element."""
        assert tag in VOID or self.inside.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        """Note text, of scripts and styles apart."""
        where = self.inside[-1] if self.inside else ""
        {"script": self.scripts, "style": self.styles}.get(where, self.words).append(data)
        if {"td", "th"} & {*self.inside}:
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        """Return all text that is shown."""
        return "".join(self.words)

    def attributes(self, name: str) -> list[str]:
        """Return the values of an attribute, of all elements."""
        return [value or "" for _, attributes in self.tags for key, value in attributes.items() if key == name]


def run(*words: object) -> str:
    result = CliRunner().invoke(cli, ["class", "pages", *map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return f"{result.exit_code} {result.output}"


def read_pages(out: Path) -> dict[str, Page]:
    """Return the pages of students by the beginning of their files' names."""
    files = sorted((out / "students").iterdir())
    assert all(OWN.fullmatch(file.name) for file in files)
    return {file.name.rpartition("-")[0]: Page(file) for file in files}


def write_hostile(folder: Path) -> None:
    """Write a class of three, of which the first one does what can be done: in names, code, messages and output."""
    write_rules(folder, PEOPLE)
    known = read_verdicts()
    text, wrong = known["groupnorm"][1]
    attempts, given = [], {}
    for student in PEOPLE:
        data = f"{text}\n# of {student} {HOSTILE if student == 'a<b' else ''} </pre></details>\n".encode()
        made = from_json(to_json(wrong if student != "cyd" else known["groupnorm"][0][1]))
        if student == "a<b":
            fail(made, f"ValueError: {HOSTILE} `{HOSTILE}`", f"printed {HOSTILE}", 3)
        if student == "cyd":
            measure(made, 1.5)
        attempts.append(Attempt(student, "groupnorm", f"x/{HOSTILE}.py", data, DUE))
        given[attempts[-1].sha256, "groupnorm"] = made
    why = f"{HOSTILE}.ipynb is a notebook."
    remarks = [Remark("a<b", "conv2d", "x", State.unreadable, why), Remark("bob", "conv2d", "y", State.missing, "z")]
    keep(folder, Collected(attempts, remarks), given)


@pytest.fixture
def undrawn(monkeypatch):
    """No picture is drawn, which takes most of the time."""
    monkeypatch.setattr(pictures, "explain_verdict", lambda _verdict: [])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The pages of the class of write_hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    write_hostile(folder / "course")
    assert run("--course", folder / "course", "--to", folder / "out").startswith("0")
    return folder / "out"


def test_hostile_text_stays_text(hostile):
    """Is there no element, attribute or script that a student wrote, and is each hidden character seen?"""
    ours = [(TEMPLATES / name).read_text(encoding="utf-8") for name in ("theme.js", "table.js")]
    for name, page in {**read_pages(hostile), "index": Page(hostile / "index.html")}.items():
        assert {*page.scripts} <= {*ours} and not any(key.startswith("on") for _, a in page.tags for key in a)
        assert all(src.startswith("data:image/svg+xml,%3Csvg") for src in page.attributes("src"))
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f\x00-\x08\x0b-\x1f\x7f]", page.source), name
        assert "Ada \\u200fAbel</title><script>window.pwned=1</script>" in page.text or name not in ("a-b", "index")
    shown = read_pages(hostile)["a-b"].text
    plain = HOSTILE.replace(RTL, "\\u202e").replace("\x1b", "\\x1b")
    assert shown.count(plain) >= 5  # in the code, its note, the output, the remark, the file's name
    assert f"printed {plain}" in shown and f"# of a<b {plain} </pre></details>" in shown


def test_nothing_is_asked_of_a_network(hostile):
    """Does the policy forbid everything but the page's own script and style, whose digests are theirs?"""
    for page in [*read_pages(hostile).values(), Page(hostile / "index.html"), Page(hostile / "leaderboard.html")]:
        policy = next(a["content"] or "" for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
        assert policy.startswith("default-src 'none'; img-src data:;") and "unsafe" not in policy
        assert not {"link", "iframe", "object", "embed", "base", "form"} & {
            t for t, a in page.tags if a.get("id") != "filter"
        }
        for code in [*page.scripts, *page.styles]:
            digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
        assert not page.attributes("style")
        links = [href for href in page.attributes("href") if not href.startswith("#")]
        assert all(re.fullmatch(r"students/[a-z0-9-]+\.html|leaderboard\.html", href) for href in links)


@pytest.mark.usefixtures("undrawn")
def test_no_other_student_is_named(tmp_path):
    """Are other names, ids and files left out of a student's page, also where a reason for points names one?"""
    write_hostile(tmp_path / "course")
    with Journal(tmp_path / "course") as journal:
        course, students = read_course(tmp_path / "course"), read_roster(tmp_path / "course" / FILE)
        book = read_gradebook(journal, course, students, tmp_path / "course")
        add_adjustment(journal, book.grades["bob", "groupnorm"], -7, "The same as Cyd Chan's, line 12")
        add_adjustment(journal, book.grades["bob", "logsumexp"], 3, "see cyd.")
        add_adjustment(journal, book.grades["bob", "conv2d"], 2, "Blum, Bob: a good question")
    run("--course", tmp_path / "course", "--to", tmp_path / "out")
    pages = read_pages(tmp_path / "out")
    assert len(pages) == 3
    for key, others in {"bob": "Cyd|cyd|Chan|Abel|a<b", "cyd": "Bob|bob|Blum|Abel|a<b", "a-b": "Bob|bob|Cyd"}.items():
        assert not re.search(others, pages[key].text), key
        assert not re.search(others, " ".join(value for _, a in pages[key].tags for value in a.values() if value)), key
    assert pages["bob"].text.count(WITHHELD) == 2 and "a good question" in pages["bob"].text


def test_a_page_says_how_the_grade_came_about(hostile):
    """Are attempts, points by stage and the sum those of the gradebook, and hints as many as failed attempts?"""
    page = read_pages(hostile)["bob"]
    wrong = read_verdicts()["groupnorm"][1][1]
    rows = {row[0]: row[1:] for row in page.rows if len(row) == 3}
    right = sum(case.status == "passed" for case in wrong.stage("correct").cases)
    points = 50 * right / len(wrong.stage("correct").cases)
    assert rows["build"] == ["10 of 10", "passed"] and rows["correct"][0] == f"{points:g} of 50"
    assert rows["grade"][0] == f"{10 + points:.1f} %" and rows["grade"][1] == f"{10 + points:g} of 100 points"
    given = [hint.replace("`", "") for hint in hints.of(wrong)]
    assert given[0] in page.text and given[1] not in page.text
    assert "Nothing was handed in." in page.text and page.text.count("1 (counts)") == 1


def test_what_cannot_be_analysed_has_a_page(tmp_path, monkeypatch):
    """Does a submission on which the analysis fails leave the class its pages, and is that said?"""

    def fall(*_arguments):
        raise RecursionError("too deep")

    write_hostile(tmp_path / "course")
    for name in ("suspects.of", "exercises.outside_places"):
        monkeypatch.setattr(f"grader.reports.feedback.{name}", fall)
    assert run("--course", tmp_path / "course", "--to", tmp_path / "out").startswith("0")
    assert "The lines could not be analysed (RecursionError)." in read_pages(tmp_path / "out")["bob"].text


def test_pictures_are_valid_whatever_they_name(hostile):
    """Is a picture XML, also where its text holds what XML cannot?"""
    assert ElementTree.fromstring(urllib.parse.unquote(make_address("<a>\x1b\udc80é</a>").partition(",")[2])).text
    found = [Page(file).attributes("src") for file in (hostile / "students").iterdir()]
    for address in [one for each in found for one in each]:
        assert ElementTree.fromstring(urllib.parse.unquote(address.partition(",")[2])).tag.endswith("svg")
    assert sum(map(len, found)) == 2


def test_findings_are_at_their_lines(hostile):
    """Is the line that a verdict names marked in the whole submission, with what was found?"""
    page = read_pages(hostile)["a-b"]
    lines = re.findall(r'<span class="line( wrong)?"(?: id="groupnorm-(\d+)")?><span class="number">(\d+)', page.source)
    assert ("wrong", "3", "3") in [(mark.strip(), at, number) for mark, at, number in lines]
    assert "#groupnorm-3" in page.attributes("href") and "correct: ValueError" in page.text


@pytest.mark.usefixtures("undrawn")
def test_the_course_page_shows_the_gradebook(tmp_path):
    """Is each grade, state and total that of the gradebook, and are failures counted by stage and reason?"""
    write_class(tmp_path / "course", 12)
    assert run("--course", tmp_path / "course", "--to", tmp_path / "out").startswith("0")
    page = Page(tmp_path / "out" / "index.html")
    with Journal(tmp_path / "course") as journal:
        course, students = read_course(tmp_path / "course"), read_roster(tmp_path / "course" / FILE)
        book = read_gradebook(journal, course, students, tmp_path / "course")
    rows = {row[0]: row[1:] for row in page.rows if len(row) == 2 + len(PROBLEMS)}
    for student in students:
        cells = rows[f"{student.name} {student.id}"]
        shown = [re.match(r"[\d.]+|–", cell)[0] for cell in cells]
        shares = [book.grades[student.id, name].share for name in PROBLEMS]
        expected = ["–" if s is None else f"{100 * s:.1f}" for s in [*shares, book.total(student.id)]]
        missing = [not book.grades[student.id, name].attempts for name in PROBLEMS] + [False]
        assert shown == ["–" if gone else text for gone, text in zip(missing, expected)]
        late = [book.grades[student.id, name].lateness.days for name in PROBLEMS]
        assert [f"{days} d late" in cell for days, cell in zip(late, cells)] == [days > 0 for days in late]
    verdicts = [g.counted.graded.verdict for g in book.grades.values() if g.counted and g.problem == "groupnorm"]
    ends = [v.first_problem.name.value for v in verdicts if v.first_problem and v.outcome == "failed"]
    heat = next(row for row in page.rows if row[0] == "groupnorm" and len(row) == 10)
    assert [0 if cell == "·" else int(cell) for cell in heat[1:7]] == [
        ends.count(stage) for stage in ("contract", "build", "correct", "safe", "gradient", "fast")
    ]
    assert int(heat[7]) == sum(v.outcome == "passed" for v in verdicts)


@pytest.mark.usefixtures("undrawn")
def test_pages_are_written_again(tmp_path):
    """Does a second run keep the names of pages, remove those of who left, and touch no folder that is not its own?"""
    course, out = tmp_path / "course", tmp_path / "out"
    write_hostile(course)
    assert run("--course", course, "--to", out).startswith("0")
    before = {*read_pages(out)}
    (out / "students" / "notes.txt").write_text("mine")
    (course / FILE).write_text("id,name\nbob,Bob Blum\n", encoding="utf-8")
    (course / "course.toml").write_text((course / "course.toml").read_text().replace('"pseudonyms"', '"off"'))
    assert run("--course", course, "--to", out).startswith("0")
    assert {file.name.rpartition("-")[0] for file in (out / "students").glob("*.html")} == {"bob"} < before
    assert (out / "students" / "notes.txt").read_text() == "mine" and not (out / "leaderboard.html").exists()
    assert (out / "index.html").stat().st_mode & 0o077 == 0
    refused = run("--course", course, "--to", course)
    assert refused.startswith("2") and "no pages of a class" in refused and "Traceback" not in refused
    (tmp_path / "file").write_text("")
    assert run("--course", course, "--to", tmp_path / "file").startswith("2")
    assert run("--course", course, "--to", tmp_path / "file" / "below").startswith("3")
    assert run("--course", tmp_path / "none", "--to", out).startswith("2")


@pytest.mark.usefixtures("undrawn")
def test_the_leaderboard_is_the_courses_choice(tmp_path):
    """Are there names only where the course says so, and pseudonyms that the class list does not tell?"""
    pages: dict[str, Page | None] = {}
    write_hostile(tmp_path / "course")
    for shown in ("names", "pseudonyms", "off"):
        write_rules(tmp_path / "course", PEOPLE, shown)
        assert run("--course", tmp_path / "course", "--to", tmp_path / "out").startswith("0")
        file = tmp_path / "out" / "leaderboard.html"
        pages[shown] = Page(file) if file.exists() else None
    assert pages["off"] is None
    assert [row for row in pages["names"].rows if row[0] == "1"] == [["1", "Cyd Chan", "1.50"]]
    assert "Cyd" not in pages["pseudonyms"].text and pages["pseudonyms"].rows[1][2] == "1.50"
    many = [f"s{number}" for number in range(2000)]
    first, second = make_pseudonyms(many, b"one"), make_pseudonyms(many, b"two")
    assert len({*first.values()}) == 2000 and sum(first[key] == second[key] for key in many) < 20


def test_quartiles():
    """Are quartiles those of the values, and none where they would give single speeds away?"""
    found = find_quartiles([Speed("eager", value) for value in (5.0, 1.0, 2.0, 4.0, 3.0)])
    assert (found.low, found.median, found.high, found.most, found.count) == (2.0, 3.0, 4.0, 5.0, 5)
    assert find_quartiles([Speed("eager", 1.0)] * (FEWEST - 1)) is None


@pytest.mark.parametrize(
    "text, shown",
    [
        ("a\tb\n", "a\tb\n"),
        ("<b>&'\"", "&lt;b&gt;&amp;&#39;&#34;"),
        ("é 中 א", "é 中 א"),
        (
            "\r\0\x85",
            *['<span class="hidden">\\x0d</span><span class="hidden">\\x00</span><span class="hidden">\\x85</span>'],
        ),
        ("\udc80\U000e0001", '<span class="hidden">\\udc80</span><span class="hidden">\\U000e0001</span>'),
    ],
)
def test_hidden_characters_are_escapes(text, shown):
    assert str(show_hidden(text)) == shown


def test_words_and_slugs():
    """Is only what is in backquotes code, and is a file's name made of plain letters whatever a student is called?"""
    assert str(show_words("use `<b>` or `c")) == "use <code>&lt;b&gt;</code> or `c"
    assert [make_slug(text) for text in ("Zoë@x.edu", "../../etc", "中", "-" * 99)] == [
        "zoe-x-edu",
        "etc",
        "student",
        "student",
    ]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_three_hundred_pages(tmp_path):
    """Are 300 pages of five problems each, with their pictures, written in 30 s of an ordinary core, and small?"""
    write_class(tmp_path / "course", 300)
    pace, begun = measure_pace(), time.process_time()
    assert run("--course", tmp_path / "course", "--to", tmp_path / "out").startswith("0")
    seconds = time.process_time() - begun
    sizes = [file.stat().st_size for file in (tmp_path / "out" / "students").iterdir()]
    pace = max(pace, measure_pace())
    print(f"{seconds:.1f} s at {pace:.2f} times the pace, {sum(sizes) / 300 / 1000:.0f} kB a page")
    assert len(sizes) == 300 and seconds < 30 * pace and max(sizes) < 300_000
    assert (tmp_path / "out" / "index.html").stat().st_size < 1_000_000
