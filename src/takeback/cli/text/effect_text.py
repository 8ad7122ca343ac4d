"""Effects outside the files, in words and as JSON."""

from takeback.cli.screen import safe_line, timestamp
from takeback.model import words as terms
from takeback.model.reasons import GUARD_LIGHTER
from takeback.model.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from takeback.model.beyond.effects import Effect
    from takeback.model.text.json_text import Json
    from takeback.model.text.masking import Masker

_MOST = 20
_PUSH = "push"
_TAMPER = "tamper"
_HOW = {
    terms.RUNNING: "still running",
    terms.WAITING: "waits for an answer",
    terms.FAILED: "it failed, and may have done part of it",
    terms.INTERRUPTED: "interrupted, and may have done part of it",
    terms.REFUSED: "refused",
}

GUARD = {
    "guard-known": "{mode}; {refused} calls refused, {effects} effects recorded",
    "guard-is-off": "the guard is off, so no call is judged: `takeback guard watch` turns it on",
    "guard-cannot-read": "the packages `tree-sitter` and `tree-sitter-bash` are not installed, so"
    " every command counts as opaque: install Takeback again with its dependencies",
    GUARD_LIGHTER: "the guard was set from {before} to {after} by {by}, {when}",
    "guard-unread": "the {origin} rules cannot be read: {why}",
    "guard-unknown-class": "rule {rule} of the {origin} rules has no known `class`",
    "guard-no-match": "rule {rule} of the {origin} rules has neither `match` nor `tool`",
    "guard-unknown-table": "`{name}` of the {origin} rules is not known, and is ignored",
    "guard-tree-lighter": "rule `{rule}` of the tree would make calls lighter; ignored",
    "guard-tree-trust": "a file of the tree cannot trust MCP servers; that is ignored",
}
"""What is said of the guard and its rules."""


def as_json(effect: "Effect", masker: "Masker") -> "Json":
    """One effect, as documented in docs/json.md."""
    return {
        "id": effect.id,
        "turn": effect.turn or None,
        "session": effect.session or None,
        "agent": effect.agent or None,
        "step": effect.step or None,
        "at": timestamp(effect.at),
        "class": effect.effect,
        "kind": effect.kind,
        "target": masker.words(effect.target),
        "host": effect.host or None,
        "status": effect.status,
        "inverse": masker.words(effect.inverse) or None,
        "undone": effect.undone or None,
        "text": what(effect, masker),
    }


def what(effect: "Effect", masker: "Masker") -> str:
    """What was done: `pushed main to origin`, or the command."""
    target = safe_line(masker.words(effect.target))
    if effect.kind == _PUSH:
        pushed = _pushed(effect.target)
        if pushed:
            return safe_line(masker.words(pushed))
    said = f"ran `{target}`"
    if effect.kind == _TAMPER:
        return f"{said}, which changes Takeback or an agent's settings"
    return f"{said} ({safe_line(effect.host)})" if effect.host not in effect.target else said


def _pushed(target: str) -> str:
    """The branch and the remote of a plain push; empty if the command says something else."""
    import shlex

    try:
        parts = shlex.split(target)
    except ValueError:
        return ""
    if parts[:2] != ["git", "push"]:
        return ""
    named = [part for part in parts[2:] if not part.startswith("-")]
    forced = any(part in ("-f", "--force", "--force-with-lease") for part in parts)
    how = "force-pushed" if forced else "pushed"
    if not named:
        return f"{how} to the default remote"
    return f"{how} {' '.join(named[1:]) or 'the current branch'} to {named[0]}"


def line(effect: "Effect", masker: "Masker") -> str:
    """What was done, how it ended, and what takes it back."""
    how = _HOW.get(effect.status, "")
    said = what(effect, masker) + (f" ({how})" if how else "")
    if effect.undone == terms.DONE:
        return f"{said}; taken back by its inverse"
    if effect.inverse and effect.status != terms.REFUSED:
        back = safe_line(masker.words(effect.inverse))
        failed = ", which failed once" if effect.undone == terms.FAILED else ""
        return f"{said}: `{back}` takes it back{failed}"
    return said


def staying(found: "tuple[Effect, ...]", masker: "Masker") -> "list[str]":
    """A line for each effect that no restore takes back."""
    said = [f"stays: {line(each, masker)}" for each in found[:_MOST]]
    more = len(found) - _MOST
    return [*said, f"and {more:,} more effects stay: `takeback effects`"] if more > 0 else said


def in_short(found: "tuple[Effect, ...]") -> "list[str]":
    if not found:
        return []
    stay = "stays" if len(found) == 1 else "stay"
    return [f"{count(len(found), 'effect')} outside {stay}"]


def pairs(found: "Iterable[Effect]", masker: "Masker") -> "list[tuple[str, str]]":
    """The class of each, and what it is."""
    return [(each.effect, line(each, masker)) for each in found]
