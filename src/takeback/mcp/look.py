"""The tools that look: log, show, diff, lessons. Nothing here writes anything."""

from takeback.errors import DecisionNeededError, UnknownReferenceError
from takeback.history.references import is_now
from takeback.model.text.json_text import path_fields
from takeback.model.text.secrets import WHOLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from takeback.mcp.voice import Voice
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker
    from takeback.project import Project

    Fields = dict[str, Json]
    Look = Callable[[Project, dict[str, Any], Voice, Masker], Fields]

_USUAL = 20
_MOST_LINES = 200
_LARGEST_FILE = 4 << 20
_MOST_FILES = 50
_MOST_HUNK_LINES = 200
"""Lines of one file's difference; the others are counted."""


def _log(project: "Project", said: "dict[str, Any]", voice: "Voice", masker: "Masker") -> "Fields":
    limit = said.pop("limit", _USUAL)
    log = project.log(limit, changes=True, **said)
    return {**voice.log(log, masker), "more": log.more}


def _show(project: "Project", said: "dict[str, Any]", voice: "Voice", masker: "Masker") -> "Fields":
    if "path" in said:
        return _file(project, said["ref"], said["path"], said.get("line", 1), masker)
    if is_now(said["ref"]):
        return voice.status(project.status(), project.now(), masker)
    return voice.recorded(project.recorded(said["ref"]), masker)


def _file(project: "Project", ref: str, path: str, first: int, masker: "Masker") -> "Fields":
    raw = path.encode()
    if masker.how_secret(raw) == WHOLE:
        raise DecisionNeededError(
            f"`{path}` is known for holding secrets, so it is not shown",
            hint="the user can look at it",
        )
    content = bytearray()
    for piece in project.read(ref, raw):
        content += piece
        if len(content) > _LARGEST_FILE:
            raise DecisionNeededError(
                f"`{path}` is larger than {_LARGEST_FILE >> 20} MB, so it is not shown",
                hint="the user can extract it",
            )
    lines = bytes(content).split(b"\n")
    if lines[-1:] == [b""]:
        lines.pop()
    fields: Fields = {"ref": ref, **path_fields(raw), "lines": len(lines)}
    if b"\0" in content:
        return {**fields, "binary": True, "size": len(content)}
    mask = masker.lines(raw, lines)
    shown = range(first - 1, min(first - 1 + _MOST_LINES, len(lines)))
    text = [
        (mask.line(n) if mask is not None else lines[n]).decode("utf-8", "replace") for n in shown
    ]
    fields |= {"first": first, "content": list(text)}
    if shown.stop < len(lines):
        fields["left"] = f"{len(lines) - shown.stop:,} more lines: ask with line={shown.stop + 1}"
    if mask is not None and mask.count:
        fields["masked"] = mask.count
    return fields


def _diff(project: "Project", said: "dict[str, Any]", voice: "Voice", masker: "Masker") -> "Fields":
    before, after = said.get("before"), said.get("after", "@")
    if before is None:
        newest = next(iter(project.checkpoints()), None)
        if newest is None:
            raise UnknownReferenceError(
                "there is no checkpoint yet", hint="the tool checkpoint makes the first one"
            )
        before = newest.id
    with project.compare(before, after, said.get("paths", ())) as comparison:
        total = len(comparison.differences)
        changes = list(_differences(voice.shown(comparison, masker), voice))
    fields: Fields = {"before": before, "after": after, "files": total, "changes": changes}
    if total > len(changes):
        fields["left"] = f"{total - len(changes):,} more files: ask with paths"
    return fields


def _differences(shown: "Iterator[Any]", voice: "Voice") -> "Iterator[Fields]":
    for number, one in enumerate(shown):
        if number >= _MOST_FILES:
            return
        fields = voice.difference(one)
        for hunk in _hunks(fields):
            lines = hunk["lines"]
            if isinstance(lines, list) and len(lines) > _MOST_HUNK_LINES:
                hunk["lines"] = lines[:_MOST_HUNK_LINES]
                hunk["left"] = f"{len(lines) - _MOST_HUNK_LINES:,} more lines"
        yield fields


def _hunks(fields: "Fields") -> "list[Fields]":
    hunks = fields.get("hunks")
    return [hunk for hunk in hunks if isinstance(hunk, dict)] if isinstance(hunks, list) else []


def _lessons(
    project: "Project", said: "dict[str, Any]", voice: "Voice", masker: "Masker"
) -> "Fields":
    found = project.lessons.list(all=bool(said.get("all")))
    return {"lessons": [voice.lesson(each, masker) for each in found], "count": len(found)}


LOOKS: "dict[str, Look]" = {"log": _log, "show": _show, "diff": _diff, "lessons": _lessons}
