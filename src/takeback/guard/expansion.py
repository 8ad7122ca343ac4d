"""Expands the words of a shell command as bash does, as far as its text alone tells.

A word is built of characters with a mark each: quoted, literal, or the result of an expansion that
is split. What is not known before the command runs is one character, `UNKNOWN`.
"""

import re

from takeback.guard.findings import UNKNOWN, Flow, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tree_sitter import Node

    from takeback.guard.scope import Scope

    Substitute = Callable[[Node, Scope], Flow]
    Marked = list[tuple[str, str]]

QUOTED, LITERAL, SPLIT, BREAK = "q", "l", "s", "b"
_MOST_WORDS = 200
_GLOB = frozenset("*?[")
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_CODED = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})"
    r"|0?([0-7]{1,3})|(.))",
    re.DOTALL,
)
_SEQUENCE = re.compile(r"(-?\d{1,4})\.\.(-?\d{1,4})|([a-zA-Z])\.\.([a-zA-Z])")


def source_of(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "surrogateescape")


def decode_escapes(text: str) -> str:
    """A text with the escapes of `$'…'`, of `printf` and of `echo -e` carried out."""

    def decoded(found: "re.Match[str]") -> str:
        two, four, eight, octal, other = found.groups()
        number = two or four or eight
        if number or octal:
            code = int(number, 16) if number else int(octal, 8) & 0xFF
            return chr(code) if code < 0x110000 else UNKNOWN
        return _ESCAPES.get(other, "\\" + other)

    return _CODED.sub(decoded, text)


class Expander:
    """Expands nodes in one state of the shell; command substitutions are judged on the way."""

    __slots__ = ("_flows", "_scope", "_substitute")

    def __init__(self, scope: "Scope", substitute: "Substitute") -> None:
        self._scope = scope
        self._substitute = substitute
        self._flows: list[Flow] = []

    def words(self, *nodes: "Node") -> "list[Word]":
        """The words that one word of the command line becomes; none for an empty list."""
        self._flows = []
        raw = "".join(map(source_of, nodes))
        if len(nodes) == 1 and nodes[0].type == "word" and not _needs_work(raw):
            return [Word(raw, raw)]
        parts = [self._marked(node, quoted=False) for node in nodes]
        if all(part is None for part in parts):
            return []
        marked = [each for part in parts for each in part or ()]
        return [self._word(each, raw) for each in _split(_braces(marked))]

    def text(self, node: "Node") -> Word:
        """A word where the shell does not split: the value of an assignment, a file to write."""
        self._flows = []
        marked = self._marked(node, quoted=False) or []
        return self._word([(char, mark) for char, mark in marked if mark != BREAK], source_of(node))

    def _word(self, marked: "Marked", raw: str) -> Word:
        value = "".join(char for char, _ in marked)
        is_glob = any(char in _GLOB and mark != QUOTED for char, mark in marked)
        listed = any(each.kind == "listing" for each in self._flows)
        secret = any(each.has_secret for each in self._flows)
        flow = next((each for each in self._flows if each.kind != "listing"), None)
        is_file = raw.startswith(("<(", ">("))
        source = flow.kind if flow is not None and not is_file else ""
        return Word(value, raw, is_glob or listed, flow if is_file else None, secret, source)

    def _marked(self, node: "Node", *, quoted: bool) -> "Marked | None":
        """The marked characters of a node; None if it is an array without members."""
        maker = _MAKERS.get(node.type)
        if maker is not None:
            return maker(self, node, quoted)
        return [(char, LITERAL) for char in source_of(node)]

    def _plain(self, node: "Node", quoted: bool) -> "Marked":
        return list(_unescaped(source_of(node), quoted=quoted))

    def _raw(self, node: "Node", _quoted: bool) -> "Marked":
        return _all(source_of(node)[1:-1], QUOTED)

    def _ansi(self, node: "Node", _quoted: bool) -> "Marked":
        return _all(decode_escapes(source_of(node)[2:-1]), QUOTED)

    def _string(self, node: "Node", _quoted: bool) -> "Marked | None":
        source = node.text or b""
        made: Marked = []
        at, start = 1 if not source.startswith(b"$") else 2, node.start_byte
        for child in node.named_children:
            if child.type == "string_content":
                continue
            gap = source[at : child.start_byte - start].decode("utf-8", "surrogateescape")
            made += _unescaped(gap, quoted=True)
            inner = self._marked(child, quoted=True)
            if inner is None and len(node.named_children) == 1:
                return None
            made += inner or []
            at = child.end_byte - start
        end = len(source) - 1 if source.endswith(b'"') else len(source)
        made += _unescaped(source[at:end].decode("utf-8", "surrogateescape"), quoted=True)
        return made or [("", QUOTED)]

    def _concatenation(self, node: "Node", quoted: bool) -> "Marked | None":
        made: Marked = []
        for child in node.children:
            made += self._marked(child, quoted=quoted) or []
        return made

    def _variable(self, node: "Node", quoted: bool) -> "Marked | None":
        name = source_of(node).removeprefix("$")
        return self._value(name, quoted)

    def _value(self, name: str, quoted: bool) -> "Marked | None":
        mark = QUOTED if quoted else SPLIT
        if name == "IFS" and "IFS" not in self._scope.variables:
            return [(" ", mark)]
        if name in {"@", "*"} or name in self._scope.variables:
            return self._members(self._scope.variables.get(name, (Word(UNKNOWN),)), mark)
        single = self._scope.single(name)
        if single is None:
            return [(UNKNOWN, mark)]
        return self._members((single,), mark)

    def _members(self, members: "tuple[Word, ...]", mark: str) -> "Marked | None":
        if not members:
            return None
        made: Marked = []
        for count, word in enumerate(members[:_MOST_WORDS]):
            if count:
                made.append((" ", BREAK))
            if word.is_glob or word.has_secret:
                self._flows.append(
                    Flow("listing" if word.is_glob else "text", has_secret=word.has_secret)
                )
            made += _all(word.value, mark)
        return made or [("", mark)]

    def _expansion(self, node: "Node", quoted: bool) -> "Marked | None":
        mark = QUOTED if quoted else SPLIT
        inner = source_of(node)[2:-1]
        found = re.match(r"([A-Za-z_]\w*|[@*#?$!0-9-])(\[[^\]]*\])?", inner)
        if found is None:
            return [(UNKNOWN, mark)]
        name, rest = found[1], inner[found.end() :]
        value = self._indexed(name, found[2], quoted)
        if not rest:
            return value
        return self._operated(node, value, rest, mark)

    def _indexed(self, name: str, index: "str | None", quoted: bool) -> "Marked | None":
        members = self._scope.variables.get(name)
        if index is None or members is None:
            return self._value(name, quoted)
        if index in {"[@]", "[*]"}:
            return self._members(members, QUOTED if quoted else SPLIT)
        number = index[1:-1]
        if number.isdecimal() and int(number) < len(members):
            return self._members((members[int(number)],), QUOTED if quoted else SPLIT)
        return [(UNKNOWN, QUOTED if quoted else SPLIT)]

    def _operated(
        self, node: "Node", value: "Marked | None", rest: str, mark: str
    ) -> "Marked | None":
        """`${name:-word}` and its kind; of what cannot be told, nothing is."""
        text = "".join(char for char, _ in value or ())
        if rest[:2] in {":-", ":=", ":+"} or rest[:1] in {"-", "=", "+"}:
            operator = rest.lstrip(":")[:1]
            word = self._argument(node, rest.lstrip(":")[1:])
            is_unset = text in {"", UNKNOWN}
            chosen = word if is_unset != (operator == "+") else text
            return _all(chosen, mark)
        if UNKNOWN in text:
            return [(UNKNOWN, mark)]
        return _all(_changed(text, rest), mark)

    def _argument(self, node: "Node", plain: str) -> str:
        children = [each for each in node.named_children if each.type != "variable_name"]
        if len(children) != 1 or source_of(children[0]) != plain:
            return plain if not _needs_work(plain) else UNKNOWN
        marked = self._marked(children[0], quoted=False)
        return "".join(char for char, _ in marked or ())

    def _substituted(self, node: "Node", quoted: bool) -> "Marked":
        flow = self._substitute(node, self._scope)
        self._flows.append(flow)
        mark = QUOTED if quoted else SPLIT
        if flow.kind == "text":
            return _all(flow.text.rstrip("\n"), mark)
        if flow.kind == "listing" and len(flow.paths) == 1:
            return _all(flow.paths[0].value, QUOTED)
        return [(UNKNOWN, mark)]

    def _process(self, node: "Node", _quoted: bool) -> "Marked":
        self._flows.append(self._substitute(node, self._scope))
        return _all("/dev/fd/63", QUOTED)

    def _arithmetic(self, node: "Node", _quoted: bool) -> "Marked":
        waiting = list(node.named_children)
        while waiting:
            child = waiting.pop()
            if child.type == "command_substitution":
                self._flows.append(self._substitute(child, self._scope))
            waiting += child.named_children
        text = source_of(node)[3:-2].strip()
        return _all(text if text.isdecimal() else "0", QUOTED)


_MAKERS: "dict[str, Callable[[Expander, Node, bool], Marked | None]]" = {
    "word": Expander._plain,
    "command_name": Expander._concatenation,
    "raw_string": Expander._raw,
    "ansi_c_string": Expander._ansi,
    "string": Expander._string,
    "translated_string": Expander._concatenation,
    "concatenation": Expander._concatenation,
    "simple_expansion": Expander._variable,
    "expansion": Expander._expansion,
    "command_substitution": Expander._substituted,
    "process_substitution": Expander._process,
    "arithmetic_expansion": Expander._arithmetic,
}


def _needs_work(text: str) -> bool:
    return any(char in "\\*?[{}$`'\"" for char in text)


def _all(text: str, mark: str) -> "Marked":
    return [(char, mark) for char in text]


def _unescaped(text: str, *, quoted: bool) -> "Iterator[tuple[str, str]]":
    at, size = 0, len(text)
    while at < size:
        char = text[at]
        if char == "\\" and at + 1 < size:
            following = text[at + 1]
            at += 2
            if following == "\n":
                continue
            if quoted and following not in '"\\$`':
                yield "\\", QUOTED
            yield following, QUOTED
            continue
        yield char, QUOTED if quoted else LITERAL
        at += 1


def _changed(text: str, rest: str) -> str:
    """A known value with `:offset:length`, `#`, `%`, `/`, `^` or `,` applied; else unknown."""
    offsets = re.fullmatch(r":\s*(-?\d+)(?::(\d+))?", rest)
    if offsets:
        start = int(offsets[1])
        end = start + int(offsets[2]) if offsets[2] else None
        return text[start:end]
    simple = {"^^": text.upper(), ",,": text.lower(), "^": text[:1].upper() + text[1:],
              ",": text[:1].lower() + text[1:]}  # fmt: skip
    if rest in simple:
        return simple[rest]
    replaced = re.fullmatch(r"(//?)([^/*?\[\]$`\\'\"]+)(?:/([^$`\\'\"]*))?", rest)
    if replaced:
        return text.replace(replaced[2], replaced[3] or "", -1 if replaced[1] == "//" else 1)
    return _without_ends(text, rest)


def _without_ends(text: str, rest: str) -> str:
    import fnmatch

    pattern = rest.lstrip("#%")
    if rest[:1] not in {"#", "%"} or any(char in "$`\\'\"" for char in pattern):
        return UNKNOWN
    is_long = rest[:2] in {"##", "%%"}
    if rest[0] == "#":
        cuts = range(len(text) + 1)
        for cut in reversed(cuts) if is_long else cuts:
            if fnmatch.fnmatchcase(text[:cut], pattern):
                return text[cut:]
        return text
    ends = range(len(text), -1, -1)
    for cut in reversed(ends) if is_long else ends:
        if fnmatch.fnmatchcase(text[cut:], pattern):
            return text[:cut]
    return text


def _braces(marked: "Marked") -> "list[Marked]":
    """The words that braces make of one: `a{b,c}` is `ab` and `ac`."""
    done: list[Marked] = []
    waiting = [marked]
    while waiting:
        word = waiting.pop(0)
        made = _first_brace(word) if len(waiting) + len(done) < _MOST_WORDS else None
        if made is None:
            done.append(word)
        else:
            waiting = made + waiting
    return done


def _first_brace(word: "Marked") -> "list[Marked] | None":
    starts: list[int] = []
    for at, (char, mark) in enumerate(word):
        if mark != LITERAL or char not in "{}":
            continue
        if char == "{":
            starts.append(at)
        elif starts:
            start = starts.pop()
            choices = _choices(word[start + 1 : at])
            if choices:
                return [word[:start] + each + word[at + 1 :] for each in choices]
    return None


def _choices(inner: "Marked") -> "list[Marked]":
    found = _SEQUENCE.fullmatch("".join(char for char, _ in inner))
    if found:
        return _sequence(found)
    parts: list[Marked] = [[]]
    for char, mark in inner:
        if char == "," and mark == LITERAL:
            parts.append([])
        else:
            parts[-1].append((char, mark))
    return parts if len(parts) > 1 else []


def _sequence(found: "re.Match[str]") -> "list[Marked]":
    if found[1]:
        first, last = int(found[1]), int(found[2])
    else:
        first, last = ord(found[3]), ord(found[4])
    step = 1 if last >= first else -1
    numbers = range(first, last + step, step)[:_MOST_WORDS]
    return [_all(str(each) if found[1] else chr(each), LITERAL) for each in numbers]


def _split(words: "list[Marked]") -> "list[Marked]":
    """The fields of words: what an expansion brought is split at blanks."""
    fields: list[Marked] = []
    for word in words:
        current: Marked = []
        begun = False
        for char, mark in word:
            if mark == BREAK or (mark == SPLIT and char in " \t\n"):
                if begun:
                    fields.append(current)
                current, begun = [], False
            else:
                current.append((char, mark))
                begun = begun or bool(char) or mark == QUOTED
        if begun or (not word):
            fields.append(current)
    return fields[:_MOST_WORDS]
