"""What the user may not change is found before anything is changed."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cases import Work
from disturbed import as_plain_user, hooked
from takeback.disk import operations
from takeback.errors import BlockedError


@contextmanager
def _marked(place: Path, mark: str) -> Iterator[None]:
    """Let a file or folder be marked for a while, if that can be done here."""
    chattr = shutil.which("chattr")
    tried = chattr and subprocess.run([chattr, f"+{mark}", place], check=False, capture_output=True)
    if not chattr or not tried or tried.returncode:
        pytest.skip("files cannot be marked here")
    try:
        yield
    finally:
        subprocess.run([chattr, f"-{mark}", place], check=True)


@pytest.mark.parametrize(("name", "mark"), [("d/a", "i"), ("d/a", "a"), ("d", "i"), (".", "a")])
def test_what_nobody_may_change_is_seen_before(work: Work, name: str, mark: str) -> None:
    """A file or folder that `chattr` froze is named with the way out before anything is staged."""
    work.write(d__a="0", b="0")
    with work.turn():
        work.write(d__a="1", b="1")
    steps: list[str] = []
    with _marked(work.tree / name, mark):
        operations.hook = lambda step, _: steps.append(step)
        try:
            with pytest.raises(BlockedError, match=f"`{name}`") as told:
                work.undo()
        finally:
            operations.hook = None
        assert "chattr -ia" in told.value.hint
        assert "mkdir" not in steps, "something was staged"
        if name != ".":
            work.undo("b")
            assert (work.text("b"), work.text("d/a")) == ("0", "1")


def test_files_of_others_in_a_sticky_folder_are_seen_before() -> None:
    """What only its owner may move is named before anything is touched."""

    def prepare(tree: Path) -> None:
        (tree / "d").mkdir()
        (tree / "d").chmod(0o1777)
        (tree / "d" / "a").write_text("0")
        (tree / "d" / "a").chmod(0o666)

    def play(work: Work) -> None:
        with work.turn():
            work.write(d__a="1", b="1")
        steps: list[str] = []
        with hooked(lambda step, _: steps.append(step)), pytest.raises(BlockedError, match="d/a"):
            work.undo()
        assert "create" not in steps, "something was staged"
        work.undo("b")
        assert work.has_none("b")

    as_plain_user(play, prepare)


def test_the_mode_of_a_file_of_others_is_seen_before() -> None:
    """A mode that only the owner may change is named before anything is touched."""

    def play(work: Work) -> None:
        first = work.checkpoint()
        (work.tree / "open").rename(work.tree / "other")
        (work.tree / "shut").rename(work.tree / "open")
        with pytest.raises(BlockedError, match="`open`"):
            work.rollback(first)
        assert work.mode("open") == 0o644

    def prepare(tree: Path) -> None:
        for name, mode in (("open", 0o666), ("shut", 0o644)):
            (tree / name).write_text("the same")
            (tree / name).chmod(mode)

    as_plain_user(play, prepare)


def test_a_closed_root_is_told_with_what_to_do() -> None:
    """In a root that forbids to make anything in it nothing is done, and the way out is told."""

    def play(work: Work) -> None:
        work.write(d__a="0")
        work.tree.chmod(0o555)
        with work.turn():
            work.write(d__a="1")
        with pytest.raises(BlockedError) as told:
            work.undo()
        assert "chmod u+wx" in told.value.hint
        work.tree.chmod(0o755)
        work.undo()
        assert work.text("d/a") == "0"

    as_plain_user(play, lambda _: None)
