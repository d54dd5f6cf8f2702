"""Check the wording of prose: `python -m tests.lint.wording`, which `nox -s lint` runs.

`TERMS` has words and phrases that readers had to translate, each with the term of the glossary
(docs/glossary.md) or of plain English to use instead. Checked are comments, docstrings and messages
of Python files, comments of Lua files, the text of Markdown pages and of HTML templates. Code is
not checked, and neither is `inline code`: what Redis or live qless clients call a thing may be
written that way.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHECKED = ("aioqless", "docs", "examples", "tests", "README.md", "noxfile.py")
NOT_CHECKED = ("tests/lint/wording.py",)
MIN_WORDS = 3  # of a string literal that is a message; shorter ones are names

# A regular expression, without regard to case, and what to write instead.
TERMS = {
    r"somebody|nobody|whoever|he who|those who|who (?:asks|waits|looks)": (
        "name the actor: the client, the operator, another worker"
    ),
    r"so many (?:seconds|jobs|at|of)|no more than so many": "at most N, a number of",
    r"begins? anew|run anew|put anew|made anew|anew": "again, restart",
    r"heed(?:s|ed)?|reckon(?:s|ed)?": "follow, compute",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"courtesy": "grace period",
    r"lapse[sd]?": "expire",
    r"what is to be|what there is": "name the subject",
    r"goes on|go on|went on": "continue",
    r"hand(?:s|ed)? out": "pop",
    r"hand(?:s|ed)? back": "release",
    r"(?:a|no|each|every|any) text\b(?! (?:file|editor|label|area|field|index|column))": "a string",
    r"whole numbers?": "integer",
    r"keeps? an eye": "track",
    r"work(?:s|ed)? off": "drain, process",
    r"heart\b": "lock renewer",
    r"(?<!@)seldom": "rarely",
    r"stands? in for": "replaces",
    r"in spite of": "despite",
    r"looks? after": "maintain, supervise",
    r"just now": "now, currently",
    r"Redis (?:is|was) away": "Redis is unavailable",
    r"told\b|tells? (?:of|so)\b": "notify, log, say",
    r"heard of": "last seen, reported",
    r"(?:is|are) to be": "must, should",
    r"lately|as ever|in vain": "recently, as always, without success",
    r"com(?:e|es|ing) into being": "be created",
    r"cancell(?:ed|ing)|colours?|behaviours?|artefacts?|(?:initial|normal|serial)is(?:ed|ing|e)": (
        "American spelling"
    ),
    r"data (?:are|were|have|don't)\b|these data|those data": "data is singular",
}


def python_prose(source: str, *, messages: bool = True) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each comment, docstring and message (long string)."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    tree = ast.parse(source)
    docstrings: set[int] = set()
    pieces: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            docstrings.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            pieces.update(id(piece) for piece in ast.walk(node) if piece is not node)
    for node in ast.walk(tree):
        if id(node) in pieces or not (messages or id(node) in docstrings):
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(piece.value) if isinstance(piece, ast.Constant) else "{}"
                for piece in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if len(text.split()) >= MIN_WORDS:
            for number, line in enumerate(text.splitlines()):
                yield node.lineno + number, re.sub(r"^ *\w+:", "", line)  # names of attributes


def prose_of_tests(source: str) -> Iterator[tuple[int, str]]:
    """Yield comments and docstrings: strings in tests are sample data."""
    return python_prose(source, messages=False)


def lua_prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each comment."""
    for number, line in enumerate(source.splitlines(), 1):
        if "--" in line:
            prose = re.sub(r"@\w+ +\w+|\{.*?\}", "", line.partition("--")[2])  # names of arguments
            yield number, prose


def markdown_prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines outside of code blocks."""
    in_code = False
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield number, line


def html_prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines without tags and template expressions."""
    for number, line in enumerate(source.splitlines(), 1):
        yield number, re.sub(r"<[^>]*>|\{[{%].*?[}%]\}", " ", line)


PROSE = {".py": python_prose, ".lua": lua_prose, ".md": markdown_prose, ".html": html_prose}


def find(path: Path) -> Iterator[str]:
    """Yield a line for each term in a file."""
    name = path.relative_to(ROOT)
    read = prose_of_tests if path.suffix == ".py" and "tests" in name.parts else PROSE[path.suffix]
    for number, text in read(path.read_text()):
        prose = re.sub(r"`[^`]*`|https?://\S+", "", text)
        for term, instead in TERMS.items():
            for found in re.finditer(rf"\b(?:{term})\b", prose, re.IGNORECASE):
                yield f"{name}:{number}: {found[0]!r}: {instead}"


def main() -> int:
    files = [
        each
        for name in CHECKED
        for each in ([ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).rglob("*")))
        if each.suffix in PROSE and not str(each.relative_to(ROOT)).startswith(NOT_CHECKED)
    ]
    problems = [problem for file in files for problem in find(file)]
    for problem in problems:
        print(problem)
    return len(problems) > 0


if __name__ == "__main__":
    sys.exit(main())
