"""Who touched which file, and how: `log PATH`, `--grep`, `show -p`, `--dry-run -p`."""

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import takeback
from takeback import Project, Session
from takeback.cli import app
from takeback.history import lookup
from tests.history.test_log import grow, work


class Said:
    """What a command printed and how it ended."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *words: str) -> None:
        self.code = app.main(list(words))
        self.out, self.err = capsys.readouterr()

    @property
    def prompts(self) -> list[str]:
        """The first words of the prompts that a log in JSON lists."""
        return [turn["label"].split()[0] for turn in json.loads(self.out)["turns"]]


class Shop:
    """A project in which two agents and a person worked on the same files."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        (tree / "src").mkdir()
        self.write("src/pay.py", "one\n")
        self.write("still.txt", "never changed\n")
        self.project: Project = takeback.open(tree)
        self.project.checkpoint("start")
        self.claude: Session = self.project.session(agent="claude")
        self.ids: dict[str, str] = {}
        self.turn(
            "Validate the payment", {"src/pay.py": "one\ntwo\n", ".env": "KEY=abcdefgh12345\n"}
        )
        self.write("src/pay.py", "one\ntwo\nmine\n")
        self.project.checkpoint()
        with self.claude.turn("Rename it") as turn:
            (tree / "src/pay.py").rename(tree / "src/paid.py")
        self.ids["Rename"] = turn.id
        self.turn("Log payments", {"src/paid.py": "one\ntwo\nmine\nthree\n", "new.txt": "n\n"})
        self.turn("Tidy ÜBER all", {"other/deep/x.txt": "x\n"})

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / name).write_text(text)

    def turn(self, label: str, files: dict[str, str]) -> None:
        """Let an agent write files."""
        with self.claude.turn(label) as turn:
            for name, text in files.items():
                self.write(name, text)
        self.ids[label.split(maxsplit=1)[0]] = turn.id

    def sql(self, statement: str, *values: object) -> None:
        """Change the tables behind everybody's back."""
        with sqlite3.connect(os.fsdecode(self.project.workspace.ledger.path)) as db:
            db.execute(statement, values)
        db.close()


@pytest.fixture
def shop(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """The project, with its root as the current folder."""
    assert home.is_dir()
    monkeypatch.chdir(tree)
    made = Shop(tree)
    with made.project:
        yield made


# -- paths -------------------------------------------------------------------------------------


WHICH: list[tuple[list[str], list[str]]] = [
    (["src/paid.py"], ["Log", "Rename", "Validate"]),
    (["src/pay.py"], ["Rename", "Validate"]),
    (["src"], ["Log", "Rename", "Validate"]),
    (["other"], ["Tidy"]),
    (["./other/deep/"], ["Tidy"]),
    (["new.txt", "other"], ["Tidy", "Log"]),
    (["--", ".env"], ["Validate"]),
    (["still.txt"], []),
    (["."], ["Tidy", "Log", "Rename", "Validate"]),
    (["-n", "1", "src"], ["Log"]),
    (["src", "--grep", "PAYMENT"], ["Log", "Validate"]),
    (["src", "--until", "1h"], []),
    (["src", "--since", "1h"], ["Log", "Rename", "Validate"]),
    (["--grep", "über"], ["Tidy"]),
    (["--grep", "the  payment"], ["Validate"]),
    (["--until", "now"], ["Tidy", "Log", "Rename", "Validate"]),
]


def test_which_turns(capsys: pytest.CaptureFixture[str], shop: Shop) -> None:
    """Those that touched a file by any of its names, or a folder; that say a text; by a time."""
    assert shop.ids
    found = [Said(capsys, "log", "--json", *words).prompts for words, _ in WHICH]
    assert found == [prompts for _, prompts in WHICH]


def test_the_screen_of_a_path(capsys: pytest.CaptureFixture[str], shop: Shop) -> None:
    """Lines and files are those at the path; other names and your own changes are told."""
    said = Said(capsys, "log", "src/paid.py")
    state, *rows = said.out.splitlines()
    assert state.startswith("@  now  src/paid.py: nothing changed since checkpoint ")
    counts = [row.split()[-4:] for row in rows]
    assert [(added, files) for added, _, *files in counts] == [
        ("+1", ["1", "file"]),
        ("+0", ["1", "file"]),
        ("+1", ["1", "file"]),
    ]
    assert "renamed: src/pay.py → src/paid.py\n" in said.err
    assert "you changed src/paid.py yourself, too: 1 time\n" in said.err
    shows = said.err.splitlines()[-1].split("`")[1]
    assert "+three" in Said(capsys, *shows.split()[1:]).out
    shop.write("src/paid.py", "now\n")
    (shop.tree / "beside.txt").touch()
    lines = Said(capsys, "log", "src/paid.py").out.splitlines()
    assert lines[0].startswith("@  now  1 path changed by you since the last checkpoint")
    assert lines[1].split() == ["write", "src/paid.py"]


def test_a_name_that_a_file_left(capsys: pytest.CaptureFixture[str], shop: Shop) -> None:
    """The old name says where the file went, and a later file of that name is another one."""
    said = Said(capsys, "log", "src/pay.py")
    assert said.out.startswith("@  now  src/pay.py: not there\n")
    assert "renamed to src/paid.py: `takeback log src/paid.py` goes on\n" in said.err
    shop.turn("Make it anew", {"src/pay.py": "another\n"})
    assert Said(capsys, "log", "src/paid.py", "--json").prompts == ["Log", "Rename", "Validate"]
    found = json.loads(Said(capsys, "log", "src/paid.py", "--json").out)["paths"]
    assert found == [
        {
            "path": "src/paid.py",
            "folder": False,
            "names": [{"path": "src/pay.py"}],
            "renamed_to": None,
            "yours": 1,
            "there": True,
            "left_out": None,
        }
    ]


def test_hints_about_a_path_like_an_option(capsys: pytest.CaptureFixture[str], shop: Shop) -> None:
    """What they name can be typed."""
    shop.turn("Odd name", {"-n": "odd\n"})
    hint = Said(capsys, "log", "--", "-n").err.splitlines()[-1].split("`")[1]
    assert "+odd" in Said(capsys, *hint.split()[1:]).out
    with shop.claude.turn("Rename it again"):
        (shop.tree / "-n").rename(shop.tree / "--json")
    assert "`takeback log -- --json` goes on\n" in Said(capsys, "log", "--", "-n").err


UNKNOWN = [
    ("paid.py", "did you mean `src/paid.py`?"),
    ("nowhere.txt", "`takeback log` shows turns"),
    ("{Rename}", "`takeback show {Rename}` shows the turn"),
    ("{session}", "`takeback log --session {session}` lists the turns of the session"),
    ("../elsewhere", "paths are those below"),
]


def test_a_path_that_never_was(capsys: pytest.CaptureFixture[str], shop: Shop) -> None:
    """It is an error that says so, and what the word means else."""
    names = {**shop.ids, "session": shop.claude.id}
    for word, hint in UNKNOWN:
        said = Said(capsys, "log", word.format_map(names))
        assert (said.code, said.out) == (2, "")
        assert hint.format_map(names) in said.err


def test_paths_count_from_the_current_folder(
    capsys: pytest.CaptureFixture[str], shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside a folder its own files are meant first, then those from the root."""
    monkeypatch.chdir(shop.tree / "src")
    assert Said(capsys, "log", "paid.py", "--json").prompts == ["Log", "Rename", "Validate"]
    assert Said(capsys, "log", "new.txt", "--json").prompts == ["Log"]
    assert Said(capsys, "log", str(shop.tree / "new.txt"), "--json").prompts == ["Log"]


def test_undone_turns_and_restores_of_a_path(
    capsys: pytest.CaptureFixture[str], shop: Shop
) -> None:
    """A path tells how many undone turns touched it; `--all` lists them, and what was restored."""
    shop.project.undo(shop.ids["Log"])
    said = Said(capsys, "log", "new.txt")
    assert "1 undone turn is not shown: `takeback log --all new.txt`" in said.err
    assert "   no turn touched it" not in said.out
    told = json.loads(Said(capsys, "log", "--all", "new.txt", "--json").out)
    assert [turn["label"] for turn in told["turns"]] == ["Log payments"]
    assert [each["verb"] for each in told["restores"]] == ["undo"]
    assert json.loads(Said(capsys, "log", "--all", "other", "--json").out)["restores"] == []
    shop.project.rollback("start", paths=["src"])
    (rolled,) = json.loads(Said(capsys, "log", "src", "--json").out)["restores"]
    assert rolled["verb"] == "rollback"


def test_shared_lost_and_outside(
    capsys: pytest.CaptureFixture[str], shop: Shop, tmp_path: Path
) -> None:
    """Also a change that may be of several turns, and a file outside the project."""
    one, other = shop.claude.turn("Both"), shop.project.session(agent="codex").turn("Same time")
    shop.write("both.txt", "1\n")
    one.end()
    other.end()
    assert Said(capsys, "log", "both.txt", "--json").prompts == ["Same", "Both"]
    outside = tmp_path / "dotfile"
    outside.write_text("a\n")
    with (
        shop.claude.turn("Edit a dotfile") as turn,
        turn.step("Write", {"file_path": str(outside)}),
    ):
        outside.write_text("b\n")
    assert Said(capsys, "log", str(outside), "--json").prompts == ["Edit"]


def test_a_path_that_only_you_changed(capsys: pytest.CaptureFixture[str], shop: Shop) -> None:
    """Nobody else did, so you did not do it "too"."""
    shop.write("mine.txt", "1\n")
    shop.project.checkpoint()
    said = Said(capsys, "log", "mine.txt")
    assert said.out.endswith("\n   no turn touched it\n")
    assert said.err == "you changed mine.txt: 1 time\n"


def test_what_is_not_covered_is_said(capsys: pytest.CaptureFixture[str], shop: Shop) -> None:
    """Where changes are not recorded, it does not look as if nobody had made any."""
    os.mkfifo(shop.tree / "pipe")
    shop.project.checkpoint()
    said = Said(capsys, "log", "pipe")
    assert said.out == "@  now  pipe: not covered\n   no turn touched it\n"
    assert "yourself" not in said.err
    assert "pipe is not covered (special): changes there are not recorded\n" in said.err
    assert (
        json.loads(Said(capsys, "log", "pipe", "--json").out)["paths"][0]["left_out"] == "special"
    )


def test_reasons_are_searched_too(capsys: pytest.CaptureFixture[str], shop: Shop) -> None:
    """With `--all`, `--grep` finds what was said when a turn was undone; names, too."""
    shop.project.undo(because="It broke the Tests")
    shop.project.checkpoint("tests green")
    said = Said(capsys, "log", "--grep", "tests", "--json")
    assert (said.prompts, [n["name"] for n in json.loads(said.out)["names"]]) == (
        [],
        ["tests green"],
    )
    assert Said(capsys, "log", "--all", "--grep", "broke the tests", "--json").prompts == ["Tidy"]
    assert "`takeback log --grep nothing --all`" not in Said(capsys, "log").err
    assert "also searches undone turns" in Said(capsys, "log", "--grep", "nothing").err
    assert Said(capsys, "log", "--grep", " ").code == 2


def test_older_pages(shop: Shop) -> None:
    """A list goes on before its last turn, with whatever was asked for."""
    reader, rename = shop.project.reader, shop.ids["Rename"]
    assert [turn.label for turn in reader.log(9, before=rename).turns] == ["Validate the payment"]
    assert [name.name for name in reader.log(1, before=rename).names] == ["start"]
    assert reader.log(9, before=rename, grep="log").turns == ()


EACH = 10
"""Steps of SQLite that are counted as one."""


def test_asking_for_paths_looks_at_each_change_once(shop: Shop) -> None:
    """Some steps of SQLite per change, a few milliseconds for ten thousand turns.

    An index by path would save them; checkpoints would write more the longer the history is.
    """

    def cost() -> int:
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        with shop.project.workspace.ledger.snapshot() as moment:
            moment._db.set_progress_handler(count, EACH)
            found = lookup.past(moment, b"src/paid.py", is_folder=False)
            moment._db.set_progress_handler(None, 1)
            assert found is not None
            assert len(found.turns) == 3
        return steps

    few = cost()
    grow(shop, 10_000)  # type: ignore[arg-type]
    assert cost() < few + 10_000 * 40 / EACH
    assert work(shop, grep="turn 9") < work(shop) * 20  # type: ignore[arg-type]


def test_it_is_the_same_after_a_rebuild(shop: Shop) -> None:
    """What a path is found by follows from the log alone."""
    before = shop.project.log(paths=["src/paid.py"])
    shop.project.rebuild()
    assert shop.project.log(paths=["src/paid.py"]).paths == before.paths
    assert shop.project.upkeep.examine()[0] == ()


# -- diffs -------------------------------------------------------------------------------------


def test_show_p_is_what_the_turn_changed(capsys: pytest.CaptureFixture[str], shop: Shop) -> None:
    """Its own lines, not those that you wrote in the same file; secrets are masked."""
    said = Said(capsys, "show", "-p", shop.ids["Validate"])
    head, _, diff = said.out.partition("diff --git")
    assert head.splitlines()[0] == f"Turn {shop.ids['Validate']}  claude"
    assert "    Validate the payment\n" in head
    assert "+two\n" in diff
    assert "mine" not in diff
    assert "abcdefgh" not in said.out
    assert "1 secret masked in 1 file" in said.err
    assert (
        "+KEY=abcdefgh12345"
        in Said(capsys, "show", "-p", shop.ids["Validate"], "--show-secrets").out
    )
    only = Said(capsys, "show", "-p", shop.ids["Validate"], "src").out
    assert only.count("diff --git") == 1
    renamed = Said(capsys, "show", "-p", shop.ids["Rename"]).out
    assert "rename from src/pay.py\nrename to src/paid.py\n" in renamed


def test_show_p_leaves_out_what_others_changed_meanwhile(
    capsys: pytest.CaptureFixture[str], shop: Shop
) -> None:
    """Two agents in one file: each turn shows its own lines only, and git can apply them."""
    one, other = (
        shop.project.session(agent=name).turn(f"Work of {name}", whole=False) for name in "ab"
    )
    lines = [f"line {number}\n" for number in range(40)]
    with one.step("Write", {"file_path": "same.txt"}):
        shop.write("same.txt", "".join(lines))
    with other.step("Write", {"file_path": "same.txt"}):
        shop.write("same.txt", "".join(["b\n", *lines]))
    with one.step("Write", {"file_path": "same.txt"}):
        shop.write("same.txt", "".join(["b\n", *lines, "a\n"]))
    one.end()
    other.end()
    assert "+b\n" not in Said(capsys, "show", "-p", one.id).out
    shown = Said(capsys, "show", "-p", other.id).out
    assert [line for line in shown.splitlines() if line[:1] == "+"] == ["+++ b/same.txt", "+b"]
    (shop.tree / "same.txt").write_text("".join([*lines, "a\n"]))
    applied = subprocess.run(["git", "apply"], input=shown.encode(), cwd=shop.tree, check=False)
    assert applied.returncode == 0
    assert (shop.tree / "same.txt").read_text().startswith("b\n")


def test_show_p_of_other_things(capsys: pytest.CaptureFixture[str], shop: Shop) -> None:
    """A checkpoint since the one before, now since the newest; JSON has the same in `diff`."""
    shop.write("new.txt", "changed\n")
    assert "+changed" in Said(capsys, "show", "-p", "@").out
    made = shop.project.checkpoint("by hand").id
    said = Said(capsys, "show", "-p", "by hand")
    assert said.out.startswith(f"Checkpoint {made}\n")
    assert "-n\n+changed\n" in said.out
    told = json.loads(Said(capsys, "show", "-p", shop.ids["Log"], "--json").out)
    assert told["turn"]["id"] == shop.ids["Log"]
    assert [each["path"] for each in told["diff"]] == ["new.txt", "src/paid.py"]
    assert told["diff"][1]["hunks"][0]["lines"][-1] == "+three"
    assert json.loads(Said(capsys, "show", shop.ids["Log"], "--json").out)["diff"] is None


def test_a_prompt_is_no_patch(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """What a prompt holds cannot become a part of the diff below it."""
    evil = "diff --git a/x b/x\n--- /dev/null\n+++ b/evil.txt\n@@ -0,0 +1 @@\n+evil\n"
    with shop.claude.turn(evil) as turn:
        shop.write("good.txt", "good\n")
    shown = Said(capsys, "show", "-p", turn.id).out
    (shop.tree / "good.txt").unlink()
    subprocess.run(["git", "apply"], input=shown.encode(), cwd=shop.tree, check=True)
    assert (shop.tree / "good.txt").read_text() == "good\n"
    assert not (shop.tree / "evil.txt").exists()


@pytest.mark.parametrize("verb", ["undo", "rollback", "redo"])
def test_a_dry_run_with_lines(capsys: pytest.CaptureFixture[str], shop: Shop, verb: str) -> None:
    """`--dry-run -p` adds the lines that would change, changes nothing, and needs `--dry-run`."""
    words = {"undo": ["undo", shop.ids["Log"]], "rollback": ["rollback", shop.ids["Rename"]]}
    if verb == "redo":
        shop.project.undo(shop.ids["Log"])
    given = words.get(verb, ["redo"])
    before = (shop.tree / "src/paid.py").read_text()
    said = Said(capsys, *given, "--dry-run", "-p")
    sign = "+" if verb == "redo" else "-"
    assert said.code == 0
    assert said.out.startswith("Would ")
    assert f"\n{sign}three\n" in said.out.partition("diff --git")[2]
    assert (shop.tree / "src/paid.py").read_text() == before
    assert "diff --git" not in Said(capsys, *given, "--dry-run").out
    told = json.loads(Said(capsys, *given, "--dry-run", "-p", "--json").out)["diff"]
    assert f"{sign}three" in told[-1]["hunks"][0]["lines"]
    alone = Said(capsys, *given, "-p")
    assert (alone.code, (shop.tree / "src/paid.py").read_text()) == (2, before)
    assert f"`takeback {' '.join(given)} --dry-run -p` shows them" in alone.err


def test_a_dry_run_masks_secrets(capsys: pytest.CaptureFixture[str], shop: Shop) -> None:
    """The lines of a file with secrets are masked as in `diff`."""
    said = Said(capsys, "undo", shop.ids["Validate"], "-np", "--", ".env")
    assert "# -KEY=••••" in said.out
    assert "abcdefgh" not in said.out + said.err
