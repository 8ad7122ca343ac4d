"""The real aider below `takeback run`: one turn per prompt, with commits and without."""

import time
from pathlib import Path

import pytest

import torture
from clients import packages
from clients.actions import Say
from clients.place import TAKEBACK, Place
from clients.real import BESIDE
from clients.screen import Screen

AIDER = BESIDE["aider"].in_version(packages.CHOSEN.get("aider", ""))
FOLDER = packages.folder_of(packages.INSTALLED, "aider", AIDER)
_OFFLINE = """
    --model openai/fake --no-show-model-warnings --no-check-update --analytics-disable
    --no-show-release-notes --no-gitignore --edit-format diff --map-tokens 0 --no-browser
""".split()
RULE = "────"
"""What aider draws above its prompt."""


@pytest.fixture(autouse=True)
def _repository(place: Place) -> None:
    """A repository with one commit, and a model that answers aider, which offers no tools."""
    if "aider" not in packages.CHOSEN:
        pytest.skip("this run is not about aider")
    place.model.without_tools = True
    place.environment |= {
        "OPENAI_API_BASE": f"{place.model.url}/v1",
        "OPENAI_API_KEY": "dummy",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    for name, value in (("user.name", "A User"), ("user.email", "user@example.org")):
        torture.git(place.tree, "config", name, value)
    (place.tree / "mine.txt").write_text("mine\n")
    torture.git(place.tree, "add", "-A")
    torture.git(place.tree, "commit", "-q", "-m", "first")


def words(*more: str) -> list[str]:
    return [*AIDER.words(FOLDER), *_OFFLINE, *more]


def edit(path: str, old: str, new: str) -> Say:
    """An edit as aider wants it."""
    block = f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE"
    return Say(f"Here it is.\n\n#### What I do\n\n{path}\n```\n{block}\n```\n")


def files(tree: Path) -> dict[str, str]:
    found = (path for path in tree.iterdir() if path.is_file())
    return {path.name: path.read_text() for path in found if not path.name.startswith(".aider")}


@pytest.mark.parametrize("commits", ["--auto-commits", "--no-auto-commits"])
def test_messages(place: Place, commits: str) -> None:
    """A run with a message is a turn of that name; undo of the first keeps the second."""
    before = files(place.tree)
    for prompt, path in (("write one", "one.txt"), ("write two", "two.txt")):
        place.model.plays(prompt, edit(path, "", f"{prompt}\n"))
        place.takeback("run", "--", *words("--yes-always", commits, "--message", prompt))
    after = files(place.tree)
    assert after == {**before, "one.txt": "write one\n", "two.txt": "write two\n"}
    first, second = place.turns()
    assert [(turn["label"], turn["agent"]) for turn in (first, second)] == [
        ("write one", "aider"),
        ("write two", "aider"),
    ]
    told = place.takeback("undo", first["id"], "--yes")
    assert ("commit" in told) == (commits == "--auto-commits"), told
    assert files(place.tree) == {**before, "two.txt": "write two\n"}
    place.takeback("redo", "--yes")
    assert files(place.tree) == after


def test_prompts_at_the_terminal(place: Place) -> None:
    """Two prompts are two turns; what you save while aider waits is yours."""
    tree = place.tree
    before = files(tree)
    place.model.plays("write one", edit("one.txt", "", "one\n"))
    place.model.plays("write two", edit("two.txt", "", "two\n"))
    screen = Screen([*TAKEBACK, "run", "--", *words()], tree, place.environment)
    seen = 0
    for prompt, path in (("write one", "one.txt"), ("write two", "two.txt")):
        screen.shows(RULE, seen)
        time.sleep(1)
        seen = len(screen.text())
        screen.type(prompt)
        screen.shows("Create new file?", seen)
        time.sleep(0.5)
        screen.press(b"y\r")
        screen.shows(f"Applied edit to {path}", seen)
        seen = len(screen.text())
        screen.shows(RULE, seen)
        time.sleep(1)
        (tree / "mine.txt").write_text(f"saved after {prompt}\n")
        time.sleep(0.5)
    screen.type("/exit")
    screen.shows("takeback: turn")
    screen.shows('"write two"')
    time.sleep(1)
    screen.close()
    first, second = place.turns()
    assert [turn["label"] for turn in (first, second)] == ["write one", "write two"]
    after = files(tree)
    place.takeback("undo", first["id"], "--yes")
    expected = {**before, "two.txt": "two\n", "mine.txt": "saved after write two\n"}
    assert files(tree) == expected
    place.takeback("redo", "--yes")
    assert files(tree) == after
