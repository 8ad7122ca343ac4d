"""`takeback hook`: one event from stdin, one answer to stdout, and always exit 0.

    stdin ──► payload ──► dialect ──► Call ──► Witness ──► the project's log
                                       │
    stdout ◄── answer ◄── dialect ◄── Answer: what the agent, or its user, has to hear

Whatever goes wrong here is ours, not the agent's: it is noted (`troubles`), the user hears once in
each conversation that the turn is not covered, and the agent goes on.
"""

import os
import time
from contextlib import suppress

from takeback import environment
from takeback.hooks import calls, dialects
from takeback.hooks.calls import Answer, Call
from takeback.model import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

_LARGEST = 64 << 20
"""Bytes of a payload: a tool's whole output may be in it."""
_AT_ONCE = 1 << 20


def main() -> int:
    """Hear one event. The exit code is 0, whatever happens."""
    # Also an interrupt: the agent must not notice.
    with suppress(BaseException):
        said = answered(_read(0))
        if said:
            os.write(1, said)
    return 0


def finish() -> "NoReturn":
    """Hear one event as the whole program; taking the interpreter apart only costs time."""
    os._exit(main())


def _read(fd: int) -> bytes:
    pieces, size = [], 0
    while size <= _LARGEST:
        piece = os.read(fd, _AT_ONCE)
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def answered(data: bytes) -> bytes:
    """The answer to a payload, as the agent wants to read it."""
    payload = parse(data)
    dialect = dialects.of(payload)
    call = dialect.read(payload)
    call.folder = environment.project_folder()
    answer = heard(call)
    told = dialect.answer(call, answer)
    return jsontext.dumps(told).encode() + b"\n" if told else b""


def parse(data: bytes) -> "Mapping[str, object]":
    """A payload, whatever was sent: what is no JSON object is an empty one."""
    text = data.decode("utf-8", "replace").strip()
    try:
        payload = jsontext.loads(text)
    except (ValueError, TypeError, RecursionError):
        payload = _leniently(text)
    return payload if isinstance(payload, dict) else {}


def _leniently(text: str) -> object:
    """Some hosts send control characters within strings."""
    import json

    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return {}


def heard(call: Call) -> Answer:
    """Record a call; what has to be said about it."""
    if call.kind == calls.OTHER or not call.session:
        return Answer()
    try:
        return _recorded(call)
    except Exception as problem:  # noqa: BLE001 -- whatever it is, it is not the agent's
        return _trouble(call, problem)


def _recorded(call: Call) -> Answer:
    from takeback.hooks import transcripts
    from takeback.hooks.witness import Witness
    from takeback.project import Project

    where = os.fsencode(call.folder or call.cwd or ".")
    home, user_home = environment.default_home(), environment.user_home()
    project = Project.open(where, home=home, user_home=user_home)
    try:
        Witness(project, transcripts.interrupted_at).hear(call)
        return Answer()
    finally:
        project.close()


def _trouble(call: Call, problem: Exception) -> Answer:
    from takeback.errors import TakebackError
    from takeback.hooks import troubles

    what = str(problem) if isinstance(problem, TakebackError) else repr(problem)
    home = environment.default_home()
    is_new = troubles.note(home, time.time_ns(), call.agent, call.name, call.session, what)
    if not is_new:
        return Answer()
    return Answer(
        to_user=f"Takeback does not cover this turn: {what} (`takeback doctor` tells more)"
    )
