"""`takeback guard explain` and `test`: what a command would do, for people and programs."""

import json
import subprocess
import sys
from pathlib import Path

from history import command

RULES = """
[[rule]]
id = "deploy"
class = "irreversible"
match = "./deploy.sh"
reason = "it deploys to production"
examples = ["./deploy.sh prod"]
not_examples = ["./build.sh"]
"""


def test_a_command_is_explained_to_a_person(tree: Path, home: Path) -> None:
    """The class and what it means come first; then why, what to do instead, what is touched."""
    (home / "guard.toml").write_text(RULES)
    said = command(tree, "guard", "explain", "--", "git push --force origin main")
    assert said.code == 0
    assert said.out.splitlines() == [
        "irreversible: others can see it, and nothing takes it back",
        "  why      it pushes to a remote, where others see it",
        "  rule     git.push.force",
        "  instead  git push --dry-run",
        "  outside  push",
        "  modes    watch runs, ask asks you, autopilot refuses",
    ]
    said = command(tree, "guard", "explain", "--", "ls && rm -rf ../old .git")
    assert said.out.splitlines()[0] == "destructive: it destroys what no checkpoint holds"
    assert f"deletes    {tree.parent / 'old'} and all below (outside the project)" in said.out
    assert "git loses  all of it" in said.out
    assert "autopilot runs if all is rescued, else asks you" in said.out
    assert "  read         ls" in said.out
    said = command(tree, "guard", "explain", "--", "./deploy.sh", "prod")
    assert "it deploys to production" in said.out
    said = command(tree, "guard", "explain", "--", "ls")
    assert said.out.splitlines()[-1].split(maxsplit=1) == ["modes", "it runs in every mode"]
    said = command(tree, "guard", "explain", "--", "takeback guard off")
    assert "watch runs, ask refuses, autopilot refuses" in said.out


def test_a_command_is_explained_as_json(tree: Path, home: Path) -> None:
    """With all that a judgement holds."""
    (home / "guard.toml").write_text(RULES)
    said = command(tree, "guard", "explain", "--json", "--", "./deploy.sh")
    found = json.loads(said.out)
    assert (found["class"], found["rule"]) == ("irreversible", "user.deploy")
    assert {"reason", "instead", "inverse", "parts", "targets", "git", "outside"} < found.keys()


def test_commands_are_read_line_by_line(tree: Path, home: Path) -> None:
    """A JSON string on each line gives one answer on each line."""
    del home

    def explain(text: str) -> "subprocess.CompletedProcess[str]":
        started = [sys.executable, "-m", "takeback", "guard", "explain"]
        return subprocess.run(
            started, cwd=tree, input=text, capture_output=True, text=True, check=False
        )

    commands = [json.dumps("git push"), json.dumps("cat <<END\na\nEND"), ""]
    found = [json.loads(line) for line in explain("\n".join(commands)).stdout.splitlines()]
    assert [each["class"] for each in found] == ["irreversible", "read"]
    wrong = explain("git push\n")
    assert (wrong.returncode, "is not a JSON string" in wrong.stderr) == (2, True)


def test_rules_are_tried(tree: Path, home: Path) -> None:
    """Examples that another rule decides are named, and the exit code says so."""
    (home / "guard.toml").write_text(RULES)
    said = command(tree, "guard", "test")
    assert (said.code, said.out) == (0, "1 rule, 2 of 2 examples as written\n")
    (home / "guard.toml").write_text(RULES.replace("./build.sh", "sudo ./deploy.sh"))
    said = command(tree, "guard", "test")
    assert said.code == 1
    assert said.out.splitlines()[0] == "deploy: `sudo ./deploy.sh` is decided by user.deploy"
    (tree / ".takeback").mkdir()
    (tree / ".takeback/guard.toml").write_text('[[rule]]\nclass="read"\nmatch="git push"\n')
    said = command(tree, "guard", "test")
    assert "rule `rule-1` of the tree would make calls lighter; ignored" in said.err
    found = json.loads(command(tree, "guard", "test", "--json").out)
    assert [each["rule"] for each in found["failed"]] == ["deploy"]
    assert [each["code"] for each in found["problems"]] == ["guard-tree-lighter"]
