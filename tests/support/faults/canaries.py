"""A repository full of traps: every way we know for a folder to make git or python run its code.

Each trap writes its name to a log. `faults` F16 and the advisories against other tools are where
the list comes from. That the traps work is proven with git and python themselves.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

HOOKS = (
    "pre-commit post-commit post-checkout post-merge post-rewrite post-index-change pre-push "
    "pre-auto-gc reference-transaction fsmonitor-watchman applypatch-msg prepare-commit-msg"
).split()

SETTINGS = {
    "core.fsmonitor": "{trap}",
    "core.hooksPath": "{hooks}",
    "core.sshCommand": "{trap}",
    "core.pager": "{trap}",
    "core.editor": "{trap}",
    "core.askPass": "{trap}",
    "core.gitProxy": "{trap}",
    "core.alternateRefsCommand": "{trap}",
    "filter.evil.clean": "{trap}; cat",
    "filter.evil.smudge": "{trap}; cat",
    "filter.evil.required": "false",
    "diff.evil.textconv": "{trap}",
    "diff.evil.command": "{trap}",
    "diff.external": "{trap}",
    "merge.evil.driver": "{trap}",
    "gpg.program": "{trap}",
    "commit.gpgSign": "true",
    "alias.status": "!{trap}",
    "alias.add": "!{trap}",
    "credential.helper": "!{trap}",
    "uploadpack.packObjectsHook": "{trap}",
    "sequence.editor": "{trap}",
    "interactive.diffFilter": "{trap}",
    "submodule.evil.update": "!{trap}",
    "remote.origin.url": "ext::{trap}",
    "remote.origin.promisor": "true",
    "protocol.ext.allow": "always",
    "include.path": "../included",
}

MODULES = (
    "sitecustomize usercustomize conftest sqlite3 zlib hashlib os struct json tomllib isal "
    "tomlkit fcntl time takeback setup __main__ _sqlite3"
).split()
"""Python files in the tree that have the name of something we, or python, would import."""

PROGRAMS = "git sh bash python python3 gpg ssh cat less uname".split()

VARIABLES = {
    "GIT_SSH_COMMAND": "{trap}",
    "GIT_EXTERNAL_DIFF": "{trap}",
    "GIT_PAGER": "{trap}",
    "GIT_EDITOR": "{trap}",
    "GIT_ASKPASS": "{trap}",
    "GIT_PROXY_COMMAND": "{trap}",
    "GIT_EXEC_PATH": "{programs}",
    "GIT_TEMPLATE_DIR": "{hooks}",
    "GIT_CONFIG_GLOBAL": "{tree}/included",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "{trap}",
    "GIT_DIR": "{tree}/.git",
    "GIT_INDEX_FILE": "{tree}/.git/index",
    "PAGER": "{trap}",
    "EDITOR": "{trap}",
    "BASH_ENV": "{trap}",
    "ENV": "{trap}",
    "PYTHONPATH": "{tree}",
    "PYTHONSTARTUP": "{tree}/conftest.py",
    "PYTHONUSERBASE": "{tree}",
    "PYTHONINSPECT": "1",
    "PYTHONBREAKPOINT": "conftest.main",
}


class Traps(NamedTuple):
    """The repository, and where its traps leave their names."""

    tree: Path
    log: Path
    environment: dict[str, str]

    def sprung(self) -> list[str]:
        """The traps that somebody walked into."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def run(self, command: Sequence[str], **more: str) -> subprocess.CompletedProcess[str]:
        """Run a program inside the tree, with every variable set against it."""
        environment = {**self.environment, **more}
        return subprocess.run(
            command, cwd=self.tree, env=environment, capture_output=True, text=True, check=False
        )


def lay(folder: Path, home: Path) -> Traps:
    """Make the repository and all its traps."""
    tree, log = folder / "tree", folder / "log"
    tree.mkdir()
    trap, programs, hooks = tree / "trap", tree / "programs", tree / "hooks"
    _script(trap, log)
    for program in PROGRAMS:
        _script(programs / program, log)
    _git(tree, "init", "-q")
    (tree / "file").write_text("content\n")
    (tree / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    _git(tree, "add", "-A")
    _git(tree, "commit", "-q", "-m", "one")
    for hook in HOOKS:
        _script(hooks / hook, log)
        _script(tree / ".git/hooks" / hook, log)
    for module in MODULES:
        _module(tree / f"{module}.py", log)
    _module(tree / "takeback_plugin.pth", log)
    for name in (".envrc", ".env", ".bashrc", ".profile"):
        (tree / name).write_text(f"{trap}\n")
    words = {"trap": trap, "hooks": hooks, "programs": programs, "tree": tree}
    for key, value in SETTINGS.items():
        _git(tree, "config", key, value.format(**words))
    (tree / "included").write_text(f"[core]\n\tfsmonitor = {trap}\n")
    environment = {key: value.format(**words) for key, value in VARIABLES.items()}
    environment |= {"PATH": f"{programs}:{tree}", "HOME": str(folder), "TAKEBACK_HOME": str(home)}
    return Traps(tree, log, environment)


def git_environment(folder: Path) -> dict[str, str]:
    """What git needs to work for a test, and nothing of the person at the keyboard."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }


def python() -> str:
    """The interpreter itself, not a link or a shim that starts it."""
    return os.path.realpath(sys.executable)


def _git(tree: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=tree, env=git_environment(tree.parent), check=True)


def _script(path: Path, log: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "$0 $*" >> {log}\n')
    path.chmod(0o755)


def _module(path: Path, log: Path) -> None:
    path.write_text(f"import sys; open({str(log)!r}, 'a').write({path.name!r} + '\\n')\n")
