"""The guard of one project: judges a call, says what becomes of it, and records that.

    call ──► guard.judge ──► Judgement ──► effects.verdict ──► Decision
                                                                 │
              the step's event gets its class and its effects ◄──┤ it runs
              an event of its own says why, and its id ◄─────────┘ it is refused

An error in here counts as opaque: what cannot be judged hides what it does.
"""

import os
import time
from hashlib import sha256

from takeback.effects import tamper
from takeback.effects.verdict import ALLOW, DENY, MODES, OFF, WATCH, Verdict, verdict
from takeback.ledger.log import events
from takeback.ledger.log.events import NewEvent
from takeback.model import ids, reasons, tools, words
from takeback.model.beyond import effects
from takeback.model.beyond.effects import Judgement
from takeback.model.reasons import Reason
from takeback.model.text import json_text
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from takeback.capture.workspace import Workspace
    from takeback.effects.tamper import Protected
    from takeback.model.beyond.rescued import Rescued
    from takeback.model.text.json_text import Json

    Row = tuple[str, str, str, str, str]
    """The class of an effect, its kind, its target, its host, its inverse."""

GUARD = "guard"
"""Why a call is refused: as `agents/refusals` has it."""
_TAMPER_RULE = "guard-tamper"
_TRACE = 4
"""Hex digits by which a call is found again; too few to guess what it was."""
_MOST = 20
_DESTROYS = effects.gravity(effects.DESTRUCTIVE)
_LONGEST = 400
_TOLD_KEYS = ("description", "title", "explanation", "timeout", "timeout_ms")


class Call(Value):
    """A call that is about to be made; `paths` are those that it names, whole.

    `declared` is the class that a harness gives it, or a mapping with `class` and `inverse`.
    """

    tool: str
    given: "Mapping[str, object]"
    kind: str
    paths: "tuple[bytes, ...]" = ()
    cwd: bytes = b""
    declared: "str | Mapping[str, object] | None" = None
    can_ask: bool = False
    can_deny: bool = True

    @property
    def command(self) -> str:
        """Every text that it was given: the command line of a shell."""
        return "\n".join(_texts(self.given))

    @property
    def trace(self) -> str:
        """What finds the same call again, whatever an agent tells about it."""
        own = [(str(k), str(v)) for k, v in self.given.items() if k not in _TOLD_KEYS]
        text = json_text.dumps([self.tool, *(f"{k}={v}" for k, v in sorted(own))])
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_TRACE]


class Decision(Value):
    """A judgement, the verdict, and what would be changed that no call may change.

    `allowed` is the refusal of the same call that the user lifted.
    """

    call: Call
    judgement: Judgement
    verdict: Verdict
    mode: str
    tampers: str = ""
    allowed: str = ""

    @property
    def reason(self) -> Reason:
        """Why it is refused."""
        if self.tampers:
            return Reason(reasons.GUARD_TAMPER, what=self.tampers)
        return self.judgement.reason

    @property
    def rule(self) -> str:
        return _TAMPER_RULE if self.tampers else self.judgement.rule


class Blocked(Value):
    """A call that was refused, or asked about: the id of the refusal, its class, and why."""

    id: str
    effect: str
    rule: str
    reason: Reason
    instead: str = ""
    summary: str = ""


def mode_of(work: "Workspace", chosen: str = "") -> str:
    """The mode of the guard: the one that a harness chose, else that of the settings."""
    mode = chosen or str(work.rules.setting("guard", "mode", WATCH))
    return mode if mode in MODES else WATCH


def mode_of_run(work: "Workspace") -> str:
    """The mode for a command that the user starts: nothing is refused, and `off` stays off."""
    return OFF if mode_of(work) == OFF else WATCH


def decide(
    work: "Workspace", call: Call, session: str, protected: "Protected", *, mode: str
) -> "Decision | None":
    """What becomes of a call; None if nothing is judged. With the lock held."""
    if mode == OFF or (call.kind == words.READ and call.declared is None):
        return None
    judgement = _judged(work, call, protected.home)
    try:
        what = tamper.found(call.kind, call.command, call.paths, judgement, protected)
    except Exception:  # noqa: BLE001 -- what cannot be judged is opaque
        judgement, what = _failed(), ""
    said = verdict(
        judgement.effect, mode, can_ask=call.can_ask, can_deny=call.can_deny, tampers=bool(what)
    )
    made = Decision(call, judgement, said, mode, what)
    if said.answer == ALLOW and not said.needs_rescue:
        return made
    known = work.ledger.effects.allowance(session, call.trace, judgement.effect)
    if known is None:
        return made
    return made.replace(verdict=Verdict(captures=said.captures), allowed=known[0])


def _judged(work: "Workspace", call: Call, home: bytes) -> Judgement:
    try:
        from takeback.effects import rule_files
        from takeback.guard.judge import judge

        return judge(
            call.tool,
            call.given,
            kind=call.kind,
            cwd=call.cwd or work.root,
            root=work.root,
            home=home,
            rules=rule_files.read(work.home, work.id, work.root).rules,
            declared=call.declared,
        )
    except Exception:  # noqa: BLE001 -- what cannot be judged is opaque
        return _failed()


def _failed() -> Judgement:
    return Judgement(effects.OPAQUE, "error", Reason(reasons.GUARD_ERROR))


# -- what is saved before ------------------------------------------------------------------


def save(work: "Workspace", decision: Decision, step: str) -> "tuple[Rescued | None, str]":
    """Save what a call would destroy; and what becomes of it, now that this is known."""
    judgement, said = decision.judgement, decision.verdict
    rescued = None
    if judgement.targets or judgement.git:
        from takeback.effects import rescue

        rescued = rescue.before(work, step, judgement)
    if not said.needs_rescue:
        return rescued, said.answer
    is_saved = rescued is not None and rescued.is_whole and not _destroys_outside(judgement)
    return rescued, said.answer if is_saved else said.without_rescue


def _destroys_outside(judgement: Judgement) -> bool:
    """Whether a call destroys what is neither a file nor in git: a table, a volume."""
    return any(effects.gravity(each.effect) >= _DESTROYS for each in judgement.outside)


# -- what is recorded ----------------------------------------------------------------------


def step_facts(work: "Workspace", decision: "Decision | None") -> "dict[str, Json]":
    """What the event of a step says of its effects."""
    if decision is None:
        return {}
    said: dict[str, Json] = {"class": decision.judgement.effect}
    told = effect_rows(work, decision)
    if told:
        said["effects"] = told
    if decision.allowed:
        said["allowed"] = decision.allowed
    return said


def effect_rows(work: "Workspace", decision: Decision) -> "list[Json]":
    """The effects of a call, each with an id, without secrets."""
    found = list(_effects(decision))[:_MOST]
    if not found:
        return []
    from takeback.capture import step_details

    text = step_details.text_of(work)
    told: list[Json] = []
    for effect, kind, target, host, inverse in found:
        back = text.masked(inverse)
        # A command without its secret does something else.
        texts = (text.masked(target)[:_LONGEST], text.masked(host), back if back == inverse else "")
        told.append([_new_id(), effect, kind, *texts, decision.rule])
    return told


def _effects(decision: Decision) -> "Iterator[Row]":
    judgement, call = decision.judgement, decision.call
    shown = tools.one_line(call.command if call.kind == words.SHELL else call.tool)
    for each in judgement.outside:
        yield each.effect, each.kind, tools.one_line(each.target) or shown, each.host, each.inverse
    if decision.tampers:
        yield judgement.effect, effects.TAMPER, shown, "", ""
    if judgement.outside or decision.tampers:
        return
    if judgement.effect in (effects.READ, effects.INSIDE, effects.TRANSACTIONAL, effects.PROGRAM):
        return
    kind = effects.COMMAND
    if judgement.effect == effects.OPAQUE:
        kind = effects.UNKNOWN
    elif judgement.git:
        kind = effects.GIT
    elif judgement.targets:
        kind = effects.FILES
    elif judgement.effect == effects.LOCAL:
        kind = effects.ON_MACHINE
    yield judgement.effect, kind, shown, "", judgement.inverse


def record(
    work: "Workspace",
    decision: Decision,
    session: str,
    turn: "str | None",
    answer: str,
    request: "str | None",
) -> Blocked:
    """Record that a call is refused, or that the user is asked. With the lock held."""
    from takeback.capture import step_details

    text = step_details.text_of(work)
    call, row = decision.call, work.ledger.sessions.get(session)
    summary, _ = step_details.of_input(work, call.tool, call.kind, call.given)
    instead = "" if decision.tampers else text.masked(decision.judgement.instead)
    reason = json_text.mapped(decision.reason.as_json(), text.masked)
    said: dict[str, Json] = {
        "session": session,
        "turn": turn,
        "tool": tools.one_line(call.tool),
        "why": GUARD,
        "restores": [],
        "refusal": _new_id(),
        "verdict": answer,
        "class": decision.judgement.effect,
        "rule": decision.rule,
        "reason": reason,
        "instead": instead,
        "summary": summary,
        "trace": call.trace,
        "line": work.ledger.line,
        "effects": effect_rows(work, decision) if answer == DENY else [],
    }
    kind = events.CALL_REFUSED if answer == DENY else events.GUARD_ASKED
    work.ledger.record(NewEvent(kind, said, time.time_ns(), parents=(row.opened,), request=request))
    return blocked_of(said)


def blocked_of(said: "Mapping[str, object]") -> Blocked:
    """A refusal as its event tells it."""
    told = said.get("reason")
    reason = reasons.from_json(told) if isinstance(told, dict) else Reason(reasons.GUARD_ERROR)

    def text(key: str) -> str:
        return str(said.get(key) or "")

    return Blocked(
        text("refusal"), text("class"), text("rule"), reason, text("instead"), text("summary")
    )


def _texts(given: "Mapping[str, object]") -> "Iterator[str]":
    for key, value in given.items():
        if key in _TOLD_KEYS:
            continue
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            yield " ".join(each for each in value if isinstance(each, str))


def user_home() -> bytes:
    """The user's home folder, for those who were not told."""
    import pwd

    try:
        return os.fsencode(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return b""


def _new_id() -> str:
    return ids.from_entropy(os.urandom(8))
