"""What moves beside the files, in words and as JSON: memory, databases, other participants."""

from takeback.cli.screen import safe_line
from takeback.cli.text import reason_text
from takeback.model.beyond.participants import (
    AFTERWARDS,
    CONFLICTS,
    DONE,
    FAILED,
    MEMORY_NAME,
    MOVES,
    MUTATION_NAME,
    STAYS,
)
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.cli.screen import Screen
    from takeback.model.beyond.participants import Captured, Difference, Move
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker

_VERBS = {
    MOVES: "restore",
    AFTERWARDS: "then",
    STAYS: "stays",
    CONFLICTS: "conflict",
    DONE: "restored",
    FAILED: "failed",
}
_STYLES = {CONFLICTS: "red", FAILED: "red", MOVES: "green", DONE: "green"}
_MOST_NAMED = 3


def as_json(moves: "Iterable[Move]", masker: "Masker") -> "list[Json]":
    """Moves of a plan or a report, as documented in docs/json.md."""
    return [
        {
            "name": each.name,
            "kind": each.kind,
            "how": each.how,
            "token": each.token or None,
            "before": each.before or None,
            "reason": reason_text.as_json(each.reason, masker),
            "differences": [_difference(one) for one in each.differences],
        }
        for each in moves
    ]


def _difference(each: "Difference") -> "dict[str, Json]":
    return {
        "what": each.what,
        "added": each.added,
        "removed": each.removed,
        "changed": each.changed,
    }


def captured_json(each: "Captured") -> "dict[str, Json]":
    return {
        "name": each.name,
        "kind": each.kind,
        "before": each.before or None,
        "after": each.after or None,
        "problem": each.problem or None,
    }


def show(moves: "Iterable[Move]", screen: "Screen") -> None:
    """A line for each participant of a plan or a report."""
    listed = list(moves)
    if not listed:
        return
    screen.say(screen.style("Beside the files", "bold"))
    width = max(len(_VERBS[each.how]) for each in listed)
    for each in listed:
        word = _VERBS[each.how].ljust(width)
        style = _STYLES.get(each.how)
        shown = screen.style(word, style) if style else word
        said = _said(each, screen)
        name = _named(each, screen)
        screen.say(f"  {shown}  {name}{f'  {said}' if said else ''}".rstrip())


def _named(move: "Move", screen: "Screen") -> str:
    """A participant, or the target of a mutation."""
    if move.name.startswith(MUTATION_NAME) and move.differences:
        return safe_line(screen.masker.words(move.differences[0].what))
    return called(move.name)


def called(name: str) -> str:
    """A participant as one calls it; the memory of a session by a short id."""
    if name.startswith(MEMORY_NAME):
        return f"memory of session {name.removeprefix(MEMORY_NAME)[:8]}"
    return safe_line(name)


def _said(move: "Move", screen: "Screen") -> str:
    if move.reason is not None:
        return safe_line(screen.masker.words(reason_text.sentence(move.reason)))
    if move.name.startswith(MUTATION_NAME):
        return "by its inverse, after the files" if move.how == AFTERWARDS else ""
    named = [_counted(each) for each in move.differences[:_MOST_NAMED]]
    more = len(move.differences) - len(named)
    named += [f"{more:,} more"] if more > 0 else []
    said = safe_line(screen.masker.words(", ".join(named)))
    return f"{said} (after the files)".strip() if move.how == AFTERWARDS else said


def _counted(each: "Difference") -> str:
    counts = [
        f"{sign}{number:,}"
        for sign, number in (("+", each.added), ("-", each.removed), ("~", each.changed))
        if number
    ]
    return f"{each.what}: {' '.join(counts)}" if counts else each.what


def tokens(found: "Iterable[Captured]", screen: "Screen") -> None:
    """The tokens that a coordinate carries."""
    listed = list(found)
    if not listed:
        return
    screen.say(screen.style(f"Beside the files  {count(len(listed), 'participant')}", "bold"))
    rows, same = [], []
    for each in listed:
        if not each.after:
            said = f"not known: {each.problem}" if each.problem else "not known"
        elif each.before == each.after:
            same.append(called(each.name))
            continue
        else:
            said = f"changed: {each.before[:40] or '?'} -> {each.after[:40]}"
        rows.append((called(each.name), safe_line(screen.masker.words(said))))
    screen.table(rows)
    if same:
        more = len(same) - _MOST_NAMED
        named = ", ".join(same[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
        screen.say(f"  unchanged: {named}")
