"""What must not be shown: files that hold secrets, and secrets that stand in any file.

The store keeps every byte of a file. In files that are known for it (`.env`) names are shown and
values are not; of key files nothing is shown. Everywhere else the shapes of well-known tokens are
masked, with what tells their kind left in place. What tools are given and say is masked before it
is stored, also by the values of secret files (`step_text`).
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

PLAIN, VALUES, WHOLE = "plain", "values", "whole"
"""How much of a file is secret: only tokens in it, its values, or all of it."""

MASK = "••••".encode()
SHORTEST_VALUE = 8
"""Characters: a shorter value of a secret file stands in other texts by chance."""

_VALUE_NAMES = frozenset(
    b"""
    .env .envrc .npmrc .yarnrc .yarnrc.yml .netrc _netrc .pypirc .pgpass .my.cnf .htpasswd
    .git-credentials .dockercfg .s3cfg .boto credentials credentials.json credentials.toml
    credentials.yml credentials.yaml secrets.json secrets.toml secrets.yml secrets.yaml
    kubeconfig application_default_credentials.json service-account.json serviceaccount.json
    terraform.tfvars terraform.tfstate accesstokens.json msal_token_cache.json
    .credentials.json auth.json .vault-token secrets.properties local.settings.json
    """.split()
)
_VALUE_PLACES = frozenset(
    (b".kube/config", b".aws/config", b".docker/config.json", b"gh/hosts.yml")
)
_VALUE_ENDINGS = (b".env", b".tfvars", b".kubeconfig")
_SAMPLES = (b".example", b".sample", b".template", b".dist", b".defaults")
_WHOLE_ENDINGS = (
    b".pem", b".key", b".p12", b".pfx", b".p8", b".jks", b".jceks", b".keystore", b".kdbx",
    b".ppk", b".gpg", b".keytab",
)  # fmt: skip

_PLACED = frozenset(place.rpartition(b"/")[2] for place in _VALUE_PLACES)
_HINTS = (*_VALUE_NAMES, *_PLACED, *_VALUE_ENDINGS, *_WHOLE_ENDINGS, b"id_")

_BEGINS, _ENDS = b"-----BEGIN ", b"-----END "
_PRIVATE = b"PRIVATE KEY"
_RUNS = rb"[0-9A-Za-z_.-]{16,}+"
"""What a token can be made of. Such a run is searched by itself, so that no text takes long."""
_LONG_RUN = 1000
_TOKENS = rb"""(?x)
    (?<![0-9A-Za-z])
    (?:
      (?P<aws>A(?:KI|SI)A)[0-9A-Z]{16}(?![0-9A-Za-z])
    | (?P<github>gh[opsru]_)[0-9A-Za-z]{30,}+
    | (?P<fine>github_pat_)[0-9A-Za-z_]{20,}+
    | (?P<gitlab>glpat-)[0-9A-Za-z_-]{20,}+
    | (?P<stripe>[rs]k_(?:live|test)_)[0-9A-Za-z]{16,}+
    | (?P<sk>sk-)(?=[A-Za-z_-]{0,100}+[0-9])[0-9A-Za-z_-]{16,}+
    | (?P<slack>xox[a-z]-)[0-9A-Za-z-]{10,}+
    | (?P<npm>npm_)[0-9A-Za-z]{30,}+
    | (?P<pypi>pypi-)[0-9A-Za-z_-]{50,}+
    | (?P<google>AIza)[0-9A-Za-z_-]{30,}+
    | (?P<huggingface>hf_)[0-9A-Za-z]{30,}+
    | (?P<sendgrid>SG\.)[0-9A-Za-z_-]{16,}+\.[0-9A-Za-z_-]{16,}+
    | (?P<shopify>shp(?:at|ca|pa|ss)_)[0-9A-Fa-f]{32}
    | (?P<digitalocean>do[opr]_v1_)[0-9a-f]{40,}+
    | (?P<twilio>AC|SK)[0-9a-f]{32}(?![0-9A-Za-z])
    | (?P<jwt>eyJ)[0-9A-Za-z_-]{6,}+\.[0-9A-Za-z_-]{6,}+\.[0-9A-Za-z_-]*+
    )
"""
_TELEGRAM = (
    rb"(?:(?<![0-9A-Za-z])|(?<=bot))(?P<bot>[0-9]{8,10}:)AA[0-9A-Za-z_-]{30,40}+(?![0-9A-Za-z_-])"
)
"""The colon stands in no other token, so this one is searched in the whole line."""
_NAME = rb"""(?xs)
    ( \s* (?:[\#-]\s*)? (?:export\s+)?
      (?: //[\w./:-]*:_\w+ | ["']?[A-Za-z_][\w.-]{0,99}["']? )
      \s* (?: = | :(?=[\s"']|$) ) \s* )
    (.*)
"""
"""A name, also as `.npmrc` writes them, the mark after it, and the value."""


_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_QUOTES = b" \t\"',;"
_PARTS = rb"""(?x)
    (?<!\\)"(?P<double> (?: [^"\\] | \\. ){8,4000}+ )" (?! \s*+ : )
  | '(?P<single> [^']{8,4000}+ )' (?! \s*+ : )
  | :// [^\s/:@"']{0,100}+ : (?P<login> [^\s@"']{1,200}+ ) @
  | \b password \s++ (?P<told> \S++ )
  | ^ (?: [^\s:]*+ : ){4} (?P<fifth> [^\s:]++ ) $
  | ^ [\w.@-]{1,64}+ : (?P<second> [^\s:/]++ ) $
  | ^ (?P<before> [^\s"'#]++ ) \s++ \#
"""
"""In JSON on one line; in a URL; in `.netrc`, `.pgpass` and `.htpasswd`; before a comment."""

_ESCAPES = ((rb"\n", b"\n"), (rb"\"", b'"'), (rb"\/", b"/"), (rb"\\", b"\\"))

_COPIES = (b"~", b".bak", b".backup", b".old", b".orig", b".save")
_SECTION = rb"\[\[?[A-Za-z_][\w .:@/-]{0,99}\]\]?"


def how_secret(path: bytes) -> str:
    folder, _, name = path.lower().rpartition(b"/")
    name = _without_copy(name)
    is_ssh_key = name.startswith(b"id_") and b"." not in name
    if is_ssh_key or name.endswith(_WHOLE_ENDINGS):
        return WHOLE
    if name.endswith(_SAMPLES):
        return PLAIN
    place = folder.rpartition(b"/")[2] + b"/" + name
    is_known = name in _VALUE_NAMES or place in _VALUE_PLACES
    if is_known or _is_environment(name) or name.endswith(_VALUE_ENDINGS):
        return VALUES
    return PLAIN


def among(names: "Iterable[bytes]", added_names: "Iterable[str]" = ()) -> "list[bytes]":
    """The names of a folder's entries that are those of secret files, wherever the folder is."""
    every = list(names)
    joined = b"\n".join(every).lower()
    # One folder in hundreds has any: most are done here.
    if not added_names and not any(hint in joined for hint in _HINTS):
        return []
    # A file that is secret in a certain folder only counts as one; its values are looked for.
    return [
        name
        for name in every
        if how_secret(name) != PLAIN
        or name.lower() in _PLACED
        or added(name, (each.rpartition("/")[2] for each in added_names)) != PLAIN
    ]


def values_in(data: bytes, how: str) -> "Iterator[str]":
    """What a secret file must not show elsewhere: its values, or all lines of a key."""
    import re

    is_whole = how == WHOLE
    for line in data.splitlines():
        text = line.strip()
        if text.startswith((_BEGINS, _ENDS, b"#")) or text in _PUNCTUATION:
            continue
        named = None if is_whole else re.fullmatch(_NAME, text)
        value = text if named is None else named[2]
        parts = (value,) if is_whole else (value, *_parts(value))
        for each in dict.fromkeys(part.strip(_QUOTES) for part in parts):
            for bare in _as_used(each):
                if len(bare) >= SHORTEST_VALUE and not bare.startswith(_BEGINS):
                    yield bare.decode("utf-8", "replace")


def forms_of(value: str) -> "Iterator[str]":
    """A value, and what it is in JSON, in a URL, and in base64 wherever it begins there."""
    from binascii import b2a_base64

    data = value.encode("utf-8", "replace")
    yield value
    yield value.replace("\\", r"\\").replace('"', r"\"")
    yield "".join(chr(each) if each in _UNRESERVED else f"%{each:02X}" for each in data)
    for skipped in range(3):
        # The last characters depend on what follows.
        whole = len(data[skipped:]) // 3 * 3
        coded = b2a_base64(data[skipped : skipped + whole], newline=False).decode()
        if len(coded) >= SHORTEST_VALUE:
            yield from (coded, coded.replace("+", "-").replace("/", "_"))


def _parts(value: bytes) -> "Iterator[bytes]":
    """What in a value is one by itself: what is quoted, is before a comment, or is a password."""
    import re

    for found in re.finditer(_PARTS, value):
        yield found[found.lastgroup or 0]


def _as_used(value: bytes) -> "Iterator[bytes]":
    """A value as it is written, and its lines as programs get them."""
    yield value
    if b"\\" in value:
        for written, meant in _ESCAPES:
            value = value.replace(written, meant)
        yield from value.splitlines()


def _without_copy(name: bytes) -> bytes:
    """The name of the file that this one is a copy of."""
    for ending in _COPIES:
        name = name.removesuffix(ending)
    return name


def _is_environment(name: bytes) -> bool:
    """`.env` and what goes by its name: `.env.local`, `.env-prod`, `.envrc`, `prod.env`."""
    is_own = name.startswith(b".env") and not name[4:].isalpha()
    return is_own or name in (b".env", b".envrc") or name.endswith(b".env")


def added(path: bytes, names: "Iterable[str]") -> str:
    """How secret a file is by names that somebody added: `NAME`, `FOLDER/NAME`, `*.ENDING`.

    A name that is only known to be secret says nothing of what is in it, so all of it is.
    """
    lower = b"/" + path.lower()
    for name in names:
        wanted = name.lower().encode("utf-8", "surrogateescape")
        if wanted.startswith(b"*"):
            if lower.endswith(wanted[1:]) and len(wanted) > 1:
                return WHOLE
        elif lower.endswith(b"/" + wanted.strip(b"/")) and wanted.strip(b"/"):
            return WHOLE
    return PLAIN


def without_tokens(text: str) -> str:
    """A prompt or a command as it may be shown: without tokens of well-known kinds."""
    data = text.encode("utf-8", "surrogateescape")
    if not _may_hold_token(data):
        return text
    lines = data.splitlines(keepends=True)
    mask = Mask(b"", lines)
    shown = b"".join(mask.line(number) for number in range(len(lines)))
    return shown.decode("utf-8", "surrogateescape")


class Mask:
    """Shows the lines of one text without its secrets, and counts how many it hid."""

    __slots__ = ("_has_sections", "_how", "_keys", "_lines", "count")

    def __init__(self, path: bytes, lines: "Sequence[bytes]", how: str = "") -> None:
        self._how = how or how_secret(path)
        self._has_sections = not _is_environment(_without_copy(path.lower().rpartition(b"/")[2]))
        self._lines = lines
        self._keys = _key_lines(lines)
        self.count = 0

    def line(self, number: int) -> bytes:
        line = self._lines[number]
        if number in self._keys or (self._how == WHOLE and line.strip()):
            return self._hidden(line)
        if self._how == VALUES:
            return self._without_value(line)
        return self._without_tokens(line)

    def _hidden(self, line: bytes) -> bytes:
        self.count += 1
        return MASK + _ending(line)

    def _without_value(self, line: bytes) -> bytes:
        import re

        text = line.strip()
        if not text or text in _PUNCTUATION or self._is_section(text):
            return line
        if text.startswith(b"#") and b"=" not in text and b":" not in text:
            return self._without_tokens(line)
        named = re.fullmatch(_NAME, line.rstrip(b"\r\n"))
        if named is None or not _is_name(*named.groups()):
            return self._hidden(line)
        name, value = named.groups()
        if value.strip(b" \t\"',;{[") == b"":
            return line
        self.count += 1
        return bytes(name + MASK + _ending(line))

    def _is_section(self, text: bytes) -> bool:
        """The head of a section; not a list of values, nor a line in the middle of one."""
        import re

        return self._has_sections and re.fullmatch(_SECTION, text) is not None

    def _without_tokens(self, line: bytes) -> bytes:
        if not _may_hold_token(line):
            return line
        import re

        if b":AA" in line:
            line, hidden = re.subn(_TELEGRAM, lambda found: found["bot"] + MASK, line)
            self.count += hidden
        return re.sub(_RUNS, lambda run: self._without_token(run[0]), line)

    def _without_token(self, run: bytes) -> bytes:
        import re

        # A long run is no token that has others in it: it is one itself, or none.
        most = 1 if len(run) > _LONG_RUN else 0
        tokens = re.compile(_TOKENS)
        if most and not tokens.match(run):
            return run
        shown, hidden = tokens.subn(lambda found: found[found.lastgroup or 0] + MASK, run, most)
        self.count += hidden
        return shown


_PUNCTUATION = frozenset((b"{", b"}", b"},", b"[", b"]", b"],", b"---"))
_MARKS = (
    b"AKIA", b"ASIA", b"gh", b"github_pat_", b"glpat-", b"k_live_", b"k_test_", b"sk-", b"xox",
    b"npm_", b"pypi-", b"AIza", b"eyJ", b"hf_", b"SG.", b"shp", b"_v1_", b":AA", b"SK", b"AC",
)  # fmt: skip


def _may_hold_token(line: bytes) -> bool:
    """Whether it is worth loading and asking the expression; nearly every line says no."""
    return len(line) > 16 and any(mark in line for mark in _MARKS)


def may_hold_cut_token(text: str) -> bool:
    """Whether a text was cut, and perhaps in the middle of a token, which then has no shape."""
    tail = text[-_LONG_RUN:].encode("utf-8", "replace")
    return text.endswith("…") and any(mark in tail for mark in _MARKS)


def _is_name(name: bytes, value: bytes) -> bool:
    """Whether what stands before a `=` is a name; the end of base64 text looks alike."""
    bare = name.strip(b" \t=:\"'#")
    return bool(value.strip(b"=")) or bare.upper() == bare or name.rstrip().endswith(b":")


_AROUND = b" \t\r\n\"'`\\n+,;()"
_SHORT = 3
"""What may stand after the first line of a key in a program, and how much more is harmless."""


def _key_lines(lines: "Sequence[bytes]") -> "set[int]":
    """The lines inside private keys, also where a hunk shows only the middle of one."""
    inside: set[int] = set()
    begun = False
    for number, line in enumerate(lines):
        if _BEGINS in line and _PRIVATE in line:
            begun = True
            if len(line.rpartition(b"-----")[2].strip(_AROUND)) > _SHORT:
                inside.add(number)
            if _ENDS in line:  # the whole key on one line, as JSON writes it
                inside.add(number)
                begun = False
        elif _ENDS in line and _PRIVATE in line:
            begun = False
        elif begun:
            inside.add(number)
    return inside


def _ending(line: bytes) -> bytes:
    return line[len(line.rstrip(b"\r\n")) :]
