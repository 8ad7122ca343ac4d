"""The user's own rules about calls: parsed values. Who reads which file is not known here."""

from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from takeback.guard.findings import Finding
    from takeback.model.effects import Judgement


class Rule(Value):
    """One rule: a command's words or a tool's name, as patterns, and the class they mean."""

    id: str
    effect: str
    match: "tuple[str, ...]" = ()
    tool: str = ""
    reason: str = ""
    instead: str = ""
    inverse: str = ""
    examples: "tuple[str, ...]" = ()
    not_examples: "tuple[str, ...]" = ()


class Rules(Value):
    """The rules that count, in their order, and the MCP servers whose annotations are believed.

    `tree` are rules of a file in the tree: these can only make a class graver.
    """

    rules: "tuple[Rule, ...]" = ()
    trusted: "tuple[str, ...]" = ()
    tree: "tuple[Rule, ...]" = ()


NONE = Rules()


def matches(rule: Rule, words: "Sequence[str]") -> bool:
    """Whether a command's words begin with the patterns of a rule; `**` is any number of words."""
    return bool(rule.match) and _matched(rule.match, list(words))


def _matched(patterns: "Sequence[str]", words: "Sequence[str]") -> bool:
    from fnmatch import fnmatchcase

    if not patterns:
        return True
    first, rest = patterns[0], patterns[1:]
    if first == "**":
        return any(_matched(rest, words[at:]) for at in range(len(words) + 1))
    return bool(words) and fnmatchcase(words[0], first) and _matched(rest, words[1:])


def applied(
    rules: Rules, words: "Sequence[str]", found: "list[Finding]", raw: str
) -> "list[Finding]":
    """The findings about a command with the first rule that matches it."""
    named = [words[0].rpartition("/")[2], *words[1:]]
    for rule in rules.rules:
        if matches(rule, named):
            found = [_ruled(rule, found, raw)]
            break
    for rule in rules.tree:
        if matches(rule, named):
            found = [_graver(rule, found, raw)]
    return found


def _ruled(rule: Rule, found: "list[Finding]", raw: str, origin: str = "user") -> "Finding":
    from takeback.guard.findings import Finding
    from takeback.model.reasons import Reason

    return Finding(
        rule.effect,
        f"{origin}.{rule.id}",
        Reason("rule", rule=rule.id, text=rule.reason),
        rule.instead,
        rule.inverse,
        tuple(target for each in found for target in each.targets),
        tuple(loss for each in found for loss in each.git),
        tuple(folder for each in found for folder in each.git_dirs),
        tuple(outside for each in found for outside in each.outside),
        raw,
    )


def _graver(rule: Rule, found: "list[Finding]", raw: str) -> "Finding":
    from takeback.guard.findings import gravest_of
    from takeback.model.effects import gravity

    made = _ruled(rule, found, raw, "tree")
    before = gravest_of(found)
    if before is None or gravity(before.effect) < gravity(rule.effect):
        return made
    return made.replace(
        effect=before.effect, rule=before.rule, reason=before.reason, instead=before.instead,
        inverse=before.inverse,
    )  # fmt: skip


def with_tool_rules(rules: Rules, tool: str, found: "Judgement") -> "Judgement":
    """A judgement with the first rule about the tool's name."""
    from fnmatch import fnmatchcase

    from takeback.model.effects import gravity
    from takeback.model.reasons import Reason

    for origin, listed in (("user", rules.rules), ("tree", rules.tree)):
        for rule in listed:
            if not rule.tool or rule.match or not fnmatchcase(tool, rule.tool):
                continue
            if origin == "tree" and gravity(rule.effect) <= gravity(found.effect):
                continue
            found = found.replace(
                effect=rule.effect, rule=f"{origin}.{rule.id}",
                reason=Reason("rule", rule=rule.id, text=rule.reason), instead=rule.instead,
                inverse=rule.inverse,
            )  # fmt: skip
            break
    return found
