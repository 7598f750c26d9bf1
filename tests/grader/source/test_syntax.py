"""Is a source parsed although Python, confused by another thread, refuses it now and then?"""

import ast

import pytest

from grader.source import syntax


def refusing(times):
    """ast.parse, but for so many calls at first."""
    calls, right = [], ast.parse

    def parse(*arguments):
        calls.append(arguments)
        if len(calls) <= times:
            raise SystemError("AST constructor recursion depth mismatch (before=156, after=22)")
        return right(*arguments)

    return parse


@pytest.mark.parametrize("times", [0, 1, 2])
def test_it_is_tried_again(monkeypatch, times):
    monkeypatch.setattr(syntax.ast, "parse", refusing(times))
    assert ast.dump(syntax.parse("x = 1\n", "name")) == ast.dump(compile("x = 1\n", "name", "exec", ast.PyCF_ONLY_AST))


def test_not_for_ever(monkeypatch):
    monkeypatch.setattr(syntax.ast, "parse", refusing(9))
    with pytest.raises(SystemError):
        syntax.parse("x = 1\n")


def test_the_syntax_error_is_reported():
    with pytest.raises(SyntaxError) as raised:
        syntax.parse("x = (", "name.py")
    assert raised.value.filename == "name.py"
