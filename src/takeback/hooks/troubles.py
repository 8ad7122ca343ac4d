"""What went wrong in hooks: a short log that `takeback doctor` shows, and whom it was told.

An agent must never be stopped by us, so nothing here raises. The log is bounded: when it is full,
its older half goes.
"""

import os

from takeback.store import fsops, home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.model.jsontext import Json

_NAME = b"/hooks.log"
_MOST = 64 * 1024
_LONGEST = 2000


def note(folder: bytes, at: int, agent: str, event: str, session: str, problem: str) -> bool:
    """Add a line; whether this conversation hears of it for the first time."""
    from takeback.model import jsontext

    line: dict[str, Json] = {
        "at": at // 1_000_000_000,
        "agent": agent[:100],
        "event": event[:100],
        "session": session[:200],
        "problem": problem[:_LONGEST],
    }
    try:
        known = read(folder)
        is_new = not any(each.get("session") == line["session"] for each in known)
        added = jsontext.dumps(line).encode() + b"\n"
        _append(folder + _NAME, added)
    except Exception:  # noqa: BLE001 -- there is nobody left to tell
        return True
    return is_new


def read(folder: bytes) -> "list[dict[str, Json]]":
    """What went wrong, the oldest first; lines that cannot be read are passed over."""
    from takeback.model import jsontext

    found = []
    for line in home.read_small(folder + _NAME).splitlines():
        try:
            told = jsontext.loads(line.decode())
        except (ValueError, TypeError, RecursionError):
            continue
        if isinstance(told, dict):
            found.append(told)
    return found


def _append(path: bytes, line: bytes) -> None:
    kept = home.read_small(path)
    if len(kept) + len(line) > _MOST:
        kept = kept[len(kept) // 2 :].partition(b"\n")[2]
        home.replace_file(path, kept, line, durable=False)
        return
    fd = fsops.open_or_create(path)
    try:
        fsops.write_at(fd, line, os.fstat(fd).st_size)
    finally:
        os.close(fd)
