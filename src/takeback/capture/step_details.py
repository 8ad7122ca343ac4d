"""The details of steps: what tools were given and what they said, masked before it is stored."""

import os
import stat

from takeback.ledger.log.events import pack_facts
from takeback.model import tools, words
from takeback.model.text import secrets
from takeback.objects.git_objects import BLOB, object_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from takeback.capture.workspace import Workspace
    from takeback.model.text.step_text import StepText

    Said = dict[str, Any]

_MOST_FILES = 200
_LARGEST = 1 << 18
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def of_input(
    work: "Workspace", tool: str, kind: str, given: "Mapping[str, object]"
) -> "tuple[str, Said | None]":
    """One line about a step, and the detail of the event that begins it.

    Long contents that an edit tool writes are told as the ids that they will have; the end of the
    step stores them.
    """
    if not given:
        return tools.summary_of(tool, given), None
    from takeback.model.text import step_text

    masked = text_of(work).masked_input(given, _id_of if kind == words.EDIT else None)
    detail = {"input": step_text.cut_input(masked)} if work.rules.records_output() else None
    return tools.summary_of(tool, masked), detail


def of_output(
    work: "Workspace", kind: str, given: "Mapping[str, object] | None", output: str
) -> "tuple[Said | None, Said]":
    """The detail of an event that ends a step, and what its envelope names.

    With the lock held, and after the look at the tree: what that captured is stored already.
    """
    edits = given if kind == words.EDIT else None
    if not (output or edits) or not work.rules.records_output():
        return None, {}
    text = text_of(work)
    detail = {"output": text.output(output)} if output else None
    return detail, _stored(work, text, edits) if edits else {}


def _stored(work: "Workspace", text: "StepText", given: "Mapping[str, object]") -> "Said":
    """Store the long contents in an input that no checkpoint holds; what an envelope names."""
    writer = work.store.pack_writer()
    ids: list[str] = []

    def store(content: bytes) -> str:
        ids.append(writer.add(BLOB, content).hex())
        return ids[-1]

    try:
        text.masked_input(given, store)
        packs = pack_facts(writer.finish())
    except BaseException:
        writer.abort()
        raise
    return {"packs": packs, "objects": ids} if ids else {}


def _id_of(content: bytes) -> str:
    return object_id(BLOB, content).hex()


def text_of(work: "Workspace") -> "StepText":
    """What makes recorded text: without the values of secrets."""
    from takeback.model.text.step_text import StepText

    return StepText(_values(work), work.rules.secret_names())


def _values(work: "Workspace") -> "Iterator[str]":
    """The values of the secret files that were captured, as they are now."""
    names = work.rules.secret_names()
    for path in work.ledger.care.secret_files(_MOST_FILES):
        how = secrets.how_secret(path)
        if how == secrets.PLAIN:
            how = secrets.added(path, names)
        if how != secrets.PLAIN:
            yield from secrets.values_in(_read(os.path.join(work.root, path)), how)


def _read(path: bytes) -> bytes:
    try:
        fd = os.open(path, _READ)
    except OSError:
        return b""
    try:
        return os.read(fd, _LARGEST) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(fd)
