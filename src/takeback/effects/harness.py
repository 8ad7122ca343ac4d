"""The guard in Python: steps that a harness begins, and effects that it reports."""

import time

from takeback.effects import guarding
from takeback.effects.guarding import Call, Decision
from takeback.effects.tamper import Protected
from takeback.effects.verdict import DENY
from takeback.effects.verdict import verdict as say
from takeback.errors import GuardRefused, UsageError
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model import tools
from takeback.model.beyond import effects
from takeback.model.beyond.effects import Judgement, Outside
from takeback.model.reasons import Action, Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.capture.workspace import Workspace
    from takeback.effects.guarding import Blocked
    from takeback.model.text.json_text import Json

_DECLARED = "declared"


def decide(
    work: "Workspace",
    turn: str,
    tool: str,
    given: "Mapping[str, object]",
    *,
    kind: "str | None",
    effect: str,
    inverse: str,
    cwd: "bytes | None",
    mode: str,
) -> "Decision | None":
    """What becomes of a step; `GuardRefused` if it may not begin. With the lock held."""
    declared = _declared(effect, inverse)
    chosen, _ = tools.claim_of(tool, given)
    call = Call(tool, given, kind or chosen, (), cwd or work.root, declared)
    session = work.ledger.sessions.of(work.ledger.turns.get(turn)).id
    protected = Protected(work.home.path, guarding.user_home())
    mode = guarding.mode_of(work, mode)
    decision = guarding.decide(work, call, session, protected, mode=mode)
    if decision is not None and decision.verdict.answer == DENY:
        raise refused(work, decision, turn)
    return decision


def refused(work: "Workspace", decision: Decision, turn: str) -> GuardRefused:
    """The error for a step, or an effect, that the guard refused; recorded with this."""
    session = work.ledger.sessions.of(work.ledger.turns.get(turn)).id
    found = guarding.record(work, decision, session, turn, DENY, None)
    return _error(found, decision)


def _error(blocked: "Blocked", decision: Decision) -> GuardRefused:
    what = blocked.summary or decision.call.tool
    hint = (blocked.instead,) if blocked.instead else ()
    return GuardRefused(
        f"the guard refused `{what}`: it is {blocked.effect}",
        hint=(*hint, Action("guard-allow", id=blocked.id[:8])),
        reasons=(blocked.reason,),
        refusal=blocked.id,
        effect=blocked.effect,
        rule=blocked.rule,
        instead=blocked.instead,
    )


def report(
    work: "Workspace",
    place: "tuple[str, str | None]",
    outside: Outside,
    *,
    mode: str,
    request: "str | None",
) -> str:
    """Record an effect of a turn, or of a step of it; its id. With the lock held."""
    turn, step = place
    known = work.ledger.requested(request)
    if known is not None and known.payload:
        return _first(known.payload.get("effects"))
    row = work.ledger.turns.get(turn)
    text = f"{outside.kind} {outside.target}"
    reason = Reason(_DECLARED)
    judgement = Judgement(outside.effect, _DECLARED, reason, outside=(outside,))
    mode = guarding.mode_of(work, mode)
    call = Call(text, {"target": outside.target}, _DECLARED)
    said = say(outside.effect, mode)
    session = work.ledger.sessions.of(row).id
    allowed = work.ledger.effects.allowance(session, call.trace, outside.effect)
    decision = Decision(call, judgement, said, mode)
    if allowed is None and DENY in (said.answer, said.without_rescue):
        raise refused(work, decision, turn)
    rows = guarding.effect_rows(work, decision)
    facts: dict[str, Json] = {"turn": turn, "step": step, "status": "done", "effects": rows}
    if allowed is not None:
        facts["allowed"] = allowed[0]
    work.ledger.record(
        NewEvent(
            events.EFFECT_REPORTED, facts, time.time_ns(), parents=(row.opened,), request=request
        )
    )
    return _first(rows)


def _first(rows: "Json") -> str:
    """The id of the first effect that an event tells."""
    first = rows[0] if isinstance(rows, list) and rows else None
    return str(first[0]) if isinstance(first, list) and first else ""


def as_outside(
    kind: str, target: str, *, reversible: "bool | None", effect: str, inverse: str, host: str
) -> Outside:
    """An effect as a harness describes it."""
    if not kind or not target:
        raise UsageError(
            "an effect needs a kind and a target", hint="effect('http', 'POST /users')"
        )
    if not effect:
        effect = effects.IRREVERSIBLE
        if reversible or (reversible is None and inverse):
            effect = effects.COMPENSABLE
    _require_class(effect)
    return Outside(tools.one_line(kind), tools.one_line(target), host, effect, inverse)


def _declared(effect: str, inverse: str) -> "dict[str, object] | None":
    if not effect and not inverse:
        return None
    chosen = effect or effects.COMPENSABLE
    _require_class(chosen)
    return {"class": chosen, "inverse": inverse}


def _require_class(effect: str) -> None:
    if effect not in effects.CLASSES:
        raise UsageError(
            f"`{effect}` is not a class of effects", hint=f"one of {', '.join(effects.CLASSES)}"
        )
