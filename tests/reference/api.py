"""Renders signatures and docstrings of the public API as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from griffe import (
    Alias,
    Attribute,
    Class,
    DocstringSection,
    DocstringSectionKind,
    Expr,
    Function,
    GriffeLoader,
    Module,
    Object,
    Parameter,
    ParameterKind,
    Parser,
)

from tests.pages import ROOT

WIDTH: Final = 88
TITLES: Final = {
    DocstringSectionKind.parameters: "Arguments",
    DocstringSectionKind.other_parameters: "Arguments",
    DocstringSectionKind.attributes: "Attributes",
    DocstringSectionKind.returns: "Returns",
    DocstringSectionKind.yields: "Yields",
    DocstringSectionKind.raises: "Raises",
}
_STARS: Final = {ParameterKind.var_positional: "*", ParameterKind.var_keyword: "**"}


class Reference:
    """The public API, and the page of each of its names.

    Args:
        names: The documented names of each page; that of a module stands for its classes.
    """

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        loader = GriffeLoader(search_paths=[ROOT], docstring_parser=Parser.google)
        self._package = loader.load("aioqless")
        loader.resolve_aliases(implicit=True)
        self._objects = {page: dict(self._find(names)) for page, names in names.items()}
        self._pages = {
            each.path: page for page, found in self._objects.items() for each in found.values()
        }

    def _find(self, names: Sequence[str]) -> Iterator[tuple[str, Object]]:
        """Yield what names stand for, each with the path by which it is imported."""
        for name in names:
            found = _target(self._package[name.removeprefix("aioqless.")])
            if found.name in found.members:  # a function that is named as its module
                found = _target(found.members[found.name])
            classes = [found]
            if isinstance(found, Module):
                classes = [each for each in _members(found) if isinstance(each, Class)]
            for each in classes:
                path = name if each is found else f"{name}.{each.name}"
                if each.name in (self._package.exports or ()):
                    path = f"aioqless.{each.name}"
                yield path, each

    def render(self, page: str, names: Sequence[str], level: int, first: bool) -> str:
        """Return the sections of names; the first part of a page begins with all of its names."""
        lines: list[str] = []
        if first and len(self._objects[page]) > 1:
            lines += [_item(each.name, each) for each in self._objects[page].values()]
        for path, each in self._find(names):
            lines += ["", *self._section(path, each, page, level)]
        return "\n".join(lines)

    def _section(self, path: str, thing: Object, page: str, level: int) -> Iterator[str]:
        yield f"{'#' * level} {thing.name}\n"
        file = Path(str(thing.filepath)).relative_to(ROOT).as_posix()
        yield f"`{path}`, defined in [{file}](../../{file}).\n"
        if isinstance(thing, Class):
            if not thing.has_labels("enum") and (signature := _signature_of_class(thing)):
                yield signature
            bases = [str(base) for base in thing.bases if str(base) not in ("ABC", "object")]
            if bases:
                yield f"Bases: {', '.join(f'`{base}`' for base in bases)}.\n"
        elif isinstance(thing, Function):
            yield _signature(thing, thing.name)
        elif isinstance(thing, Attribute) and thing.value is not None:
            yield f"```python\n{thing.name} = {thing.value}\n```\n"
        members = [*_members(thing)] if isinstance(thing, Class) else []
        attributes = [each for each in members if isinstance(each, Attribute)]
        methods = [each for each in members if isinstance(each, Function)]
        listed = set[str]()
        for part in _docstring(thing):
            if part.kind is DocstringSectionKind.attributes:
                listed |= {each.name for each in part.value}
                yield "**Attributes**\n"
                yield from _values(part)
                yield from _attributes(attributes, listed)
                yield ""
            else:
                yield from _part(part)
        if not listed and attributes:
            yield "**Attributes**\n"
            yield from _attributes(attributes, listed)
            yield ""
        yield from self._types(thing, page)
        if methods:
            yield "**Methods**\n"
            yield from (_item(f"{thing.name}.{each.name}", each) for each in methods)
            yield ""
        for method in methods:
            yield f"{'#' * (level + 1)} {thing.name}.{method.name}\n"
            yield _signature(method, method.name)
            for part in _docstring(method):
                yield from _part(part)
            yield from self._types(method, page)

    def _types(self, thing: Object, page: str) -> Iterator[str]:
        """Yield links to the types of a signature that have a section of their own."""
        function = thing.members.get("__init__") if isinstance(thing, Class) else thing
        if not isinstance(function, Function):
            return
        annotations = [each.annotation for each in function.parameters] + [function.returns]
        links = {}
        for annotation in annotations:
            for name in annotation.iterate() if isinstance(annotation, Expr) else ():
                path = self._resolve(getattr(name, "canonical_path", ""))
                if path in self._pages and path != thing.path and thing.parent is not None:
                    other = self._pages[path]
                    at = "" if other == page else other
                    short = path.rpartition(".")[2]
                    links[short] = f"[{short}]({at}#{short.lower()})"
        if links:
            yield f"Types: {', '.join(links.values())}.\n"

    def _resolve(self, path: str) -> str:
        if not path.startswith("aioqless."):
            return ""
        try:
            return _target(self._package[path.removeprefix("aioqless.")]).path
        except (KeyError, ValueError):
            return ""


def _target(found: Object | Alias) -> Object:
    return found.final_target if isinstance(found, Alias) else found


def _members(thing: Object) -> Iterator[Object]:
    """Yield the public members of a class or module that have a docstring."""
    for each in thing.members.values():
        if isinstance(each, Object) and not each.name.startswith("_") and each.docstring:
            yield each


def _docstring(thing: Object) -> list[DocstringSection]:
    """Return the parts of a docstring; a class has the arguments of its constructor, too."""
    parts = list(thing.docstring.parsed) if thing.docstring else []
    made = thing.members.get("__init__") if isinstance(thing, Class) else None
    if isinstance(made, Function) and made.docstring:
        parts += made.docstring.parsed
    return parts


def _summary(thing: Object) -> str:
    text = str(thing.docstring.value if thing.docstring else "").partition("\n\n")[0]
    return " ".join(text.split())


def _item(name: str, thing: Object) -> str:
    anchor = re.sub(r"[^\w-]", "", name.lower())
    link = f"- [`{name.rpartition('.')[2]}`](#{anchor})"
    return f"{link}: {summary}" if (summary := _summary(thing)) else link


def _part(part: DocstringSection) -> Iterator[str]:
    if part.kind is DocstringSectionKind.text:
        yield f"{part.value}\n"
    elif part.kind is DocstringSectionKind.examples:
        for _, text in part.value:
            yield f"{text}\n"
    elif part.kind is DocstringSectionKind.admonition:
        text = part.value.description
        yield f"**{part.title}**\n"
        yield f"```python\n{text}\n```\n" if part.title == "Example" else f"{text}\n"
    elif part.kind in TITLES:
        yield f"**{TITLES[part.kind]}**\n"
        yield from _values(part)
        yield ""
    else:
        raise ValueError(f"a docstring has a section of the kind {part.kind.value}")


def _values(part: DocstringSection) -> Iterator[str]:
    for each in part.value:
        named = f"`{each.name}`" if getattr(each, "name", "") else ""
        kind = f"`{each.annotation}`" if each.annotation else ""
        head = f"{named} ({kind})" if named and kind else named or kind
        yield _entry(head, each.description)


def _attributes(attributes: Sequence[Attribute], listed: set[str]) -> Iterator[str]:
    for each in attributes:
        if each.name not in listed:
            head = f"`{each.name}`"
            if each.annotation is not None:
                head += f" (`{each.annotation}`)"
            yield _entry(head, str(each.docstring.value if each.docstring else ""))


def _entry(head: str, text: str) -> str:
    # without paragraphs, after which Python-Markdown ends the list
    body = textwrap.indent(re.sub(r"\n{2,}", "\n", text.strip()), "    ").strip()
    return f"- {head}: {body}" if head else f"- {body}"


def _signature_of_class(thing: Class) -> str:
    made = thing.members.get("__init__")
    if isinstance(made, Function):
        return _signature(made, thing.name, returns=False)
    if thing.has_labels("dataclass") or thing.parameters:
        return _code(thing.name, list(thing.parameters)[1:], "")
    return ""


def _signature(function: Function, name: str, returns: bool = True) -> str:
    parameters = [each for each in function.parameters if each.name not in ("self", "cls")]
    end = f" -> {function.returns}" if returns and function.returns is not None else ""
    word = "async " if function.has_labels("async") else ""
    return _code(f"{word}{name}", parameters, end)


def _code(begin: str, parameters: Sequence[Parameter], end: str) -> str:
    """Return a signature, on a line of its own or with a line for each parameter."""
    words: list[str] = []
    keywords = False
    for each in parameters:
        if each.kind is ParameterKind.keyword_only and not keywords:
            words.append("*")
        keywords |= each.kind in (ParameterKind.keyword_only, ParameterKind.var_positional)
        kind = f": {each.annotation}" if each.annotation is not None else ""
        given = ""
        if each.default is not None and each.kind not in _STARS:
            given = f" = {each.default}" if kind else f"={each.default}"
        words.append(f"{_STARS.get(each.kind, '')}{each.name}{kind}{given}") if each.kind else None
    line = f"{begin}({', '.join(words)}){end}"
    if len(line) > WIDTH:
        line = f"{begin}(\n" + "".join(f"    {word},\n" for word in words) + f"){end}"
    return f"```python\n{line}\n```\n"
