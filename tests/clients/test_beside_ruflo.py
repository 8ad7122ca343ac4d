"""Claude Code with Takeback's hooks and ruflo's, whose scripts commit, stash and tag at each edit.

ruflo comes by npm like the clients. Its `init` writes hooks and helpers into the project; the
checkpoint scripts among them are called by settings as its own documents show them.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import oracle
import torture
from clients import packages
from clients.place import Place
from clients.real import BESIDE, ClaudeCode

RUFLO = BESIDE["ruflo"].in_version(packages.CHOSEN.get("ruflo", ""))
FOLDER = packages.folder_of(packages.INSTALLED, "ruflo", RUFLO)
_READ = "jq -r '.tool_input.file_path'"
_SCRIPT = 'bash "$CLAUDE_PROJECT_DIR/.claude/helpers/standard-checkpoint-hooks.sh"'


def make_repository(place: Place) -> None:
    """A repository with one commit, on a branch with a name of its own."""
    tree = place.tree
    torture.git(tree, "checkout", "-q", "-b", "work")
    for name, value in (("user.name", "A User"), ("user.email", "user@example.org")):
        torture.git(tree, "config", name, value)
    (tree / ".gitignore").write_text(".claude/\n.claude-flow/\n.swarm/\n")
    torture.git(tree, "add", "-A")
    torture.git(tree, "commit", "-q", "-m", "first")


def install_ruflo(place: Place) -> None:
    """Its own `init`, and its checkpoint scripts around each edit, at prompts and at the end."""
    subprocess.run(
        [*RUFLO.words(FOLDER), "init", "--force", "--no-global", "--no-signup", "--no-skills-sh"],
        cwd=place.tree,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=True,
    )
    path = place.tree / ".claude/settings.json"
    settings = json.loads(path.read_text())
    edits = "Write|Edit|MultiEdit"
    for event, matcher, word, given in (
        ("PreToolUse", edits, "pre-edit", _READ),
        ("PostToolUse", edits, "post-edit", _READ),
        ("UserPromptSubmit", "", "task", "jq -r '.prompt'"),
    ):
        line = f'{_SCRIPT} {word} "$({given})"'
        hook = {"type": "command", "command": line, "timeout": 30}
        settings["hooks"].setdefault(event, []).append({"matcher": matcher, "hooks": [hook]})
    path.write_text(json.dumps(settings, indent=2))


def refs(tree: Path) -> set[str]:
    """Every reference of the repository."""
    return set(torture.git(tree, "for-each-ref", "--format=%(refname) %(objectname)").splitlines())


def work(tree: Path) -> oracle.Picture:
    """All but git's own files and the notes that ruflo keeps."""
    own = (b".git", b".claude", b".claude-flow", b".swarm")
    return {
        path: what for path, what in oracle.picture(tree).items() if path.split(b"/")[0] not in own
    }


@pytest.mark.timeout(400)  # each edit runs a dozen programs of ruflo's
def test_undo_is_exact_and_neither_disturbs_the_other(place: Place) -> None:
    """Two turns; what ruflo did to the repository is told, and undo and redo leave it alone."""
    if "ruflo" not in packages.CHOSEN or ClaudeCode.NAME not in packages.CHOSEN:
        pytest.skip("this run is not about ruflo in Claude Code")
    assert shutil.which("jq"), "its scripts need jq"
    tree, client = place.tree, ClaudeCode(place)
    make_repository(place)
    install_ruflo(place)
    settings = (tree / ".claude/settings.json").read_bytes()
    client.install()
    before = work(tree)
    first = client.edits([(tree / "a.txt", "one", "ONE")])
    client.prompt(place.model.plays("change a", *first, client.shell("echo s > s.txt")))
    between, known = work(tree), refs(tree)
    second = client.edits([(tree / "b.txt", "two", "TWO")])
    made = client.create(tree / "new.txt", "new\n")
    client.prompt(place.model.plays("change b", *second, made, client.shell("rm s.txt")))
    after, since = work(tree), refs(tree)

    new = {line.split(" ")[0] for line in since - known}
    assert any(name.startswith("refs/tags/checkpoint-") for name in new), new
    assert any(name.startswith("refs/heads/checkpoint/pre-edit-") for name in new), new
    told = place.takeback("show", "@~0") + place.takeback("undo", "--dry-run")
    for name in new - {"refs/heads/work"}:
        assert told.count(f"`{name.split('/', 2)[2]}`") == 2, (name, told)
    assert "moved HEAD" in told
    assert "commits stay" in told

    for verb, expected in (
        ("undo", between),
        ("redo", after),
        ("undo", between),
        ("undo", before),
        ("redo", between),
        ("redo", after),
    ):
        place.takeback(verb)
        assert oracle.differences(expected, work(tree)) == []
        assert refs(tree) == since
    assert [(turn["label"], turn["agent"]) for turn in place.turns()] == [
        ("change a", "claude-code"),
        ("change b", "claude-code"),
    ]
    place.takeback("doctor")
    place.takeback("uninstall", "claude-code")
    assert (tree / ".claude/settings.json").read_bytes() == settings
