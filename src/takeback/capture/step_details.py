"""The details of steps: what tools were given and what they said, masked before it is stored."""

import os
import stat

from takeback.errors import TakebackError
from takeback.ledger.log.events import pack_facts
from takeback.model import tools, words
from takeback.model.text import secrets
from takeback.model.tree import REGULAR
from takeback.objects.git_objects import BLOB, object_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from takeback.capture.workspace import Workspace
    from takeback.ledger.steps import StepRow
    from takeback.model.text.step_text import StepText

    Said = dict[str, Any]

_MOST_FILES, _MOST_PATHS = 200, 2000
_LARGEST = 1 << 18
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def of_input(
    work: "Workspace",
    tool: str,
    kind: str,
    given: "Mapping[str, object]",
    before: "int | None" = None,
) -> "tuple[str, Said | None]":
    """One line about a step, and the detail of the event that begins it.

    `before` is the checkpoint at which its turn began. Long contents that an edit tool writes are
    told as the ids that they will have; the end of the step stores them.
    """
    if not given:
        return tools.summary_of(tool, given), None
    from takeback.model.text import step_text

    _, paths = tools.claim_of(tool, given, kind)
    text = text_of(work, before, paths)
    masked = text.masked_input(given, _id_of if kind == words.EDIT else None, paths)
    detail = {"input": step_text.cut_input(masked)} if work.rules.records_output() else None
    return tools.summary_of(tool, masked), detail


def of_output(
    work: "Workspace",
    step: "StepRow",
    given: "Mapping[str, object] | None",
    output: str,
) -> "tuple[Said | None, Said]":
    """The detail of an event that ends a step, and what its envelope names.

    With the lock held, and after the look at the tree: what that captured is stored already.
    """
    edits = given if step.kind == words.EDIT else None
    if not (output or edits) or not work.rules.records_output():
        return None, {}
    _, paths = tools.claim_of(step.tool, given or {}, step.kind)
    turn = work.ledger.turns.numbered(step.turn)
    text = text_of(work, turn.before if turn else None, (*paths, *step.names))
    detail = {"output": text.output(output)} if output else None
    return detail, _stored(work, text, edits, paths) if edits else {}


def _stored(
    work: "Workspace",
    text: "StepText",
    given: "Mapping[str, object]",
    paths: "tuple[bytes, ...]",
) -> "Said":
    """Store the long contents in an input that no checkpoint holds; what an envelope names."""
    writer = work.store.pack_writer()
    ids: list[str] = []

    def store(content: bytes) -> str:
        ids.append(writer.add(BLOB, content).hex())
        return ids[-1]

    try:
        text.masked_input(given, store, paths)
        packs = pack_facts(writer.finish())
    except BaseException:
        writer.abort()
        raise
    return {"packs": packs, "objects": ids} if ids else {}


def _id_of(content: bytes) -> str:
    return object_id(BLOB, content).hex()


def text_of(
    work: "Workspace", before: "int | None" = None, paths: "Iterable[bytes]" = ()
) -> "StepText":
    """What makes recorded text: without the values of secrets.

    These are the values of the secret files that were captured, and of those that a call names in
    `paths`: as they are now, and as they were at the checkpoint `before`.
    """
    from takeback.model.text.step_text import StepText

    return StepText(_values(work, before, paths), work.rules.secret_names())


def _values(work: "Workspace", before: "int | None", paths: "Iterable[bytes]") -> "Iterator[str]":
    names, count = work.rules.secret_names(), 0
    captured = work.ledger.care.secret_files(_MOST_PATHS)
    # What is nearer to the top is more likely in use; a folder of tests may hold hundreds of keys.
    for path in (*paths, *sorted(captured, key=_depth)):
        how = _how_secret(path, names)
        data = _read(os.path.join(work.root, path)) if how != secrets.PLAIN else b""
        if data:
            yield from _forms_in(data, how)
            count += 1
        if count == _MOST_FILES:
            break
    if before is None:
        return
    for path in work.ledger.care.secrets_changed_since(before):
        yield from _forms_in(_read_at(work, before, path), _how_secret(path, names))


def _forms_in(data: bytes, how: str) -> "Iterator[str]":
    for value in secrets.values_in(data, how):
        # A key has many lines, and stands nowhere in another form.
        yield from (value,) if how == secrets.WHOLE else secrets.forms_of(value)


def _how_secret(path: bytes, names: "tuple[str, ...]") -> str:
    how = secrets.how_secret(path)
    return secrets.added(path, names) if how == secrets.PLAIN else how


def _depth(path: bytes) -> int:
    return path.count(b"/")


def _read_at(work: "Workspace", checkpoint: int, path: bytes) -> bytes:
    """What the file held at a checkpoint; nothing if that is not known."""
    from takeback.capture.changes import Trees

    try:
        row, trees = work.ledger.checkpoints.numbered(checkpoint), Trees(work.store.objects)
        entry = trees.find(row, path) if row is not None else None
        if entry is None or entry.reason or entry.kind != REGULAR or entry.size > _LARGEST:
            return b""
        return trees.content(entry)
    except TakebackError:
        return b""


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
