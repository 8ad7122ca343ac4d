"""Rewrites what bash reads and tree-sitter does not: several here-documents, `3<>file`.

A here-document or here-string becomes `< <(printf …)` with the same text, so nothing is lost.
"""

import re

_START = re.compile(r"(?<!<)(\d*)<<(-?)\s*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([A-Za-z_]\w*))(?!<)")
_STRING = re.compile(r"""<<<\s*("(?:[^"\\]|\\.)*"|\$?'[^']*'|[^\s;|&<>()]+)""")
_BOTH_WAYS = re.compile(r"(\d*)<>(?=\s*[\w./~$\"'])")


def rewrite(text: str) -> str:
    """The same command line in forms that are read; the text itself if nothing has to change."""
    text = _STRING.sub(r"< <(printf %s \1)", _without_documents(text))
    return _BOTH_WAYS.sub(r"\1>>", text)


def _without_documents(text: str) -> str:
    lines, made, at = text.split("\n"), [], 0
    while at < len(lines):
        line = lines[at]
        at += 1
        starts = [each for each in _START.finditer(line) if not _is_quoted(line, each.start())]
        bodies = []
        for start in starts:
            body, at = _body(lines, at, start)
            bodies.append(body)
        for start, body in reversed(list(zip(starts, bodies, strict=True))):
            line = f"{line[: start.start()]}< <(printf %s {body}){line[start.end() :]}"
        made.append(line)
    return "\n".join(made)


def _body(lines: "list[str]", at: int, start: "re.Match[str]") -> "tuple[str, int]":
    """The text of a here-document as a quoted word, and the line behind it."""
    end = start[3] or start[4] or start[5]
    strips, taken = bool(start[2]), []
    while at < len(lines):
        line = lines[at].lstrip("\t") if strips else lines[at]
        at += 1
        if line == end:
            break
        taken.append(line)
    text = "\n".join(taken)
    if start[3] or start[4] or "\\" in start[0]:
        quoted = text.replace("'", "'\\''")
        return f"'{quoted}'", at
    return '"' + text.replace('"', '\\"') + '"', at


def _is_quoted(line: str, at: int) -> bool:
    """Whether a place in a line is within quotes that begin in the same line."""
    quote, skips = "", False
    for char in line[:at]:
        if skips:
            skips = False
        elif char == "\\" and quote != "'":
            skips = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
    return bool(quote)
