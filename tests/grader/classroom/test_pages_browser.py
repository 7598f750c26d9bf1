"""Can a class's pages be used, in a real browser: sorted, filtered, read, by keyboard alone, in both themes?

Needs Chromium (`apt-get install chromium`); skipped, with the reason, where there is none. Screenshots go into the
folder that PAGES_SCREENSHOTS names, or into pytest's temporary one.
"""

import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grader.classroom.course import read_course
from grader.classroom.gradebook import read_gradebook
from grader.classroom.journal import Journal
from grader.classroom.roster import FILE, read_roster
from grader.cli.main import cli
from tests.grader.classroom.made_class import PROBLEMS, write_class
from tests.grader.classroom.test_pages import HOSTILE, write_hostile

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
STUDENTS = 30
SCHEMES = ("light", "dark")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
]


def write(folder: Path) -> Path:
    out = folder / "out"
    made = CliRunner().invoke(cli, ["class", "pages", "--course", str(folder), "--to", str(out)])
    assert made.exit_code == 0, made.output
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A course with its pages."""
    folder = tmp_path_factory.mktemp("course")
    write_class(folder, STUDENTS)
    write(folder)
    return folder


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


@pytest.fixture
def page(browser):
    """The browser's, empty. complaints: what it writes to its console, and requests for anything but pages."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    made: Any = context.new_page()
    made.set_default_timeout(20_000)
    made.complaints = []
    made.on("console", lambda message: made.complaints.append(message.text))
    made.on("pageerror", lambda error: made.complaints.append(str(error)))
    made.on("request", lambda one: one.url.startswith(("file:", "data:")) or made.complaints.append(one.url))
    yield made
    assert not made.complaints
    context.close()


def read_book(folder: Path):
    with Journal(folder) as journal:
        students = read_roster(folder / FILE)
        return read_gradebook(journal, read_course(folder), students, folder)


def shown_ids(page) -> list[str]:
    """Return the ids of the students in the table, from the top."""
    return page.locator("#grades tbody tr:visible .id").all_inner_texts()


def pages_of(out: Path) -> list[Path]:
    return [out / "index.html", out / "leaderboard.html", *sorted((out / "students").iterdir())[:4]]


def test_sort_and_filter(page, folder):
    """Are rows in the order of the grades, unknown ones last, and those left that the filter means?"""
    book = read_book(folder)
    page.goto((folder / "out" / "index.html").as_uri())
    for problem in PROBLEMS[:2]:
        for descending in (True, False):
            page.locator("#grades thead").get_by_role("button", name=problem, exact=True).click()
            shares = [book.grades[student, problem].share for student in shown_ids(page)]
            known = [share for share in shares if share is not None]
            assert known == sorted(known, reverse=descending) and shares[: len(known)] == known
            assert len(shares) == STUDENTS
    assert page.locator("th[aria-sort=ascending]").inner_text().strip() == PROBLEMS[1]
    page.locator("#problem").select_option("groupnorm")
    page.locator("#state").select_option("passed")
    passed = [
        student.id
        for student in book.students
        if (one := book.grades[student.id, "groupnorm"].counted) and one.graded.verdict.outcome == "passed"
    ]
    assert 0 < len(passed) < STUDENTS and {*shown_ids(page)} == {*passed}
    assert page.get_by_role("status").inner_text() == f"{len(passed)} of {STUDENTS} students"
    page.get_by_role("button", name="Clear").click()
    first = book.students[0]
    page.locator("#find").fill(first.name.split()[0].lower() + " " + first.id)
    assert shown_ids(page) == [first.id]


def test_what_to_teach_shows_its_students(page, folder):
    """Does the button next to a reason leave just the students who fail for it?"""
    book = read_book(folder)
    page.goto((folder / "out" / "index.html").as_uri())
    button = page.locator("button.show").first
    problem, reason = button.get_attribute("data-problem"), button.get_attribute("data-reason")
    button.click()
    expected = {
        student.id
        for student in book.students
        if (one := book.grades[student.id, problem].counted) and one.graded.verdict.reason == reason
    }
    assert expected and {*shown_ids(page)} == expected


def test_keyboard_alone(page, folder):
    """Can one sort, filter, open a student's page and a folded part of it without a mouse?"""
    page.goto((folder / "out" / "index.html").as_uri())
    keys = page.keyboard

    def tab_to(test: str, most: int = 80) -> None:
        for _ in range(most):
            keys.press("Tab")
            if page.evaluate(f"document.activeElement.matches({test!r})"):
                return
        raise AssertionError(f"no way to {test}")

    keys.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    keys.press("Enter")
    tab_to("#find")
    keys.type("s0003")
    assert shown_ids(page) == ["s0003"]
    tab_to("th:last-child button")
    keys.press("Space")
    assert page.locator("th[aria-sort=descending]").inner_text().strip() == "total"
    tab_to("#grades tbody a")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    name = page.evaluate("document.activeElement.textContent")
    keys.press("Enter")
    page.wait_for_url("**/students/s0003-*.html")
    assert page.locator("h1").inner_text() == name
    tab_to("details:not([open]) summary")
    keys.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open")


def test_pictures_are_seen(page, folder):
    """Has each picture of a failure been drawn, with a text for those who do not see it?"""
    count = 0
    for file in sorted((folder / "out" / "students").iterdir())[:10]:
        page.goto(file.as_uri())
        for picture in page.locator("img.picture").all():
            count += 1
            assert picture.evaluate("one => one.complete && one.naturalWidth > 300 && one.naturalHeight > 50")
            assert len(picture.get_attribute("alt")) > 20
    assert count > 3


def test_themes(page, folder):
    """Does a page follow the system, and then the switch, also on the next page?"""
    from playwright.sync_api import expect

    def is_dark() -> bool:
        red, *_ = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        return red < 100

    page.goto((folder / "out" / "index.html").as_uri())
    switch = page.get_by_role("button", name="Dark theme")
    assert not is_dark() and switch.get_attribute("aria-pressed") == "false"
    page.emulate_media(color_scheme="dark")
    # The page hears of the change a moment after its colours have changed.
    expect(switch).to_have_attribute("aria-pressed", "true")
    assert is_dark()
    switch.click()
    assert not is_dark()
    # A browser may keep what a page stores a moment later, so that the first page after it does not see it yet.
    for _ in range(20):
        page.reload()
        if not is_dark():
            break
        page.wait_for_timeout(500)
    assert not is_dark()
    expect(switch).to_have_attribute("aria-pressed", "false")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.timeout(300)
def test_axe_finds_nothing(browser, folder, scheme):
    """Does axe find no violation on any kind of page, in either theme?"""
    from axe_playwright_python.sync_playwright import Axe

    # Axe's own script must get past the page's policy, which lets none but the page's run.
    context = browser.new_context(color_scheme=scheme, bypass_csp=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    for file in pages_of(folder / "out"):
        page.goto(file.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        assert len(found.response["passes"]) > 15
    context.close()


def test_hostile_pages_run_nothing(page, tmp_path):
    """Does no script of a submission run, and does the code keep its order from left to right?"""
    write_hostile(tmp_path)
    out = write(tmp_path)
    for file in [*pages_of(out), *(out / "students").iterdir()]:
        page.goto(file.as_uri())
        assert page.evaluate("window.pwned") is None and page.locator("img[src=x]").count() == 0
        assert page.evaluate("document.querySelectorAll('script').length") == 1 + (file.name == "index.html")
    page.goto(next((out / "students").glob("a-b-*")).as_uri())
    shown = page.locator("pre.tall").inner_text()
    assert HOSTILE.replace("\u202e", "\\u202e").replace("\x1b", "\\x1b") in shown
    assert page.locator("h1").inner_text().startswith("Ada \\u200fAbel</title><script>")


def test_the_policy_stops_what_escaping_would_let_through(page, tmp_path, folder):
    """If text became an element in spite of all, would its script, handler, style and picture do nothing?"""
    source = (folder / "out" / "index.html").read_text(encoding="utf-8")
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(1)
    outside = f"http://127.0.0.1:{server.getsockname()[1]}"
    planted = (
        "<script>window.pwned=1</script><img src=x onerror='window.pwned=2'><style>body{display:none}</style>"
        f"<img src='{outside}/x.png'><link rel=stylesheet href='{outside}/x.css'>"
    )
    (tmp_path / "planted.html").write_text(source.replace("<h1>", planted + "<h1>", 1), encoding="utf-8")
    page.goto((tmp_path / "planted.html").as_uri())
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("getComputedStyle(document.body).display") == "block"
    assert sum("Content Security Policy" in text for text in page.complaints) == 6
    with server, pytest.raises(TimeoutError):
        server.accept()
    page.complaints.clear()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_screenshots(browser, folder, tmp_path, scheme):
    """Is no page wider than a telephone or a laptop? The screenshots are for people to look at."""
    pictures = Path(os.environ.get("PAGES_SCREENSHOTS") or tmp_path)
    pictures.mkdir(parents=True, exist_ok=True)
    for width in (390, 1280):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        for number, file in enumerate(pages_of(folder / "out")):
            page.goto(file.as_uri())
            page.screenshot(path=pictures / f"{number}-{file.name[:5]}-{width}-{scheme}.png", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (file, width)
        page.close()
