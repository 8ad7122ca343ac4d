"""`takeback diff`: what differs between two states, or between one and now."""

import os

from takeback.cli.app import folder, get_project, inside
from takeback.cli.parser import SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, columns, cut_left, pad, safe_content
from takeback.errors import UnknownReferenceError
from takeback.history.unified import HEAD, HUNK, MASKED, NEW, NOTE, OLD, Shown, quoted
from takeback.model import words as reasons
from takeback.model.text import json_text
from takeback.model.text.json_text import path_fields
from takeback.model.text.safe_text import safe
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.history.compare import Comparison
    from takeback.history.unified import Line
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker
    from takeback.model.tree import Entry
    from takeback.project import Project

COMMAND = Command(
    "diff",
    "what differs between two states, or between one and now",
    text=(
        "A and B are checkpoints; `@` is now, the files on disk. Without B, A is compared with\n"
        "now. Without both, the newest checkpoint is compared with now. A PATH is a file, or a\n"
        "folder with everything below it. Nothing is written. Values in `.env` and similar files,\n"
        "keys and tokens are masked; `git apply` and `patch` need --show-secrets for such a file."
    ),
    operands=("[A]", "[B]", "[-- PATH…]"),
    options=(
        Option(("--stat",), "one line per file instead of the diff"),
        Option(("--name-only",), "only the paths"),
        SHOW_SECRETS,
    ),
    examples=(
        ("takeback diff", "since the newest checkpoint"),
        ("takeback diff @~3 @~1 --stat", "between two checkpoints"),
        ("takeback diff xozqkk -- src", "since one checkpoint, below src"),
        ("takeback diff @~1 --show-secrets | git apply -R", "reverse the difference by hand"),
    ),
)

_KINDS = {0o040000: "folder", 0o100000: "file", 0o120000: "link"}
_STYLES = {HEAD: "bold", HUNK: "cyan", OLD: "red", NEW: "green", NOTE: "dim"}
_STYLES |= {MASKED[OLD]: "red", MASKED[NEW]: "green"}
_WORDS_UP_TO = 20_000
"""Bytes of a replaced block in which single words are compared."""
_NAMES_AT_LEAST = 20
_HELD_UP_TO = 16 << 20
"""Bytes of JSON that are held back, so that an error until then is still one object."""


def run(given: "Arguments", screen: "Screen") -> int:
    with get_project(given, screen) as project:
        states = _states(given.operands, project)
        with _compare(given, states, project, screen) as comparison:
            shown = _made_ready(comparison, screen.masker)
            if screen.json:
                _json(given, states, shown, screen)
            else:
                _show(given, comparison, shown, screen)
    return 0


def _compare(
    given: "Arguments", states: "tuple[str, str]", project: "Project", screen: "Screen"
) -> "Comparison":
    before, after = states
    paths = [os.fsencode(path) for path in given.rest]
    here = inside(project, folder(given))
    try:
        return project.compare(before, after, paths, inside=here, progress=screen.progress)
    except UnknownReferenceError as problem:
        files = [word for word in given.operands if os.path.lexists(word)]
        if not files or given.rest:
            raise
        refs = "".join(f"{word} " for word in given.operands if word not in files)
        meant = f"takeback diff {refs}-- {' '.join(files)}"
        raise UnknownReferenceError(str(problem), hint=f"for a path: `{meant}`") from problem


def _made_ready(comparison: "Comparison", masker: "Masker") -> "Iterator[Shown]":
    """Each difference with its contents, one at a time; equal contents are not even read."""
    for d in comparison.differences:
        is_same = d.before is not None and d.after is not None and d.before.strong == d.after.strong
        contents = (b"", b"") if is_same else comparison.contents(d)
        yield Shown(d, contents, masker)


def _states(operands: "list[str]", project: "Project") -> "tuple[str, str]":
    """The two states; without any, the newest checkpoint and now."""
    if operands:
        return operands[0], [*operands, "@"][1]
    newest = next(project.checkpoints(), None)
    if newest is None:
        raise UnknownReferenceError(
            "there is no checkpoint yet", hint="`takeback checkpoint` makes the first one"
        )
    return newest.id, "@"


def _show(
    given: "Arguments", comparison: "Comparison", shown: "Iterable[Shown]", screen: "Screen"
) -> None:
    if not comparison.differences:
        is_now = given.operands == ["@"]
        more = " `@` is now; `takeback diff` shows what changed since the newest checkpoint."
        screen.note("No differences." + more * is_now)
    elif given.has("name-only"):
        for difference in comparison.differences:
            path = difference.raw_path or b"."
            if screen.is_terminal:
                screen.say(safe(path))
            else:
                screen.raw(quoted(path) + b"\n")
    elif given.has("stat"):
        _show_stat(shown, screen)
    else:
        masked, files = _show_diffs(shown, screen)
        if masked:
            screen.note(
                f"{count(masked, 'secret')} masked in {count(files, 'file')}, which `git apply`"
                " and `patch` will not apply; `--show-secrets` shows them"
            )


# -- the diff ----------------------------------------------------------------------------------


def _show_diffs(shown: "Iterable[Shown]", screen: "Screen") -> "tuple[int, int]":
    """Print each diff as soon as it is made; return how many secrets were masked, in how many."""
    masked, files = 0, 0
    for one in shown:
        if screen.is_terminal:
            for line in _for_people(one.patch(), screen):
                screen.say(line)
        else:
            screen.raw(b"".join(_for_programs(one.patch())))
        masked += one.masked
        files += one.masked > 0
    return masked, files


def _for_programs(diff: "Iterable[Line]") -> "Iterator[bytes]":
    for kind, line in diff:
        yield line if kind in (HEAD, HUNK, NOTE) else kind.encode() + line


def _for_people(diff: "Iterable[Line]", screen: "Screen") -> "Iterator[str]":
    """Lines with colours; in lines that replace others, the words that changed stand out."""
    old: list[bytes] = []
    new: list[bytes] = []
    for kind, line in diff:
        if kind == OLD and not new:
            old.append(line)
        elif kind == NEW:
            new.append(line)
        else:
            yield from _replaced(old, new, screen)
            old, new = ([line], []) if kind == OLD else ([], [])
            if kind != OLD:
                yield _styled(kind, line, screen)
    yield from _replaced(old, new, screen)


def _styled(kind: str, line: bytes, screen: "Screen") -> str:
    text = safe_content(line.removesuffix(b"\n"))
    if kind in (HEAD, HUNK, NOTE):
        return screen.style(text, _STYLES[kind])
    return screen.style(kind + text, _STYLES[kind]) if kind in _STYLES else kind + text


def _replaced(old: "list[bytes]", new: "list[bytes]", screen: "Screen") -> "Iterator[str]":
    small = sum(map(len, old)) + sum(map(len, new)) <= _WORDS_UP_TO
    if not old or not new or not small or screen.style("x", "bold") == "x":
        for kind, side in ((OLD, old), (NEW, new)):
            for line in side:
                yield _styled(kind, line, screen)
        return
    from takeback.disk.libgit2 import changed_words
    from takeback.model.text.lines import words

    for kind, side, changed in zip((OLD, NEW), (old, new), changed_words(old, new), strict=True):
        for line, flags in zip(side, changed, strict=True):
            yield _with_words(kind, list(zip(words(line), flags, strict=True)), screen)


def _with_words(kind: str, pieces: "list[tuple[bytes, bool]]", screen: "Screen") -> str:
    """A line in which the changed words stand out, unless that would be nearly all of it."""
    total = sum(len(word) for word, _ in pieces)
    if sum(len(word) for word, is_new in pieces if is_new) * 2 > total:
        return _styled(kind, b"".join(word for word, _ in pieces), screen)
    said, colour = "", _STYLES[kind]
    run, is_marked = kind.encode(), False
    for word, is_new in [*pieces, (b"", not pieces[-1][1])]:
        if is_new != is_marked:
            styles = (colour, "reverse") if is_marked else (colour,)
            said += screen.style(safe_content(run), *styles) if run else ""
            run, is_marked = b"", is_new
        run += word.removesuffix(b"\n")
    return said


# -- the table ---------------------------------------------------------------------------------


def _show_stat(shown: "Iterable[Shown]", screen: "Screen") -> None:
    # The contents are let go; of each file only its row stays.
    rows = [(_name(one), _number(one), one.added or 0, one.removed or 0) for one in shown]
    widest = max(len(row[1]) for row in rows)
    room = max(_NAMES_AT_LEAST, screen.width - widest - 20)
    column = min(max(columns(row[0]) for row in rows), room)
    bars = max(10, screen.width - column - widest - 6)
    most = max(added + removed for _, _, added, removed in rows)
    for name, number, added, removed in rows:
        bar = _bar(added, removed, bars / max(most, bars), screen)
        screen.say(f" {pad(cut_left(name, column), column)} | {number:>{widest}} {bar}".rstrip())
    added, removed = sum(row[2] for row in rows), sum(row[3] for row in rows)
    changed = f"{count(len(rows), 'path')} changed"
    screen.say(f" {changed}, {count(added, 'line')} added, {removed:,} removed")


def _name(one: Shown) -> str:
    path, origin = one.difference.path or b".", one.difference.origin
    return safe(path) if origin is None else f"{safe(origin)} => {safe(path)}"


def _number(one: Shown) -> str:
    """What stands beside the name: lines, or a word where there are none."""
    difference = one.difference
    if difference.reason:
        return f"not covered: {reasons.word(difference.reason)}"
    if one.why in ("binary", "large", "gone"):
        return {"binary": "binary", "large": "large", "gone": "changing"}[one.why]
    if one.added or one.removed:
        return str((one.added or 0) + (one.removed or 0))
    return {"write": "empty", "create": "empty", "delete": "empty"}.get(
        difference.verb, difference.verb
    )


def _bar(added: int, removed: int, scale: float, screen: "Screen") -> str:
    """Signs for lines; what is there at all gets one at least."""
    plus, minus = (max(int(lines * scale), lines > 0) for lines in (added, removed))
    signs = screen.style("+" * plus, "green") if plus else ""
    return signs + (screen.style("-" * minus, "red") if minus else "")


# -- JSON --------------------------------------------------------------------------------------


def _json(
    given: "Arguments", states: "tuple[str, str]", shown: "Iterable[Shown]", screen: "Screen"
) -> None:
    """One object. A long one is printed piece by piece, so that it is never held whole."""
    head: dict[str, Json] = {"before": states[0], "after": states[1]}
    held = [json_text.dumps(head).encode()[:-1] + b',"changes":[']
    totals = {"files": 0, "added": 0, "removed": 0, "masked": 0}
    size = 0
    has_hunks = not (given.has("stat") or given.has("name-only"))
    for one in shown:
        said = json_text.dumps(_as_json(one, has_hunks)).encode()
        held.append(b"," + said if totals["files"] else said)
        size += len(said)
        totals["files"] += 1
        totals["added"] += one.added or 0
        totals["removed"] += one.removed or 0
        totals["masked"] += one.masked
        if size > _HELD_UP_TO:
            screen.raw(b"".join(held))
            held, size = [], 0
    held.append(b"]," + json_text.dumps(totals).encode()[1:] + b"\n")
    screen.raw(b"".join(held))


def _as_json(one: Shown, has_hunks: bool) -> "dict[str, Json]":
    difference = one.difference
    origin = difference.raw_origin
    return {
        **path_fields(difference.raw_path),
        "verb": difference.verb,
        "origin": path_fields(origin) if origin is not None else None,
        "added": one.added,
        "removed": one.removed,
        "before": _entry(difference.before),
        "after": _entry(difference.after),
        "not_shown": one.why or None,
        "hunks": _hunks(one) if has_hunks else [],
    }


def _entry(entry: "Entry | None") -> "dict[str, Json] | None":
    if entry is None:
        return None
    return {
        "kind": _KINDS.get(entry.kind, "other"),
        "mode": f"{entry.mode & 0o7777:04o}",
        "size": entry.size,
        "left_out": reasons.word(entry.reason) if entry.reason else None,
    }


def _hunks(one: Shown) -> "list[Json]":
    found: list[Json] = []
    lines: list[str] = []
    for kind, line in one.diff():
        text = line.removesuffix(b"\n").decode("utf-8", "replace")
        if kind == HUNK:
            lines = []
            found.append({"head": text, "lines": lines})
        elif kind != HEAD:
            lines.append(text if kind == NOTE else kind + text)
    return found
