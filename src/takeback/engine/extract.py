"""Write a checkpoint's tree into a folder of its own."""

from takeback.engine import owners
from takeback.engine.kept import Reading
from takeback.store.worktree import Extraction, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.ports import Progress
    from takeback.store.rows import CheckpointRow
    from takeback.store.store import Store


def extract(
    store: "Store",
    row: "CheckpointRow",
    directory: bytes,
    progress: "Progress | None" = None,
    told: "Callable[[str], None] | None" = None,
) -> int:
    """Write the tree of a checkpoint into a new or empty folder; return how many entries."""
    reading = Reading(store.ledger, row)
    target = Target(directory)
    objects = store.reader()
    extraction = Extraction(target.begin(), objects, lambda: owners.captured(store.ledger))
    try:
        done = 0
        with reading:
            for path, manifest in objects.walk(row.root, row.tree):
                way = tuple(path.split(b"/")) if path else ()
                done += extraction.write_folder(way, manifest)
                if progress is not None:
                    progress("writing", done, row.entries)
        extraction.close_folders()
        extraction.close()
        target.finish()
    except BaseException:
        extraction.close()
        target.abandon()
        raise
    finally:
        objects.close()
    if told is not None:
        for path in extraction.dropped:
            told(owners.dropped(path))
    return done
