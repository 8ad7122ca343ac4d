"""`judge`: the class of one tool call, from the call alone. It never raises."""

from takeback.guard import rules as guard_rules
from takeback.model import words
from takeback.model.beyond import effects
from takeback.model.beyond.effects import Judgement, Part
from takeback.model.reasons import GUARD_ERROR, Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from takeback.guard.findings import Finding
    from takeback.guard.rules import Rules
    from takeback.guard.scope import Scope

LONGEST = 200_000
"""Characters of a command that are read; a longer one is opaque."""


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
    tool = str(tool)
    if kind == words.READ and not rules.rules and not rules.tree and declared is None:
        fast = _plain_read(tool, given)
        if fast is not None:
            return fast
    try:
        from takeback.guard import tools

        return tools.judge_call(
            tool, given, kind, _scope(cwd, root, home), rules, declared, annotations
        )
    except Exception:  # noqa: BLE001 (an error of the guard must not make a call look harmless)
        return Judgement(effects.OPAQUE, "guard.error", Reason(GUARD_ERROR, tool=tool))


def _plain_read(tool: str, given: "Mapping[str, object]") -> "Judgement | None":
    """A tool that only reads; one that fetches from an address is looked at more closely."""
    _ = given
    name = tool.lower()
    if "fetch" in name or "http" in name or "web" in name:
        return None
    return Judgement(effects.READ, "tool.read", Reason("reads", tool=tool))


def _scope(cwd: bytes, root: bytes, home: bytes) -> "Scope":
    from takeback.guard.scope import Scope, text_of

    return Scope(text_of(cwd) or None, text_of(root).rstrip("/"), text_of(home).rstrip("/"))


def judge_command(text: str, scope: "Scope", rules: "Rules") -> Judgement:
    """What a command line would do."""
    from takeback.guard.shell import Shell

    if len(text) > LONGEST:
        return Judgement(effects.OPAQUE, "shell.too-long", Reason("too-long"))
    shell = Shell(rules)
    shell.run_text(text, scope)
    return from_findings(shell.findings)


def from_findings(found: "Sequence[Finding]") -> Judgement:
    """One judgement of all parts: the class of the gravest."""
    from takeback.guard import knowledge
    from takeback.guard.findings import gravest_of

    gravest = gravest_of(found)
    if gravest is None:
        return Judgement(effects.READ, "shell.nothing", Reason("reads"))
    return Judgement(
        gravest.effect,
        gravest.rule,
        knowledge.with_text(gravest.reason),
        gravest.instead,
        gravest.inverse,
        tuple(Part(each.command, each.effect, each.rule, each.reason) for each in found),
        tuple(dict.fromkeys(target for each in found for target in each.targets)),
        tuple(dict.fromkeys(loss for each in found for loss in each.git)),
        tuple(dict.fromkeys(folder for each in found for folder in each.git_dirs)),
        tuple(dict.fromkeys(each for finding in found for each in finding.outside)),
    )
