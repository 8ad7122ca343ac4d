"""Find the checkpoint that somebody means."""

from takeback.errors import UnknownReferenceError
from takeback.model import ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.store.ledger import Ledger
    from takeback.store.rows import CheckpointRow


def resolve(ledger: "Ledger", ref: str) -> "CheckpointRow":
    """The checkpoint that a reference means: `@`, `@~N`, an id or its unique beginning."""
    if ref == "@" or ref.startswith("@~"):
        back = ref[2:] or "0"
        known = back.isascii() and back.isdigit() and len(back) < 10
        row = ledger.newest(int(back)) if known else None
        if row is not None:
            return row
    elif ids.is_prefix(ref):
        rows = ledger.with_prefix(ref)
        if len(rows) == 1:
            return rows[0]
        if rows:
            listed = ", ".join(f"`{row.id}`" for row in rows)
            raise UnknownReferenceError(
                f"`{ref}` is the beginning of several checkpoints",
                hint=f"one of these was meant: {listed}",
            )
    raise UnknownReferenceError(
        f"no checkpoint is called `{ref}`",
        hint="`@` is the newest, `@~1` the one before; `takeback` shows ids",
    )
