"""Names that mean something to git, to Windows, to a Mac, to a shell, to a terminal or to us."""

from hostile.ground import Ground
from hostile.tree import Deed, Tree

# Spellings that some file system, somewhere, takes for `.git`. None is left out: here they are
# ordinary names, and only the git view must not show them as they are.
_LIKE_GIT = {
    "git-upper": b".GIT",
    "git-mixed": b".Git",
    "git-short": b"git~1",
    "git-short-upper": b"GIT~1",
    "git-trailing-space": b".git ",
    "git-trailing-dot": b".git.",
    "git-trailing-dots-and-spaces": b".git . .",
    "git-stream": b".git:stream",
    "git-index-allocation": b".git::$INDEX_ALLOCATION",
    "git-backslash": b".git\\config",
    "git-after-backslash": b"a\\.git",
    "git-zero-width-inside": ".g\u200cit".encode(),
    "git-zero-width-after": ".git\u200d".encode(),
    "git-byte-order-mark": "\ufeff.git".encode(),
    "git-direction-mark": ".gi\u200et".encode(),
    "git-modules-short": b"gitmod~1",
    "git-modules-hash": b"gi7eba~1",
    "git-modules-zero-width": ".gitm\u200codules".encode(),
    "git-attributes-upper": b".GITATTRIBUTES",
    "git-directory-suffix": b"x.git",
}
_DOTS = {
    "dots-three": b"...",
    "dots-space": b".. ",
    "dot-space": b". ",
    "dots-backslash": b"..\\..\\evil",
    "dots-zero-width": ".\u200c.".encode(),
    "dots-leaders": "\u2024\u2024".encode(),
    "dots-full-width": "\uff0e\uff0e".encode(),
    "dots-percent": b"%2e%2e%2fevil",
}
_WINDOWS = {
    "windows-con": b"con",
    "windows-con-ending": b"CON.txt",
    "windows-nul": b"nul",
    "windows-trailing-dot": b"file.",
    "windows-trailing-space": b"file ",
    "windows-drive": b"c:evil",
    "windows-short": b"PROGRA~1",
}
_CONTROL = {
    "control-newline": b"two\nlines",
    "control-only-newline": b"\n",
    "control-return": b"over\rwritten",
    "control-tab": b"a\tb",
    "control-bell": b"\a",
    "control-first": b"\x01",
    "control-delete": b"\x7f",
    "control-colour": b"\x1b[31mred\x1b[0m",
    "control-clipboard": b"\x1b]52;c;ZXZpbA==\a",
    "control-c1": b"\xc2\x9b31m",
}
_NOT_UTF8 = {
    "bytes-ff": b"\xff\xfe",
    "bytes-cut-short": b"caf\xe2\x82",
    "bytes-stray": b"\xa0\xa1",
    "bytes-bad-second": b"\xc3\x28",
    "bytes-surrogate": b"\xed\xa0\x80",
    "bytes-overlong-slash": b"\xc0\xaf",
    "bytes-overlong-nul": b"\xc0\x80",
    "bytes-too-high": b"\xf4\x90\x80\x80",
}
_UNICODE = {
    "unicode-bidi": "\u202egpj.exe".encode(),
    "unicode-invisible": "\u200b".encode(),
    "unicode-tags": "a\U000e0041\U000e0042".encode(),
    "unicode-combining": b"e" + "\u0301".encode() * 60,
}
_OPTIONS = {
    "option-rf": b"-rf",
    "option-help": b"--help",
    "option-dash": b"-",
    "pathspec-glob": b":(glob)**",
    "pathspec-not": b":!evil",
    "glob-star": b"*",
    "glob-class": b"[a-z]?",
    "shell-command": b"$(touch evil)`touch evil`;&|",
    "shell-quotes": b"'\"\\",
    "shell-home": b"~root",
    "html": b"<img src=x onerror=alert(1)>",
}
_LENGTH = {
    "length-255": b"n" * 255,
    "length-255-wide": "\u20ac".encode() * 85,
    "length-255-worst-to-escape": b".git" + b"\xff%\n" * 83,
    "length-255-like-git": b".git" + b" ." * 125 + b" ",
}
_OURS = {
    "ours-staging": b".takeback-staging",
    "ours-folder": b".takeback",
    "ours-partial": b".takeback-tmp-00000000",
    "ours-lock": b"takeback.lock",
    "ours-manifest": b".takeback-manifest",
}
_VERSION_CONTROL = {
    "version-control-git": b".git",
    "version-control-jj": b".jj",
    "version-control-hg": b".hg",
    "version-control-svn": b".svn",
}


def _everywhere(name: bytes) -> Deed:
    """Use the name for a file, a folder with something in it, an empty folder and a link."""

    def build(ground: Ground) -> None:
        ground.file(b"beside", b"an ordinary neighbour\n")
        ground.file(name, b"a file called " + name)
        ground.file(b"1/" + name + b"/inside", b"in a folder called " + name)
        ground.folder(b"2/" + name)
        ground.link(b"3/" + name, name)

    return build


def _together(*names: bytes) -> Deed:
    """Put files of these names side by side, each with content of its own."""

    def build(ground: Ground) -> None:
        for name in names:
            ground.file(name, b"I am " + name)

    return build


def _sorting(ground: Ground) -> None:
    """Names whose order differs between files and folders in git."""
    for name in (b"a-b", b"a.b", b"a0", b"ab", b"a\x01", b"A"):
        ground.file(name, name)
        ground.file(b"f" + name + b"/in", name)
    ground.file(b"a/in", b"folder a sorts as a/")
    for name in (b"f-", b"f0", b"fa", b"f."):
        ground.file(name, name)


def _each_byte(ground: Ground) -> None:
    """One file for every single byte that can be a name."""
    for byte in set(range(1, 256)) - set(b"./"):
        ground.file(bytes([byte]), b"%d" % byte)


def _each_byte_between(ground: Ground) -> None:
    """One file for every byte in the middle of a name."""
    for byte in set(range(1, 256)) - set(b"/"):
        ground.file(b"x" + bytes([byte]) + b"y", b"%d" % byte)


_LOOKS_ESCAPED = (
    b".GIT", b"%2EGIT", b"%2egit", b"%.GIT", b"=2EGIT", b"\\x2eGIT", b"\\056GIT", b"_GIT",
    b"~.GIT", b"@.GIT", b".GIT%", b".GIT~", b"%25", b"%", b"%%", b"%2", b"%2525", b"=", b"==",
    b".git%20", b".git ", b"git~1", b"git%7E1", b"git%7e1", b"%67it~1",
)  # fmt: skip


_SINGLE = {
    **_LIKE_GIT,
    **_DOTS,
    **_WINDOWS,
    **_CONTROL,
    **_NOT_UTF8,
    **_UNICODE,
    **_OPTIONS,
    **_LENGTH,
    **_OURS,
}

NAMES = (
    *(Tree(f"name-{what}", _everywhere(name)) for what, name in _SINGLE.items()),
    *(
        Tree(
            f"name-{what}",
            _everywhere(name),
            dict.fromkeys((name, b"1/" + name, b"2/" + name, b"3/" + name), "version control"),
        )
        for what, name in _VERSION_CONTROL.items()
    ),
    Tree("name-pair-case", _together(b"Readme", b"README", b"readme")),
    Tree("name-pair-normal-forms", _together("é".encode(), "e\u0301".encode())),
    Tree("name-pair-looks-escaped", _together(*_LOOKS_ESCAPED)),
    Tree("name-sorting", _sorting),
    Tree("name-each-byte", _each_byte),
    Tree("name-each-byte-between", _each_byte_between),
)
