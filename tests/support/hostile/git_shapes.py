"""What git users have lying about: repositories in repositories, and files that command git."""

import os

from hostile.ground import Ground
from hostile.tree import Deed, Tree

_GIT = {b".git": "version control"}


def _commit(ground: Ground, within: bytes = b"") -> None:
    ground.git("init", "-q", within=within)
    ground.git("add", "-A", within=within)
    ground.git("commit", "-q", "--allow-empty", "-m", "one", within=within)


def _repository(ground: Ground) -> None:
    ground.file(b"tracked", b"committed\n")
    _commit(ground)
    ground.file(b"untracked", b"not yet\n")
    ground.append(b"tracked", b"and changed\n")


def _nested(ground: Ground) -> None:
    ground.file(b"fe/src/index.ts", b"front\n")
    ground.file(b"be/src/main.go", b"back\n")
    _commit(ground, b"fe")
    _commit(ground, b"be")
    ground.file(b"fe/new", b"not committed\n")


def _nested_unborn(ground: Ground) -> None:
    ground.file(b"sub/file", b"git add refuses this folder\n")
    ground.git("init", "-q", within=b"sub")


def _nested_three_deep(ground: Ground) -> None:
    for folder in (b"a", b"a/b", b"a/b/c"):
        ground.file(folder + b"/file", folder)
        _commit(ground, folder)


def _git_file(ground: Ground) -> None:
    ground.file(b"sub/.git", b"gitdir: /nowhere/at/all\n")
    ground.file(b"sub/file")


def _submodule(ground: Ground) -> None:
    ground.file(b"lib/code.c", b"int x;\n")
    _commit(ground, b"lib")
    ground.git("init", "-q")
    ground.git("submodule", "add", "-q", "./lib", "lib")
    ground.file(b"lib/untracked", b"in the submodule\n")


def _worktree(ground: Ground) -> None:
    _repository(ground)
    ground.git("worktree", "add", "-q", "other")
    ground.file(b"other/more", b"in the other work tree\n")


def _bare_below(ground: Ground) -> None:
    ground.folder(b"server.git")
    ground.git("init", "-q", "--bare", within=b"server.git")


def _bare_whole(ground: Ground) -> None:
    ground.git("init", "-q", "--bare")


def _line_ends(ground: Ground) -> None:
    ground.file(b".gitattributes", b"* text=auto eol=crlf\n*.bat text eol=lf\n")
    ground.file(b"unix", b"a\nb\n")
    ground.file(b"dos", b"a\r\nb\r\n")
    ground.file(b"mixed.bat", b"a\r\nb\nc\rd\0")
    _commit(ground)


def _ident(ground: Ground) -> None:
    ground.file(b".gitattributes", b"* ident export-subst\n")
    ground.file(b"version.h", b"$Id$ $Id: 0123456789 $ $Format:%H$\n")


def _encoding(ground: Ground) -> None:
    ground.file(b".gitattributes", b"*.txt working-tree-encoding=UTF-16LE-BOM\n")
    ground.file(b"a.txt", "wide\n".encode("utf-16"))
    ground.file(b"b.txt", b"\xff\xfe\x00")


def _filters(ground: Ground) -> None:
    ground.file(b".gitattributes", b"* filter=evil diff=evil merge=evil\n")
    ground.file(b"file", b"as it is\n")
    _commit(ground)
    ground.git("config", "filter.evil.clean", "touch evil; cat")
    ground.git("config", "filter.evil.smudge", "touch evil; cat")
    ground.git("config", "core.fsmonitor", "touch evil")


def _large_file_pointer(ground: Ground) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64
    ground.file(b".gitattributes", b"*.bin filter=lfs diff=lfs merge=lfs -text\n")
    ground.file(b"a.bin", pointer + b"\nsize 12\n")
    ground.file(b"b.bin", bytes(range(256)))


def _ignores_itself(ground: Ground) -> None:
    """What an agent overwrites and no peer gives back: files that git is told not to see."""
    ground.file(b".gitignore", b"*\n.env\nprivate/\n")
    ground.file(b".env", b"KEY=secret\n", 0o600)
    ground.file(b"private/notes", b"small\n")
    ground.git("init", "-q")


def _hostile_ignores(ground: Ground) -> None:
    """Patterns that make a careless matcher run for ever, beside a folder that makes it look."""
    evil = b"*a" * 60 + b"b\n" + b"**/" * 80 + b"x\n" + b"[" * 500 + b"\n!\n\\\n/\n[z-a]\n"
    ground.file(b".gitignore", evil + b"a" * 5000 + b"\n\xff\xfe\0\n")
    for number in range(230):
        ground.file(b"a" * 120 + b"/%d" % number)
    ground.git("init", "-q")


def _modules(text: bytes) -> Deed:
    """A `.gitmodules` that git's own checker takes for an attack."""

    def build(ground: Ground) -> None:
        ground.file(b".gitmodules", text)
        ground.file(b"sub/.gitmodules", text)

    return build


def _attributes_too_long(ground: Ground) -> None:
    ground.file(b".gitattributes", b"*" + b" a" * 5000 + b"\n")


def _attributes_folder(ground: Ground) -> None:
    for name in (b".gitattributes", b".gitmodules", b".gitignore"):
        ground.file(name + b"/inside")


def _broken_repository(ground: Ground) -> None:
    """A `.git` that is a folder but no repository: garbage where the index and HEAD should be."""
    ground.file(b".git/HEAD", b"\xff" * 5000)
    ground.file(b".git/index", b"DIRC\0\0\0\2\xff\xff\xff\xff" + b"\xff" * 300)
    ground.file(b".git/config", b"[core\n\tbare = maybe\n[include]\n\tpath = /dev/zero\n")
    ground.file(b"file")


def _traps_in_git(ground: Ground) -> None:
    """What the user's git is read from may be a FIFO or a link that leads away."""
    ground.fifo(b".git/HEAD")
    ground.fifo(b".git/index")
    ground.link(b".git/packed-refs", b"/dev/zero")
    ground.link(b".git/refs", b"..")
    ground.file(b"file")


def _head_leads_out(ground: Ground) -> None:
    ground.file(b".git/HEAD", b"ref: ../../outside/secret\n")
    ground.file(b".git/index", b"")
    ground.file(b".git/objects/info/alternates", os.fsencode(ground.outside) + b"\n")
    ground.file(b"file")


def _objects_as_content(ground: Ground) -> None:
    """Files that hold what git keeps in its own files."""
    ground.file(b"tree", b"tree 0\0")
    ground.file(b"commit", b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nx\n")
    ground.file(b"blob", b"blob 5\0hello")
    ground.file(b"pack", b"PACK\0\0\0\2\0\0\0\0" + bytes(20))
    ground.file(b"HEAD", b"ref: refs/heads/main\n")
    ground.folder(b"refs")
    ground.folder(b"objects")


_RETURN = b'[submodule "x"]\n\tpath = "sub\r"\n\turl = ./x\n'
_OPTION_URL = b'[submodule "x"]\n\tpath = sub\n\turl = -u./payload\n'
_WAY_OUT = b'[submodule "../../evil"]\n\tpath = ../sub\n\turl = ./x\n\tupdate = !touch evil\n'

GIT_SHAPES = (
    Tree("git-repository", _repository, _GIT),
    Tree(
        "git-nested",
        _nested,
        {b"fe/.git": "version control", b"be/.git": "version control"},
    ),
    Tree("git-nested-unborn", _nested_unborn, {b"sub/.git": "version control"}),
    Tree(
        "git-nested-three-deep",
        _nested_three_deep,
        {
            b"a/.git": "version control",
            b"a/b/.git": "version control",
            b"a/b/c/.git": "version control",
        },
    ),
    Tree("git-file", _git_file, {b"sub/.git": "version control"}),
    Tree("git-submodule", _submodule, {**_GIT, b"lib/.git": "version control"}),
    Tree("git-worktree", _worktree, {**_GIT, b"other/.git": "version control"}),
    Tree("git-bare-below", _bare_below),
    Tree("git-bare-whole", _bare_whole),
    Tree("git-line-ends", _line_ends, _GIT),
    Tree("git-ident", _ident),
    Tree("git-encoding", _encoding),
    Tree("git-filters", _filters, _GIT),
    Tree("git-large-file-pointer", _large_file_pointer),
    Tree("git-ignores-itself", _ignores_itself, _GIT),
    Tree("git-hostile-ignores", _hostile_ignores, _GIT),
    Tree("git-modules-return", _modules(_RETURN)),
    Tree("git-modules-option", _modules(_OPTION_URL)),
    Tree("git-modules-way-out", _modules(_WAY_OUT)),
    Tree("git-modules-garbage", _modules(b"[submodule\n\0\xff")),
    Tree("git-attributes-too-long", _attributes_too_long),
    Tree("git-attributes-folder", _attributes_folder),
    Tree("git-broken", _broken_repository, _GIT),
    Tree("git-traps", _traps_in_git, _GIT),
    Tree("git-head-leads-out", _head_leads_out, _GIT),
    Tree("git-objects-as-content", _objects_as_content),
)
