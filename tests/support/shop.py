"""A small shop with one agent in it: what the tests of undo, redo and rollback share."""

import json
from pathlib import Path

import takeback
from history import Said, command
from oracle import Picture, picture

LABEL = "Add payment validation"

Files = dict[str, str | None]


class Shop:
    """A small project with one agent's session, and what it looked like at each moment."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.ids: dict[str, str] = {}
        self.write(
            {
                "src/pay.py": "def pay():\n    return 1\n",
                "src/cart.py": "items = []\n",
                "tests/test_cart.py": "def test(): ...\n",
                "notes.md": "# Notes\n",
            }
        )
        self.project = takeback.open(tree)
        self.project.checkpoint("start")
        self.session = self.project.session("claude-code", title="Payments")

    def write(self, files: Files) -> None:
        """Write files, or remove them."""
        for name, text in files.items():
            path = self.tree / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

    def turn(self, label: str, edits: Files, shell: Files | None = None) -> str:
        """A turn that edits files by tools that name them, and others by a shell."""
        with self.session.turn(label, whole=False) as turn:
            for name, text in edits.items():
                with turn.step("Write", {"file_path": name}):
                    self.write({name: text})
            if shell:
                with turn.step("Bash", {"command": "make"}):
                    self.write(shell)
        self.ids[label] = turn.id
        return turn.id

    def validation(self) -> str:
        """The turn that most tests take back."""
        return self.turn(
            LABEL,
            {"src/pay.py": "def pay():\n    return 2\n", "src/validate.py": "ok = True\n"},
            {"src/cart.py": "items = [1]\n", "tests/test_cart.py": None},
        )

    def picture(self) -> Picture:
        """Everything in the tree."""
        return picture(self.tree)

    def __call__(self, *words: str, **surroundings: str) -> Said:
        """Run `takeback` without a terminal."""
        return command(self.tree, *words, **surroundings)

    def json(self, *words: str, code: int = 0) -> dict[str, object]:
        """Run it with `--json`, which prints one object and nothing else."""
        said = self(*words, "--json")
        assert (said.code, said.err, said.out.count("\n")) == (code, "", 1), said.err
        found: dict[str, object] = json.loads(said.out)
        return found
