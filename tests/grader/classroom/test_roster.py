"""Is a class list read as platforms and spreadsheets write it, and is a student found under each platform's name?"""

import pytest

from grader.classroom.roster import Names, RosterError, Student, parse_roster, read_roster

CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,groupnorm (123)
    Points Possible,,,,,100
"Lovelace, Ada",4711,s-001,ada,Main,
"van der Berg, Noël",4712,s-002,noel,Main,
"Student, Test",9999,,,Main,
"""
MOODLE = "Identifier;Full name;Email address;Status\nParticipant 815;Ada Lovelace;ada@example.org;ok\n"
GRADESCOPE = "First Name,Last Name,SID,Email\nAda,Lovelace,s-001,ada@example.org\n"


def test_canvas():
    """Are the gradebook's extra rows left out, and is a student found by each of its names and numbers?"""
    ada, noel = parse_roster(CANVAS)
    assert (ada.id, ada.name) == ("s-001", "Lovelace, Ada")
    names = Names(parse_roster(CANVAS))
    for text in ("4711", "s-001", "ADA", "lovelaceada", "Ada Lovelace", "Lovelace, Ada", "ada lovelace"):
        assert names.find(text) == ada, text
    for text in ("vanderbergnoël", "Noël van der Berg", "Noe\u0308l van der Berg", "4712"):
        assert names.find(text) == noel, text
    assert names.find("nobody", "4712") == noel and names.find("nobody") is None and names.find("") is None


def test_moodle():
    (ada,) = parse_roster(MOODLE)
    assert Names([ada]).find("815") is ada and Names([ada]).find("Participant_815") is ada
    assert ada.email == "ada@example.org" and Names([ada]).find("Ada Lovelace") is ada


def test_gradescope():
    (ada,) = parse_roster(GRADESCOPE)
    assert ada == Student("s-001", "Ada Lovelace", "ada@example.org", frozenset({"ada@example.org"}))


def test_two_of_one_name_are_found_by_their_numbers_only():
    text = "id,name\n1,Li Wei\n2,Li Wei\n"
    names = Names(parse_roster(text))
    assert names.find("Li Wei") is None
    found = names.find("Li Wei", "2")
    assert found is not None and found.id == "2"


@pytest.mark.parametrize(
    "data",
    [
        "id,name\n1,Zoë\n".encode(),
        "id,name\r\n1,Zoë\r\n".encode("utf-8-sig"),
        "id;name\n1;Zoë\n".encode("cp1252"),
        "id\tname\n1\tZoë\n".encode("utf-16"),
        'id,name\n\n1,"Zoë"\n,\n'.encode(),
    ],
)
def test_encodings_and_delimiters(tmp_path, data):
    (tmp_path / "roster.csv").write_bytes(data)
    assert read_roster(tmp_path / "roster.csv") == [Student("1", "Zoë")]


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "is empty"),
        ("a,b\n1,2\n", "line 1: no column names a student"),
        ("id,name\n", "has no students"),
        ("id,name\n1,Ada\n1,Bob\n", "two students have the id 1"),
        ("id,name\n,Ada\n", "line 2: Ada has no id"),
        ('id,name\n1,"' + "x" * 200_000 + "\n", "line 2: this is no CSV"),
    ],
)
def test_lists_that_cannot_be_used(text, says):
    with pytest.raises(RosterError, match=says):
        parse_roster(text)


def test_a_list_that_is_not_there(tmp_path):
    with pytest.raises(RosterError, match="is not there: put the class list in it"):
        read_roster(tmp_path / "roster.csv")
    with pytest.raises(RosterError, match="cannot be read"):
        read_roster(tmp_path)
