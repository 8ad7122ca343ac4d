"""After a restore only the folders that it changed are looked at again."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import takeback
from chance import examples
from stat_model import change, changes, expected_reports, make, record_tree, trees
from takeback.disk import operations
from takeback.worktree.stat_cache import reports


@settings(deadline=None, max_examples=examples(40))
@given(tree=trees, edits=changes, chosen=st.sets(st.integers(0, 15), max_size=4))
def test_a_limited_look_reports_the_folders_it_is_limited_to(
    tree: list[tuple[tuple[bytes, ...], str]],
    edits: list[tuple[str, int, bytes]],
    chosen: set[int],
) -> None:
    """It says of them and of those above them what a look at everything does, and no more."""
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        for parts, kind in tree:
            make(os.path.join(root, *parts), kind)
        records, known = record_tree(root)
        for verb, number, name in edits:
            change(root, verb, number, name)
        wanted = [each for number, each in enumerate(known) if number in chosen]
        within = [os.path.relpath(each.path, root) for each in wanted if each.ancestors]
        offsets = {0, *(each.offset for each in wanted)}
        offsets |= {offset for each in wanted for offset in each.ancestors}
        expected = [report for report in expected_reports(known) if report[0] in offsets]
        root_fd = os.open(root, os.O_RDONLY)
        try:
            assert reports(records, root_fd, [*within, b"no such/folder"]) == expected
            assert reports(records, root_fd, None) == expected_reports(known)
        finally:
            os.close(root_fd)


def test_what_somebody_changes_elsewhere_is_not_of_the_restore(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A save in another folder while a restore runs is yours, and in the checkpoint after it."""
    for name in ("here/file", "there/file"):
        path = tree / name
        path.parent.mkdir()
        path.write_text("old")
    with takeback.open(tree, home=home) as project:
        with project.session("test") as session, session.turn("edit"):
            (tree / "here/file").write_text("by the agent")

        def save(step: str, _: tuple[object, ...]) -> None:
            if step == "exchange":
                (tree / "there/file").write_text("by a person")

        monkeypatch.setattr(operations, "hook", save)
        report = project.undo()
        monkeypatch.setattr(operations, "hook", None)
        after = project.checkpoint()
        assert after.new
        query = "SELECT path, who FROM deltas d JOIN checkpoints c ON c.number = d.checkpoint"
        rows = {
            id: project.workspace.ledger._reader.rows(f"{query} WHERE c.id = ?", (id,))
            for id in (report.after, after.id)
        }
    assert rows == {report.after: [(b"here/file", "restore")], after.id: [(b"there/file", "you")]}
    assert (tree / "here/file").read_text() == "old"
    assert (tree / "there/file").read_text() == "by a person"
