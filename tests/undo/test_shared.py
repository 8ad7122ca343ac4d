"""What two sessions share is said, with whom, and goes back when somebody asks for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
from history import Said, command
from takeback.session import Turn


class Overlap:
    """An earlier turn of its own, then two agents whose shells overlap."""

    def __init__(self, project: takeback.Project, tree: Path) -> None:
        self.project, self.tree = project, tree
        (tree / "x").write_text("old\n")
        project.checkpoint()
        with project.session("codex").turn("Earlier") as self.earlier:
            (tree / "c").write_text("c\n")
        self.one, self.other = project.session("claude"), project.session("codex")
        self.a = self.one.turn("Task of A", whole=False)
        self.b = self.other.turn("Task of B", whole=False)

    def share(self, *more: Turn) -> None:
        """Change files while a shell of each runs; then all of them stop."""
        turns = (self.a, self.b, *more)
        steps = [turn.step("Bash", {"command": "make"}) for turn in turns]
        (self.tree / "x").write_text("new\n")
        (self.tree / "made").write_text("made\n")
        for each in (*steps, *turns):
            each.end()

    def own(self, turn: Turn, name: str) -> None:
        """One turn alone makes a file."""
        with turn.step("Write", {"file_path": name}):
            (self.tree / name).write_text(f"{name}\n")

    def call(self, *words: str) -> Said:
        """A command of the user."""
        return command(self.tree, *words)

    @property
    def files(self) -> dict[str, str]:
        """What is in the tree."""
        return {file.name: file.read_text() for file in sorted(self.tree.iterdir())}


BEFORE = {"c": "c\n", "x": "old\n"}
AFTER = {"c": "c\n", "made": "made\n", "x": "new\n"}


@pytest.fixture
def two(tree: Path, home: Path) -> Iterator[Overlap]:
    """Two agents at work."""
    with takeback.open(tree, home=home) as project:
        yield Overlap(project, tree)


def test_what_is_shared_is_not_passed_over(two: Overlap) -> None:
    """Undo names whom a turn shares its changes with, and takes back nothing instead of it."""
    two.share()
    for words in ((), (two.b.id,), ("--session", two.other.id)):
        said = two.call("undo", *words)
        assert (said.code, said.out) == (3, "")
        assert 'what "Task of B" did is shared with "Task of A" (claude)' in said.err
        assert f"`takeback undo {two.b.id[:8]} --shared`" in said.err
        assert f"`takeback undo {two.b.id[:8]} {two.a.id[:8]}`" in said.err
    assert two.files == AFTER
    with pytest.raises(takeback.DecisionNeededError):
        two.other.undo()


def test_a_shared_turn_is_what_undo_means(two: Overlap) -> None:
    """The status line names the turn that a bare undo asks about, and so does `takeback`."""
    two.share()
    undo = two.project.now().undo
    assert undo is not None
    assert two.project.undoable()[0] == undo.title == "Task of B"
    assert two.project.undoable(two.one.id)[0] == "Task of A"
    assert 'undo: "Task of B"' in two.call("statusline").out


def test_shared_changes_go_back_and_come_again(two: Overlap) -> None:
    """`--shared` takes them; the named inverse reverses just that, and so does its own inverse."""
    two.share()
    said = two.call("undo", "--shared")
    assert (said.code, two.files) == (0, BEFORE)
    assert said.err.splitlines()[-1] == "`takeback redo` puts it back"
    assert '2 shared with "Task of B" (codex), taken back since' in two.call("log").out
    said = two.call("redo")
    assert (said.code, two.files) == (0, AFTER)
    inverse = f"takeback undo {two.b.id[:8]} --shared"
    assert said.err.splitlines()[-1] == f"`{inverse}` takes it back again"
    assert two.call(*inverse.split()[1:]).code == 0
    assert two.files == BEFORE
    assert "Earlier" in two.call("undo").out
    assert two.files == {"x": "old\n"}


def test_two_turns_take_what_only_they_share(two: Overlap) -> None:
    """`undo A B` takes what these two share; a third one that shares it keeps it there."""
    two.share()
    said = two.call("undo", two.a.id, two.b.id, "--yes")
    assert (said.code, two.files) == (0, BEFORE)
    assert two.call("redo").code == 0
    assert two.files == AFTER
    assert two.call("undo", two.b.id, two.a.id, "--yes").code == 0
    for turn in (two.a, two.b):
        assert two.call("redo", turn.id, "--yes").code == 0
    assert two.files == AFTER


def test_the_command_that_a_redo_of_one_names_reverses_it(two: Overlap) -> None:
    """The last of two turns is put back, with what both share: an undo of it would leave that."""
    two.own(two.b, "own")
    two.share()
    assert two.call("undo", two.a.id, two.b.id, "--yes").code == 0
    assert two.call("redo", two.a.id, "--yes").code == 0
    was = two.files
    said = two.call("redo", two.b.id, "--yes")
    assert two.files == AFTER | {"own": "own\n"}
    inverse = said.err.splitlines()[-1].split("`")[1]
    assert two.call(*inverse.split()[1:], "--yes").code == 0
    assert two.files == was


def test_what_a_third_one_shares_stays(two: Overlap) -> None:
    """Two of three cannot take what all three share."""
    third = two.project.session("gemini").turn("Task of C", whole=False)
    two.share(third)
    said = two.call("undo", two.a.id, two.b.id, "--yes")
    assert (said.code, two.files) == (3, AFTER)
    assert 'shared with "Task of C" (gemini)' in said.err
    assert two.call("undo", two.a.id, two.b.id, third.id, "--yes").code == 0
    assert two.files == BEFORE


def test_what_is_left_of_an_undone_turn_can_be_taken(two: Overlap) -> None:
    """An undo leaves what is shared and names the command that takes it; that works, and back."""
    two.own(two.b, "mine")
    two.share()
    said = two.call("undo")
    assert (said.code, two.files) == (0, AFTER)
    assert 'x     shared with "Task of A" (claude), so it is kept' in said.out
    rest = f"takeback undo {two.b.id[:8]} --shared"
    assert f"`{rest}` also takes back what is shared" in said.err
    assert two.call(*rest.split()[1:], "--yes").code == 0
    assert two.files == BEFORE
    assert two.call("redo").code == 0
    assert two.files == AFTER
    assert two.call("redo").code == 0
    assert two.files == {**AFTER, "mine": "mine\n"}


def test_nothing_but_own_work_goes_back_after_a_redo(two: Overlap) -> None:
    """What came back with `--shared` is shared as before."""
    two.own(two.b, "mine")
    two.share()
    assert two.call("undo", "--shared").code == 0
    assert two.files == BEFORE
    assert two.call("redo").code == 0
    assert two.call("undo").code == 0
    assert two.files == AFTER


def test_the_tables_follow_from_the_log(two: Overlap) -> None:
    """What was taken along is in the event, so tables made again say the same."""
    two.share()
    assert two.call("undo", "--shared").code == 0
    assert two.call("verify").code == 0
    assert two.call("doctor", "--rebuild").code == 0
    assert "taken back since" in two.call("log").out


def code(**lines: str) -> str:
    """A file with some lines of their own: `_3="x"`."""
    found = [lines.get(f"_{number}", f"line {number}") for number in range(20)]
    return "".join(f"{line}\n" for line in found)


@pytest.fixture
def contested(two: Overlap) -> Overlap:
    """B changed line 10 of a file, then both changed 2 and 17, and you changed 2 since."""
    file = two.tree / "x"
    file.write_text(code())
    with two.b.step("Edit", {"file_path": "x"}):
        file.write_text(code(_10="B"))
    steps = [turn.step("Bash", {"command": "make"}) for turn in (two.a, two.b)]
    file.write_text(code(_2="both", _10="B", _17="both"))
    for each in (*steps, two.a, two.b):
        each.end()
    file.write_text(code(_2="mine", _10="B", _17="both"))
    return two


@pytest.mark.parametrize("who", ["both", "one"])
def test_what_is_left_of_shared_changes_is_taken_later(contested: Overlap, who: str) -> None:
    """A hunk that is skipped leaves all turns partly undone; the next undo takes it."""
    two, file = contested, contested.tree / "x"
    words = (two.a.id, two.b.id) if who == "both" else (two.b.id, "--shared")
    said = two.call("undo", *words, "--skip-conflicts", "--yes")
    assert (said.code, file.read_text()) == (0, code(_2="mine"))
    assert "partly undone" in said.err
    assert two.call("log").out.count("partly undone") == len(words) - (who == "one")
    assert two.call("undo", *words, "--yes").code == 3
    file.write_text(code(_2="both"))
    assert two.call("undo", *words, "--yes").code == 0
    assert file.read_text() == code()
    assert two.call("redo", "--yes").code == 0
    assert file.read_text() == code(_2="both")
    assert two.call("redo", "--yes").code == 0
    assert file.read_text() == code(_2="both", _10="B", _17="both")
    assert two.call("undo", *words, "--yes").code == 0
    assert file.read_text() == code()


def test_shared_changes_that_were_kept_can_be_decided_anew(contested: Overlap) -> None:
    """What somebody decided to keep is settled, until an explicit decision."""
    two, file = contested, contested.tree / "x"
    words = ("undo", two.b.id, "--shared", "--yes")
    assert two.call(*words, "--keep-mine").code == 0
    assert file.read_text() == code(_2="mine")
    assert "undone already" in two.call(*words).err
    assert two.call(*words, "--take-back").code == 0
    assert file.read_text() == code()
    assert two.call("redo", "--yes").code == 0
    assert file.read_text() == code(_2="mine")
    assert "undone already" in two.call(*words).err


def test_a_path_of_shared_changes_is_taken_alone(contested: Overlap) -> None:
    """Own and shared changes of a path that is named go; the turn stays live with the others."""
    two, file = contested, contested.tree / "x"
    words = ("undo", two.b.id, "--shared", "--yes", "--skip-conflicts")
    assert two.call(*words, "--", "x").code == 0
    assert file.read_text() == code(_2="mine")
    file.write_text(code(_2="both"))
    assert two.call(*words).code == 0
    assert file.read_text() == code()
