"""What the guard says of a call: from its class and the mode, nothing else.

    off         nothing is judged
    watch       every call runs; a checkpoint comes before what may destroy or publish something
    ask         the user decides about what is destructive, opaque or irreversible
    autopilot   nobody watches: what is opaque or irreversible is refused, what is destructive runs
                if its targets could be rescued

Where nobody can be asked, what would be asked is refused. docs/guard.md has the whole table, made
from `table`.
"""

from takeback.model.beyond import effects
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

OFF, WATCH, ASK_FIRST, AUTOPILOT = "off", "watch", "ask", "autopilot"
MODES = (OFF, WATCH, ASK_FIRST, AUTOPILOT)
"""From the lightest to the strictest."""

ALLOW, ASK, DENY = "allow", "ask", "deny"
"""As agents have them (`agents/agent`)."""

_GRAVE = (effects.DESTRUCTIVE, effects.OPAQUE, effects.IRREVERSIBLE)
_CAPTURED = (*_GRAVE, effects.COMPENSABLE, effects.PROGRAM)


class Verdict(Value):
    """Allow, ask or deny. `captures`: a checkpoint comes first, whatever the settings say.

    `needs_rescue`: it is so only if the targets are rescued; `without_rescue` is it otherwise.
    """

    answer: str = ALLOW
    captures: bool = False
    needs_rescue: bool = False
    without_rescue: str = ALLOW


def verdict(
    effect: str, mode: str, *, can_ask: bool = False, can_deny: bool = True, tampers: bool = False
) -> Verdict:
    """What becomes of a call of a class.

    It `tampers` if it would change the guard, the hooks, an agent's settings or the store.
    """
    if mode not in MODES[1:] or effect == effects.READ:
        return Verdict()
    captures = effect in (_GRAVE if mode == WATCH else _CAPTURED)
    is_light = effects.gravity(effect) < effects.gravity(effects.DESTRUCTIVE)
    if mode == WATCH or not can_deny or (is_light and not tampers):
        return Verdict(captures=captures)
    if tampers or (mode == AUTOPILOT and effect != effects.DESTRUCTIVE):
        return Verdict(DENY)
    asked = ASK if can_ask else DENY
    if mode == ASK_FIRST:
        return Verdict(asked, captures)
    return Verdict(ALLOW, captures, needs_rescue=True, without_rescue=asked)


def is_lighter(mode: str, than: str) -> bool:
    """Whether a mode stops less than another."""
    return MODES.index(mode) < MODES.index(than)


def table() -> "Iterator[tuple[str, ...]]":
    """Each class, and what each mode says of it."""
    for effect in effects.CLASSES:
        yield (effect, *(_said(effect, mode) for mode in MODES))
    yield ("(tampering)", *(_said(effects.LOCAL, mode, tampers=True) for mode in MODES))


def _said(effect: str, mode: str, *, tampers: bool = False) -> str:
    found = verdict(effect, mode, can_ask=True, tampers=tampers)
    if found.needs_rescue:
        said = f"{found.answer} if rescued, else {found.without_rescue}"
    else:
        said = found.answer
    return said + (", checkpoint" if found.captures and found.answer != DENY else "")
