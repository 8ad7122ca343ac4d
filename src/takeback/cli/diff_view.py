"""Differences on a screen and as JSON: what `diff`, `show -p` and `--dry-run -p` print."""

from takeback.cli.screen import safe_content
from takeback.history.unified import HEAD, HUNK, MASKED, NEW, NOTE, OLD, Shown
from takeback.model import words as reasons
from takeback.model.text.json_text import path_fields
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from takeback.cli.screen import Screen
    from takeback.cli.text.restores.conflict_text import Styled
    from takeback.history.compare import Comparison, OwnChanges
    from takeback.history.unified import Line
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker
    from takeback.model.tree import Entry

_KINDS = {0o040000: "folder", 0o100000: "file", 0o120000: "link"}
_STYLES = {HEAD: "bold", HUNK: "cyan", OLD: "red", NEW: "green", NOTE: "dim"}
_STYLES |= {MASKED[OLD]: "red", MASKED[NEW]: "green"}
_WORDS_UP_TO = 20_000
"""Bytes of a replaced block in which single words are compared."""
_MOST_LINES = 20_000
"""Lines of a diff that somebody may scroll through."""


def made_ready(comparison: "Comparison | OwnChanges", masker: "Masker") -> "Iterator[Shown]":
    """Each difference with its contents, one at a time; equal contents are not even read."""
    for d in comparison.differences:
        is_same = d.before is not None and d.after is not None and d.before.strong == d.after.strong
        contents = (b"", b"") if is_same else comparison.contents(d)
        yield Shown(d, contents, masker)


def show_diffs(shown: "Iterable[Shown]", screen: "Screen") -> None:
    """Print each diff as soon as it is made; say how many secrets were masked."""
    masked, files = 0, 0
    for one in shown:
        if screen.is_terminal or screen.has_colour:
            for line in for_people(one.patch(), screen):
                screen.verbatim(line)
        else:
            screen.raw(b"".join(_for_programs(one.patch())))
        masked += one.masked
        files += one.masked > 0
    if masked:
        screen.note(
            f"{count(masked, 'secret')} masked in {count(files, 'file')}, which `git apply`"
            " and `patch` will not apply; `--show-secrets` shows them"
        )


def styled(shown: Shown) -> "list[Styled]":
    """The lines of one diff, each with its style, for somebody who scrolls through them."""
    from itertools import islice

    plain = (HEAD, HUNK, NOTE)
    told = [
        (
            _STYLES.get(kind, ""),
            ("" if kind in plain else kind) + safe_content(line.rstrip(b"\r\n")).expandtabs(),
        )
        for kind, line in islice(shown.diff(), _MOST_LINES)
    ]
    if len(told) == _MOST_LINES:
        told.append(("dim", f"(only the first {_MOST_LINES:,} lines are shown)"))
    return told


def _for_programs(diff: "Iterable[Line]") -> "Iterator[bytes]":
    for kind, line in diff:
        yield line if kind in (HEAD, HUNK, NOTE) else kind.encode() + line


def for_people(diff: "Iterable[Line]", screen: "Screen") -> "Iterator[str]":
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
    if not old or not new or not small or not screen.has_colour:
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


def as_json(one: Shown, *, has_hunks: bool = True) -> "dict[str, Json]":
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
