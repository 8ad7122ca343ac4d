"""A conflict in words: the hunks where its three sides clash, or what each side is."""

from takeback.cli.screen import safe_content, size
from takeback.model import words as reasons
from takeback.model.text import lines, secrets
from takeback.model.text.masking import CLOSED
from takeback.model.tree import FOLDER, LINK, REGULAR
from takeback.model.words import REDO, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from takeback.model.plan import Conflict, Hunk
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker
    from takeback.model.tree import Entry

    Styled = tuple[str, str]
    """A style, which may be none, and a line in it."""
    Target = Callable[[Entry], str]

KINDS = {FOLDER: "folder", REGULAR: "file", LINK: "link"}
_LABELS = ("the turn left", "now it is", "undo wants")
_LABELS_OF_REDO = ("the undo left", "now it is", "redo wants")
_STYLES = ("dim", "yellow", "green")
_NOTHING = "(nothing)"
_HIDDEN = b"(not shown)\n"


def hunks(conflict: "Conflict", masker: "Masker" = CLOSED) -> "list[Hunk]":
    """The hunks of a conflict as they may be shown."""
    text = lines.split(conflict.marked or b"")
    mask = masker.lines(conflict.raw_path, text)
    if mask is None:
        return list(conflict.hunks)
    found = []
    for hunk in conflict.hunks:
        at, shown = hunk.marker + 1, []
        for side in (hunk.ours, hunk.base, hunk.theirs):
            # Around a hunk that is not in the text nobody knows what is secret.
            known = hunk.marker >= 0
            shown.append(tuple(mask.line(at + n) if known else _HIDDEN for n in range(len(side))))
            at += len(side) + 1
        ours, base, theirs = shown
        found.append(hunk.replace(ours=ours, base=base, theirs=theirs))
    return found


def sides(
    conflict: "Conflict",
    verb: str,
    target: "Target",
    masker: "Masker" = CLOSED,
    *,
    most_places: int = 0,
    most_lines: int = 0,
) -> "Iterator[Styled]":
    """The three sides of a conflict, a line each or more; 0 means all of them."""
    labels = _LABELS_OF_REDO if verb == REDO else _LABELS
    if conflict.marked is None:
        yield from _in_words(conflict, labels, target)
        return
    if masker.how_secret(conflict.raw_path) == secrets.WHOLE:
        yield "dim", "a secret file; nothing of it is shown"
        return
    found = hunks(conflict, masker)
    shown = found[:most_places] if most_places else found
    for hunk in shown:
        yield "", f"line {hunk.line:,}"
        for label, style, side in zip(
            labels, _STYLES, (hunk.base, hunk.ours, hunk.theirs), strict=True
        ):
            for text in _side(label, side, most_lines):
                yield style, text
    if len(found) > len(shown):
        yield "", f"and {count(len(found) - len(shown), 'more hunk', 'more hunks')}"


def _side(label: str, side: "Sequence[bytes]", most: int) -> "Iterator[str]":
    shown = side[:most] if most and len(side) > most + 1 else side
    words = [safe_content(line.rstrip(b"\r\n")).expandtabs() for line in shown] or [_NOTHING]
    if len(side) > len(shown):
        words.append(f"(and {len(side) - len(shown):,} more lines)")
    width = len(_LABELS[0])
    for number, text in enumerate(words):
        yield f"{label if not number else '':<{width}} | {text}".rstrip()


def _in_words(
    conflict: "Conflict", labels: "tuple[str, str, str]", target: "Target"
) -> "Iterator[Styled]":
    sides = (conflict.base, conflict.ours, conflict.theirs)
    if not any(sides):
        return  # what is in the way is said by the reason
    modes = {each.mode & 0o7777 for each in sides if each is not None and each.kind != LINK}
    width = len(_LABELS[0])
    for label, style, side in zip(labels, _STYLES, sides, strict=True):
        yield style, f"{label:<{width}} | {_described(side, target, with_mode=len(modes) > 1)}"


def _described(entry: "Entry | None", target: "Target", *, with_mode: bool) -> str:
    if entry is None:
        return _NOTHING
    if entry.reason:
        return f"not covered ({reasons.word(entry.reason)})"
    said = KINDS.get(entry.kind, "something else")
    if entry.kind == LINK:
        return f"{said} to {target(entry)}"
    if entry.kind == REGULAR:
        said += f", {size(entry.size)}"
    return f"{said}, mode {entry.mode & 0o7777:04o}" if with_mode else said


# -- JSON --------------------------------------------------------------------------------------


def as_json(conflict: "Conflict", masker: "Masker" = CLOSED) -> "dict[str, Json]":
    return {
        "base": _entry(conflict.base),
        "ours": _entry(conflict.ours),
        "theirs": _entry(conflict.theirs),
        "marked": _marked(conflict, masker),
        "hunks": [_hunk(hunk) for hunk in _shown_hunks(conflict, masker)],
    }


def _shown_hunks(conflict: "Conflict", masker: "Masker") -> "list[Hunk]":
    if masker.how_secret(conflict.raw_path) != secrets.WHOLE:
        return hunks(conflict, masker)
    return [hunk.replace(base=(), ours=(), theirs=()) for hunk in conflict.hunks]


def _hunk(hunk: "Hunk") -> "dict[str, Json]":
    sides = {"base": hunk.base, "ours": hunk.ours, "theirs": hunk.theirs}
    texts = {name: b"".join(side).decode("utf-8", "replace") for name, side in sides.items()}
    return {"index": hunk.index, "line": hunk.line, **texts}


def _entry(entry: "Entry | None") -> "dict[str, Json] | None":
    if entry is None:
        return None
    kind = KINDS.get(entry.kind, "other")
    return {"kind": kind, "size": entry.size, "mode": f"{entry.mode & 0o7777:04o}"}


def _marked(conflict: "Conflict", masker: "Masker") -> "str | None":
    """The text with markers as it may be shown."""
    if conflict.marked is None or masker.how_secret(conflict.raw_path) == secrets.WHOLE:
        return None
    text = lines.split(conflict.marked)
    mask = masker.lines(conflict.raw_path, text)
    if mask is not None:
        text = [line if _is_marker(line) else mask.line(n) for n, line in enumerate(text)]
    return b"".join(text).decode("utf-8", "replace")


def _is_marker(line: bytes) -> bool:
    marks = (b"<<<<<<< ", b"||||||| ", b">>>>>>> ")
    return line.startswith(marks) or line.rstrip(b"\r\n") == b"======="
