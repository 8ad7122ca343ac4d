"""Git's ignore rules for folders, with patterns that cannot make us hang.

A pattern is matched segment by segment: a segment without wildcards is compared as text, any other
is an expression that needs no backtracking, and `**` stands for any number of segments.

Only folders are asked about, so a pattern's trailing slash makes no difference. Whatever is
over a limit makes the answer "not ignored", because a folder that is captured without need is
the harmless mistake; so a `!` pattern over a limit stands for one that matches everything.
"""

import os

from takeback.worktree.git.user_git import find_repository, is_regular, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    _RuleFile = tuple[bytes, tuple["_Rule", ...]]
    """The folder that the rules of a file are relative to, and the rules, the last first."""

LARGEST_FILE = 256 << 10
MOST_PATTERNS = 2000
LONGEST_PATTERN = 512
MOST_WILDCARDS = 32
LONGEST_PATH = 1024
MOST_WORK = 1_500_000
"""What one question may cost, in characters looked at (some 15 ns each)."""
MOST_COMPILED = 32 << 10
"""Characters of pattern that are compiled for all questions together (some 15 us each)."""

_WORK_OF_ONE_TRY = 20
_STAR = ".*"
_CLASSES = {
    "alpha": "A-Za-z",
    "digit": "0-9",
    "alnum": "0-9A-Za-z",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\t-\r ",
    "blank": r"\t ",
    "cntrl": r"\x01-\x1f\x7f",
    "print": " -~",
    "graph": "!-~",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9A-Fa-f",
}
"""What a class like `[:alpha:]` is in an expression."""


class IgnoreRules:
    """The ignore rules of one work tree, read from its files when they are first needed.

    They come from each `.gitignore` between the top of the repository that a folder is in and
    the folder, and from that repository's `info/exclude`. A nested repository starts afresh.
    """

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._chains: dict[bytes, tuple[_RuleFile, ...]] = {}
        self._verdicts: dict[bytes, bool] = {}
        self._dropped: list[tuple[bytes, int]] = []
        self._budget = _Budget()

    @property
    def dropped(self) -> tuple[tuple[bytes, int], ...]:
        """The patterns that were not obeyed, each as (file, line number).

        Line 0 is a whole file. Of the patterns that are too many only the first is named.
        """
        return tuple(self._dropped)

    def ignores_folder(self, path: bytes) -> bool:
        self._budget.work = MOST_WORK
        parent = b""
        for part in path.strip(b"/").split(b"/"):
            folder = _join(parent, part)
            if not part or len(folder) > LONGEST_PATH:
                return False
            if folder not in self._verdicts:
                self._verdicts[folder] = _judge(folder, self._chain(parent), self._budget)
            if self._verdicts[folder]:
                return True
            parent = folder
        return False

    def _chain(self, folder: bytes) -> "tuple[_RuleFile, ...]":
        known = self._chains.get(folder)
        if known is not None:
            return known
        chain = [self._load(folder, self._root, _join(folder, b".gitignore"))]
        repository = find_repository(os.path.join(self._root, folder))
        if repository is not None:
            chain.append(self._load(folder, repository.common_dir, b"info/exclude"))
        elif folder:
            chain.extend(self._chain(folder.rpartition(b"/")[0]))
        self._chains[folder] = tuple(file for file in chain if file[1])
        return self._chains[folder]

    def _load(self, base: bytes, folder: bytes, name: bytes) -> "_RuleFile":
        text = read_regular(folder, name, LARGEST_FILE)
        if text is None:
            if not is_regular(os.path.join(folder, name)):
                return base, ()
            self._dropped.append((name, 0))
            return base, (_nothing_ignored(),)
        rules: list[_Rule] = []
        lines = list(_pattern_lines(text))
        for number, line in lines[:MOST_PATTERNS]:
            try:
                rule = _parse_pattern(line)
            except _NotObeyedError:
                self._dropped.append((name, number))
                rule = _nothing_ignored() if line.startswith("!") else None
            if rule is not None:
                rules.append(rule)
        if len(lines) > MOST_PATTERNS:
            self._dropped.append((name, lines[MOST_PATTERNS][0]))
            if any(line.startswith("!") for _, line in lines[MOST_PATTERNS:]):
                rules.append(_nothing_ignored())
        return base, tuple(reversed(rules))


class _NotObeyedError(Exception):
    """A pattern that is over one of the limits above, or too odd to be worth the code."""


class _MalformedError(Exception):
    """A pattern that is not well formed: git lets it match nothing."""


class _SpentError(Exception):
    """The answer would cost more than it may."""


class _Budget:
    """What may still be spent: work on this question, compiling on all of them."""

    def __init__(self) -> None:
        self.work = MOST_WORK
        self.compiling = MOST_COMPILED


class _Segment:
    """What stands between two slashes: a text, or an expression that is compiled when needed."""

    __slots__ = ("_compiled", "_expression", "text")

    def __init__(self, tokens: list[str]) -> None:
        is_text = all(len(token.removeprefix("\\")) == 1 and token != "." for token in tokens)
        self.text = "".join(token[-1] for token in tokens) if is_text else None
        self._expression = "" if is_text else _expression(tokens)
        self._compiled: re.Pattern[str] | None = None

    def matches(self, name: str, budget: _Budget) -> bool:
        budget.work -= _WORK_OF_ONE_TRY + len(name)
        if self.text is None and self._compiled is None:
            budget.compiling -= len(self._expression) // 2
        if min(budget.work, budget.compiling) < 0:
            raise _SpentError
        if self.text is not None:
            return self.text == name
        if self._compiled is None:
            import re

            self._compiled = re.compile(self._expression, re.DOTALL)
        return self._compiled.fullmatch(name) is not None


class _Rule:
    """One pattern. None among its segments is a `**`: any number of segments, also none."""

    __slots__ = ("_segments", "last", "negated")

    def __init__(self, segments: "list[_Segment | None]", *, negated: bool) -> None:
        self._segments = segments
        self.last = segments[-1].text if segments[-1] is not None else None
        self.negated = negated

    def matches(self, names: list[str], budget: _Budget) -> bool:
        """Whether the segments are those of a path; only the last `**` has to try again."""
        segments = self._segments
        at = place = back = 0
        star = -1
        while place < len(names):
            segment = segments[at] if at < len(segments) else None
            if segment is not None and segment.matches(names[place], budget):
                at, place = at + 1, place + 1
            elif segment is None and at < len(segments):
                star, back = at, place
                at += 1
            elif star >= 0:
                back += 1
                at, place = star + 1, back
            else:
                return False
        return not any(segments[at:])


def _nothing_ignored() -> _Rule:
    return _Rule([None, _Segment([_STAR])], negated=True)


def _judge(folder: bytes, chain: "tuple[_RuleFile, ...]", budget: _Budget) -> bool:
    """Ask the files one after the other; in each, the last pattern that matches decides."""
    names = folder.decode("latin-1").split("/")
    try:
        for base, rules in chain:
            below = names[base.count(b"/") + 1 :] if base else names
            for rule in rules:
                if rule.last in (None, names[-1]) and rule.matches(below, budget):
                    return not rule.negated
    except _SpentError:
        pass
    return False


def _join(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name


def _pattern_lines(text: bytes) -> "Iterator[tuple[int, str]]":
    """Split a rule file as git does: what is neither blank nor a comment, with its number."""
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, whole in enumerate(lines, 1):
        if not whole.startswith(b"#"):
            line = whole.removesuffix(b"\r").partition(b"\0")[0]
            pattern = _without_trailing_spaces(line.decode("latin-1"))
            if pattern:
                yield number, pattern


def _without_trailing_spaces(line: str) -> str:
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if backslashes % 2 and len(bare) < len(line) else bare


def _parse_pattern(line: str) -> _Rule | None:
    """Make a rule of one line, or None if it can never match."""
    if len(line) > LONGEST_PATTERN:
        raise _NotObeyedError
    body = line.removeprefix("!").removesuffix("/")
    try:
        segments = _split_segments(body)
    except _MalformedError:
        return None
    if "/" in body and _has_stray_double_star(body):
        raise _NotObeyedError
    if not body:
        return None
    parts: list[_Segment | None] = [] if "/" in body else [None]
    for tokens in segments[body.startswith("/") :]:
        if len(tokens) < 2 or set(tokens) != {_STAR}:
            parts.append(_Segment(tokens))
        elif not parts or parts[-1] is not None:
            parts.append(None)
    if parts[-1] is None:
        parts.append(_Segment([_STAR]))  # a `**` at the end is what is inside, not the folder
    return _Rule(parts, negated=line.startswith("!"))


def _has_stray_double_star(body: str) -> bool:
    """Whether the first wildcard is a `**` that ends a segment but does not begin it.

    Git then lets it cross slashes, against its own documentation (`foo**/bar`, `foo/b**`).
    """
    start = min((at for at in map(body.find, "*?[\\") if at >= 0), default=len(body))
    rest = body[start:].lstrip("*")
    stars = len(body) - start - len(rest)
    begins = start == 0 or body[start - 1] == "/"
    return stars > 1 and not begins and rest[:1] in ("", "/")


def _split_segments(body: str) -> list[list[str]]:
    """Take a pattern apart at its slashes, each segment a list of tokens.

    A token is an expression for one character, or for any number of them.
    """
    import re

    segments: list[list[str]] = [[]]
    wildcards = at = 0
    while at < len(body):
        char = body[at]
        wildcards += char in "*?["
        at += 1
        if char == "/":
            segments.append([])
        elif char == "[":
            token, at = _bracket(body, at)
            segments[-1].append(token)
        elif char in "*?":
            segments[-1].append(_STAR if char == "*" else ".")
        else:
            if char == "\\":
                char = body[at : at + 1]
                at += 1
            if char == "":
                raise _MalformedError
            if char == "/":
                raise _NotObeyedError  # an escaped slash: legal, and of no use to anybody
            segments[-1].append(re.escape(char))
    if wildcards > MOST_WILDCARDS:
        raise _NotObeyedError
    return segments


def _bracket(body: str, at: int) -> tuple[str, int]:
    """Read a set of characters from behind its `[`: an expression, and where it ends."""
    import re

    item = re.compile(r"\[:([^\]]*):\]|\\?(.)(?:-(?!\])\\?(.))?", re.DOTALL)
    is_negated = body[at : at + 1] in ("!", "^")
    first = at = at + is_negated
    chosen = ""
    while body[at : at + 1] != "]" or at == first:
        match = item.match(body, at)
        if match is None:
            raise _MalformedError
        name, low, high = match.groups()
        if name is not None:
            if name not in _CLASSES:
                raise _MalformedError
            chosen += _CLASSES[name]
        else:
            chosen += f"{re.escape(low)}-{re.escape(max(low, high or low))}"
        at = match.end()
    return f"[{'^' if is_negated else ''}{chosen}]", at + 1


def _expression(tokens: list[str]) -> str:
    """An expression for one segment that needs no backtracking.

    Between two stars the first place that fits is as good as any later one, so the choice is
    final (an atomic group). Only the last star has to try again, and it can only move on.
    """
    pieces: list[str] = [""]
    for token in tokens:
        if token == _STAR:
            pieces.append("")
        else:
            pieces[-1] += token
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
    return f"{pieces[0]}{middle}{_STAR}{pieces[-1]}"
