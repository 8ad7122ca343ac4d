"""`judge`: the class of one tool call, from the call alone. It never raises."""

from takeback.guard import rules as guard_rules
from takeback.model import effects, words
from takeback.model.effects import Judgement
from takeback.model.reasons import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.guard.rules import Rules

_OF_KIND = {
    words.READ: effects.READ,
    words.EDIT: effects.INSIDE,
    words.AGENT: effects.PROGRAM,
    words.OTHER: effects.PROGRAM,
    words.SHELL: effects.PROGRAM,
}


def judge(
    tool: str,
    given: "Mapping[str, object]",
    *,
    kind: str,
    cwd: bytes,
    root: bytes,
    home: bytes,
    rules: "Rules" = guard_rules.NONE,
    declared: "str | Mapping[str, object] | None" = None,
    annotations: "Mapping[str, object] | None" = None,
) -> Judgement:
    """What a call would do. An error inside counts as opaque.

    `home` is the user's home folder. `declared` is the class that a harness gives its own tool, or
    a mapping with `class`, `inverse` and `reason`. `annotations` are those of an MCP tool; they
    count only if the user trusts its server (`rules.trusted`).
    """
    _ = (given, cwd, root, home, rules, declared, annotations)
    return Judgement(_OF_KIND.get(kind, effects.OPAQUE), "tool", Reason("tool", tool=str(tool)))
