"""What changed outside cover: it was not kept, so no restore brings it back.

    gone       deleted
    replaced   overwritten, or deleted and made again
    shrunk     a folder that was big and is small: what is left of it is covered from now on
    changed    written to: it may be a log that grows, so this alone is nothing to undo

What makes some folders again, by their names and the files beside them.
"""

from takeback.model import words
from takeback.model.value import Value, path_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

GONE, REPLACED, SHRUNK, CHANGED = "gone", "replaced", "shrunk", "changed"
MADE = "made"
"""Appeared, and is not covered: no loss, but what is lost after it is none either."""


class Loss(Value):
    """A path outside cover that is not as it was.

    `reason` is why it was not covered. `size` is that of a file as it was last seen. Folders are
    counted only until they are found to be big: `entries` and `size` are the least they had. What
    is unknown is None. `source` is the file from which it can be made again, if there is one.
    `is_shared`: it may be another session's.
    """

    raw_path: bytes
    what: str
    reason: str
    is_folder: bool = False
    size: "int | None" = None
    entries: "int | None" = None
    source: bytes = b""
    is_shared: bool = False

    @property
    def path(self) -> str:
        """Its path, as text."""
        return path_text(self.raw_path)

    @property
    def is_grave(self) -> bool:
        """Whether something is lost that somebody may miss."""
        return is_grave(self.what, self.reason)

    @property
    def command(self) -> str:
        """What makes it again; empty if nobody knows."""
        return recipe(self.raw_path.rpartition(b"/")[2], self.source)

    @property
    def where(self) -> bytes:
        """The folder in which that is to be run; empty for the project's own."""
        return self.source.rpartition(b"/")[0]


def is_grave(what: str, reason: str) -> bool:
    """Whether a loss alone makes a turn one that can be asked to be undone."""
    if what == CHANGED or reason == words.word(words.SPECIAL):
        return False
    return what != REPLACED or reason != words.word(words.REBUILDABLE)


def fold(rows: "Iterable[Loss]") -> "tuple[Loss, ...]":
    """What several looks found, in their order, as one per path; with those that were made."""
    found: dict[bytes, Loss] = {}
    for row in rows:
        before = found.get(row.raw_path)
        if before is None:
            found[row.raw_path] = row
        elif before.what == MADE:
            if row.what == GONE:
                del found[row.raw_path]
        elif row.what == MADE:
            found[row.raw_path] = before.replace(what=REPLACED) if before.what == GONE else before
        elif row.what == GONE or before.what == CHANGED:
            found[row.raw_path] = before.replace(what=row.what, source=row.source or before.source)
    return tuple(found[path] for path in sorted(found) if found[path].what != MADE)


_LOCKED = (
    (b"node_modules", b"pnpm-lock.yaml", "pnpm install"),
    (b"node_modules", b"yarn.lock", "yarn install"),
    (b"node_modules", b"bun.lock", "bun install"),
    (b"node_modules", b"package-lock.json", "npm ci"),
    (b"node_modules", b"npm-shrinkwrap.json", "npm ci"),
    (b".yarn", b"yarn.lock", "yarn install"),
    (b".venv", b"uv.lock", "uv sync"),
    (b".venv", b"poetry.lock", "poetry install"),
    (b".venv", b"pdm.lock", "pdm install"),
    (b".venv", b"Pipfile.lock", "pipenv sync"),
    (b"vendor", b"composer.lock", "composer install"),
    (b"vendor", b"Gemfile.lock", "bundle install"),
    (b"vendor", b"go.sum", "go mod vendor"),
    (b"Pods", b"Podfile.lock", "pod install"),
    (b".terraform", b".terraform.lock.hcl", "terraform init"),
)
_PIP = "python -m venv {0} && {0}/bin/pip install"
_LOOSE = (
    (b"node_modules", b"package.json", "npm install"),
    (b"bower_components", b"bower.json", "bower install"),
    (b".venv", b"requirements.txt", f"{_PIP.format('.venv')} -r requirements.txt"),
    (b".venv", b"pyproject.toml", f"{_PIP.format('.venv')} -e ."),
    (b"venv", b"requirements.txt", f"{_PIP.format('venv')} -r requirements.txt"),
    (b"venv", b"pyproject.toml", f"{_PIP.format('venv')} -e ."),
    (b"vendor", b"composer.json", "composer install"),
    (b"vendor", b"Gemfile", "bundle install"),
    (b"vendor", b"go.mod", "go mod vendor"),
    (b"Pods", b"Podfile", "pod install"),
    (b"target", b"Cargo.toml", "cargo build"),
    (b"target", b"pom.xml", "mvn package"),
    (b"build", b"CMakeLists.txt", "cmake -B build && cmake --build build"),
    (b"build", b"build.gradle", "gradle build"),
    (b"build", b"build.gradle.kts", "gradle build"),
    (b".tox", b"tox.ini", "tox"),
    (b".nox", b"noxfile.py", "nox"),
)
"""Folder, a file beside it or further up, and the command that makes the folder from the file."""


def find_source(name: bytes, ways: "Sequence[tuple[bytes, Collection[bytes]]]") -> bytes:
    """The file from which a folder can be made again.

    `ways` are the folders that it is in, the nearest first, each with the names in it. A lock file
    further up goes before a manifest without one: so workspaces are laid out.
    """
    for table in (_LOCKED, _LOOSE):
        for folder, names in ways:
            for wanted, file, _ in table:
                if wanted == name and file in names:
                    return folder + b"/" + file if folder else file
    return b""


def recipe(name: bytes, source: bytes) -> str:
    """The command that makes a folder of this name again from a file."""
    file = source.rpartition(b"/")[2]
    known = (command for folder, beside, command in (*_LOCKED, *_LOOSE)
             if (folder, beside) == (name, file))  # fmt: skip
    return next(known, "")
