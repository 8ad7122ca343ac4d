"""`takeback diff`: what differs between two states, or between one and now."""

import os

from takeback.cli import diff_view
from takeback.cli.app import folder, get_project, inside, is_path
from takeback.cli.parser import LOOK, SHOW_SECRETS, Arguments, Command, Option
from takeback.cli.screen import Screen, columns, cut_left, pad
from takeback.errors import UnknownReferenceError
from takeback.history.unified import Shown, quoted
from takeback.model import words as reasons
from takeback.model.text import json_text
from takeback.model.text.safe_text import safe, shell_word
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.history.compare import Comparison
    from takeback.model.text.json_text import Json
    from takeback.project import Project

COMMAND = Command(
    "diff",
    "show what changed between two states, or since one",
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
    group=LOOK,
)

_NAMES_AT_LEAST = 20
_HELD_UP_TO = 16 << 20
"""Bytes of JSON that are held back, so that an error until then is still one object."""


def run(given: "Arguments", screen: "Screen") -> int:
    with get_project(given, screen) as project:
        states = _states(given.operands, project)
        with _compare(given, states, project, screen) as comparison:
            screen.page()
            shown = diff_view.made_ready(comparison, screen.masker)
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
        here = folder(given)
        files = [word for word in given.operands if is_path(word, project, here)]
        if not files or given.rest:
            raise
        refs = "".join(f"{word} " for word in given.operands if word not in files)
        meant = f"takeback diff {refs}-- {' '.join(map(shell_word, files))}"
        raise UnknownReferenceError(str(problem), hint=f"for a path: `{meant}`") from problem


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
        diff_view.show_diffs(shown, screen)


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
        said = json_text.dumps(diff_view.as_json(one, has_hunks=has_hunks)).encode()
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
