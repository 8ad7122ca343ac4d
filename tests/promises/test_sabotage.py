"""Has the suite teeth? Each rule of the protocol is broken in turn, and its own test must fail.

What is broken is one function of the product; the tests are those of `test_restore_rules`, which
pass as long as nothing is. Only rules that need a power cut are missing here.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from takeback.capture.workspace import Workspace
from takeback.disk import descent, operations
from takeback.disk.lock import Lock
from takeback.errors import TakebackError
from takeback.ledger import journal
from takeback.ledger.journal import Journals
from takeback.model.plan import Preview
from takeback.model.tree import Difference, Op
from takeback.objects.object_store import ObjectStore
from takeback.undo import apply as restore
from takeback.undo import rescue
from takeback.undo.plans.draft import Draft
from takeback.undo.plans.wishes import Wish
from takeback.undo.restorer import Restorer
from takeback.worktree import stage
from takeback.worktree.stage import Stage
from takeback.worktree.swap import PathSwapper
from tests.promises import test_restore_rules as rules

if TYPE_CHECKING:
    from takeback.model.tree import Entry
    from takeback.undo.plans.wishes import FolderAt

Break = Callable[[pytest.MonkeyPatch], None]


class Sabotage(NamedTuple):
    """One rule, how to break it, and who notices."""

    rule: str
    break_it: Break
    noticed_by: Callable[..., None]


# -- journal and recovery --------------------------------------------------------------------


def _journal_after_apply(patch: pytest.MonkeyPatch) -> None:
    write, apply = Journals.write, PathSwapper.apply
    waiting: list[tuple[object, ...]] = []

    def late(self: PathSwapper, staged: dict[bytes, bytes], *, forward: bool) -> None:
        apply(self, staged, forward=forward)
        while waiting:
            write(*waiting.pop())  # type: ignore[arg-type]

    patch.setattr(Journals, "write", lambda *row: waiting.append(row))
    patch.setattr(PathSwapper, "apply", late)


def _journal_gone_before_the_event(patch: pytest.MonkeyPatch) -> None:
    into_store = rescue.into_store

    def early(store, restoring, row, now):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        store.ledger.record(closing=row.id)
        return into_store(store, restoring, row, now)

    patch.setattr(rescue, "into_store", early)


def _no_recovery_on_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Workspace, "recover_early", lambda _self: None)


def _recovers_in_silence(patch: pytest.MonkeyPatch) -> None:
    recover = Restorer.recover

    def silently(self: Restorer, *, died: bool) -> list[str]:
        recover(self, died=died)
        return []

    patch.setattr(Restorer, "recover", silently)


def _errors_are_left_to_recovery(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(restore, "_bring_back", lambda *_: {})


def _no_verify(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PathSwapper, "unfinished", lambda _self, **_: [])


# -- nothing is lost -------------------------------------------------------------------------


def _no_safety_checkpoint(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Restorer, "_safety", lambda self, **_: self._ledger.checkpoints.newest())
    patch.setattr(PathSwapper, "changed", lambda _self: [])


def _displaced_is_not_hashed(patch: pytest.MonkeyPatch) -> None:
    def swap(self: PathSwapper, op: Op, name: bytes, _seen: set[bytes]) -> None:
        self._swap(op, name)

    patch.setattr(PathSwapper, "_exchange", swap)


def _rename_over(patch: pytest.MonkeyPatch) -> None:
    def over(source_dir: int, source: bytes, target_dir: int, target: bytes) -> None:
        operations._announce("exchange", source, target)
        os.rename(source, target, src_dir_fd=source_dir, dst_dir_fd=target_dir)

    patch.setattr(operations, "exchange", over)


def _unlink_for_quarantine(patch: pytest.MonkeyPatch) -> None:
    move = operations.move

    def unlink(source_dir: int, source: bytes, target_dir: int, target: bytes) -> None:
        if target.startswith(b"q"):
            operations._announce("move", source, target)
            os.unlink(source, dir_fd=source_dir)
        else:
            move(source_dir, source, target_dir, target)

    patch.setattr(operations, "move", unlink)


def _stamps_are_believed(patch: pytest.MonkeyPatch) -> None:
    make, hash_of = Op.__init__, stage._hash_of
    known: dict[tuple[int, int], bytes] = {}

    def remember(self: Op, path: bytes, before: "object", after: "object") -> None:
        make(self, path, before, after)  # type: ignore[arg-type]
        if self.before is not None:
            known[self.before.size, self.before.mtime] = self.before.strong

    def believe(dir_fd: int, name: bytes, mode: int) -> bytes:
        found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        return known.get((found.st_size, found.st_mtime_ns)) or hash_of(dir_fd, name, mode)

    patch.setattr(Op, "__init__", remember)
    patch.setattr(stage, "_hash_of", believe)


def _late_writers_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stage, "is_held_open", lambda _file: False)


def _unknown_is_absent(patch: pytest.MonkeyPatch) -> None:
    exactly = Draft.exactly

    def away_with_it(self: Draft, found: Difference, folder_at: "FolderAt") -> None:
        if found.after is not None and found.after.reason:
            self.wishes[found.raw_path] = Wish(None, folder_at)
        else:
            exactly(self, found, folder_at)

    patch.setattr(Draft, "exactly", away_with_it)


def _folders_are_renamed(patch: pytest.MonkeyPatch) -> None:
    def move_away(self: PathSwapper, op: Op, _other: object) -> None:
        operations._announce("rmdir", op.name)
        operations.move(self._parent(op), op.name, self.stage.fd, b"folder")

    patch.setattr(PathSwapper, "_remove_folder", move_away)


# -- nothing is in between -------------------------------------------------------------------


def _overwrite_in_place(patch: pytest.MonkeyPatch) -> None:
    def overwrite(self: PathSwapper, op: Op, name: bytes, _seen: set[bytes]) -> None:
        file = os.open(op.name, os.O_WRONLY | os.O_TRUNC, dir_fd=self._parent(op))
        for piece in self.stage.read(name):
            operations.write(file, piece)
        os.close(file)

    patch.setattr(PathSwapper, "_exchange", overwrite)


def _folders_are_shut_first(patch: pytest.MonkeyPatch) -> None:
    make_folder = PathSwapper._make_folder

    def make_and_shut(self: PathSwapper, op: Op, forward: bool) -> None:
        make_folder(self, op, forward)
        self._set_folder_mode(op, True)

    patch.setattr(PathSwapper, "_make_folder", make_and_shut)


def _shut_folders_stay_shut(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PathSwapper, "_open_up", lambda *_: None)


def _no_lock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(operations, "lock", lambda _fd: True)


def _states_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Preview, "moved", lambda *_: [])


# -- nobody else gets in ---------------------------------------------------------------------


def _links_are_followed_at_the_end(patch: pytest.MonkeyPatch) -> None:
    def follow(self: PathSwapper, op: Op, wanted: "Entry") -> None:
        operations._announce("chmod_file", op.name, wanted.mode)
        os.chmod(op.name, wanted.mode & 0o7777, dir_fd=self._parent(op))

    patch.setattr(PathSwapper, "_set_mode", follow)


def _links_are_followed_on_the_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(descent, "_FLAGS", descent._FLAGS & ~os.O_NOFOLLOW)


def _staged_for_all_to_read(patch: pytest.MonkeyPatch) -> None:
    create = operations.create

    def open_to_all(path: bytes, *, dir_fd: int | None = None, mode: int = 0o644) -> int:
        return create(path, dir_fd=dir_fd, mode=mode | 0o044)

    patch.setattr(operations, "create", open_to_all)


def _journal_is_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(journal, "_path", lambda text: text.encode("utf-8", "surrogateescape"))


# -- in the right order ----------------------------------------------------------------------


def _staged_without_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Stage, "sync", lambda _self: None)


def _disk_is_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(operations, "syncfs", lambda _fd: None)


def _modes_are_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PathSwapper, "_sync_mode", lambda _self, _fd: None)


def _the_mark_is_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lock, "make_durable", lambda _self: None)


def _torn_is_whole(patch: pytest.MonkeyPatch) -> None:
    number = stage._number
    patch.setattr(stage, "_number", lambda name, _letters=b"": number(name, b"nqrw"))


def _objects_are_not_verified(patch: pytest.MonkeyPatch) -> None:
    def unchecked(self, entry):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        try:
            return content(self, entry)
        except Exception:
            return b"?"

    content = ObjectStore.content
    patch.setattr(ObjectStore, "content", unchecked)


SABOTAGE = (
    Sabotage("journal first", _journal_after_apply,
             rules.test_the_journal_comes_before_the_first_change),
    Sabotage("one commit", _journal_gone_before_the_event,
             rules.test_the_journal_goes_with_the_event),
    Sabotage("recovery on open", _no_recovery_on_open, rules.test_opening_recovers),
    Sabotage("recovery is told", _recovers_in_silence, rules.test_opening_recovers),
    Sabotage("errors are taken back", _errors_are_left_to_recovery,
             rules.test_an_error_is_taken_back_at_once),
    Sabotage("verified", _no_verify, rules.test_a_restore_is_verified),
    Sabotage("safety checkpoint", _no_safety_checkpoint,
             rules.test_unsaved_work_is_captured_first),
    Sabotage("displaced is hashed", _displaced_is_not_hashed,
             rules.test_a_save_before_an_exchange_stays),
    Sabotage("exchange", _rename_over, rules.test_a_save_before_an_exchange_stays),
    Sabotage("quarantine", _unlink_for_quarantine, rules.test_a_save_before_a_removal_stays),
    Sabotage("no stamps", _stamps_are_believed, rules.test_stamps_are_not_believed),
    Sabotage("late writers", _late_writers_are_forgotten, rules.test_a_late_writer_is_heard),
    Sabotage("unknown is not absent", _unknown_is_absent, rules.test_unknown_is_not_absent),
    Sabotage("no folder is renamed", _folders_are_renamed, rules.test_folders_are_never_renamed),
    Sabotage("staged", _overwrite_in_place, rules.test_every_file_is_whole_at_each_step),
    Sabotage("folder modes last", _folders_are_shut_first, rules.test_folders_are_shut_last),
    Sabotage("folders are opened", _shut_folders_stay_shut, rules.test_folders_are_shut_last),
    Sabotage("lock", _no_lock, rules.test_only_one_restore_at_a_time),
    Sabotage(
        "plan's states", _states_are_not_compared, rules.test_a_plan_for_another_state_is_refused
    ),
    Sabotage("no link at the end", _links_are_followed_at_the_end,
             rules.test_no_link_is_followed_at_a_path),
    Sabotage("no link on the way", _links_are_followed_on_the_way,
             rules.test_no_link_is_followed_on_the_way),
    Sabotage("private", _staged_for_all_to_read, rules.test_what_is_staged_is_private),
    Sabotage("journal is checked", _journal_is_believed,
             rules.test_a_forged_journal_leads_nowhere),
    Sabotage("synced", _staged_without_sync,
             rules.test_what_is_staged_is_synced_before_the_journal),
    Sabotage("synced, if many", _disk_is_not_synced,
             rules.test_what_is_staged_is_synced_before_the_journal),
    Sabotage("modes are synced", _modes_are_not_synced,
             rules.test_modes_are_synced_before_the_event),
    Sabotage("the mark is synced", _the_mark_is_not_synced,
             rules.test_a_power_cut_leaves_nothing_unmarked),
    Sabotage("torn is not saved", _torn_is_whole,
             rules.test_what_recovery_wrote_is_nobodys_save),
    Sabotage("objects are checked", _objects_are_not_verified,
             rules.test_damage_is_found_before_the_first_change),
)  # fmt: skip


@pytest.mark.parametrize("sabotage", SABOTAGE, ids=lambda case: case.break_it.__name__.strip("_"))
def test_sabotage_is_noticed(
    sabotage: Sabotage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one rule broken, the test of that rule fails."""
    takes_folder = "tmp_path" in sabotage.noticed_by.__annotations__
    sabotage.break_it(monkeypatch)
    # Not just any exception: a sabotage that cannot even run would prove nothing.
    with pytest.raises((AssertionError, pytest.fail.Exception, TakebackError)):
        sabotage.noticed_by(*([tmp_path] if takes_folder else []))
