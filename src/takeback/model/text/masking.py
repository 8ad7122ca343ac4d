"""One masker for all doors: what of the words and files of a project may be shown.

`secrets` knows the files and the shapes of tokens. Here are the rules for words that people type
(prompts, labels, commands): also what stands behind `password=` and the like is a secret. The
store keeps prompts and labels as they were; only what is shown is masked (`step_text` masks what
tools are given and say before it is stored).
"""

from takeback.model.text import secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Sequence

_PASSWORDS = (
    "password", "passwort", "passwd", "passphrase", "passcode", "pwd", "identified by", "kennwort",
    "contraseña", "mot de passe", "senha",
)  # fmt: skip
_SHORT_NAMES = ("pass", "pw", "rootpw")
_HINTS = (
    "pass", "pw", "secret", "token", "key", "cred", "bearer", "basic ", "authorization", "://",
    "mysql", "mariadb", "curl", "wget", "identified", "kennwort", "contraseña", "senha",
)  # fmt: skip
_NAMED = r"""(?xi)
    (?P<name> passwor[dt] | passwd | passphrase | passcode | pwd | secret | token
      | kennwort | contraseña | mot\ de\ passe | senha
      | (?:api|private|access|encryption|signing|master)[_\ -]?key | key
      | credentials? | (?<![a-z])creds?
      | (?<![a-z])pass(?![a-z]) | (?<![a-z])(?:root)?pw(?![a-z])
      | identified[ ]by )
    (?P<more> [0-9]{0,3}+ (?: [_.-][a-z0-9]{1,12}+ ){0,2}+ )
    (?P<mark> \\{0,4}+ ["'`]? \]?
      (?: \?? [ \t]{0,8} : [ \t]{0,8} [&A-Za-z_][\w.<>|?[\]]{0,30}+ [ \t]{1,8}+ = [ \t]{1,8}+
      | [ \t]{0,8}+ (?: := | => | -> | → | == | = | : | \uff1a ) [ \t]{0,8}+
      | [ \t]{1,8}+ (?: (?: is | to | was | as | (?: should | must | will ) [ ] be )
        :?+ [ \t]{1,8}+ )?+ ) )
    (?P<quote> \\{0,4}+ ["'`] )?+
"""
"""A word that announces a secret, and what stands between the two. Nothing in it can go back
further than a few characters, so that no text takes long."""
_BEGIN, _DASHES = "-----BEGIN ", "-----"
_LONGEST_HEAD = 80
_ESCAPED = {quote: rf"[^{quote}\\\n]*+" for quote in "\"'`"}
"""What a value between quotes is made of; quotes that are escaped end at the next one."""
_VALUES = {quote: rf"(?:[^{quote}\\\n]|\\.|{quote * 2})*+" for quote in "\"'`"}
_BARE = r"[^\s\"'`,;&)}\]|]*+"
_REST = r"(?:[,;&)}\]|](?![\s,;&)}\]|\"'`]|\Z|[\w.-]{0,40}+=)[^\s\"'`,;&)}\]|]*+)*+"
"""What goes on behind a sign that may end a value, and does not: `x&y`, but not `x&name=`."""
_LOOKED_AT = 400
_HEADER = r"(?i)\b(?P<kind>bearer|basic)[ \t]{1,8}+(?P<value>[0-9a-z+/=._~-]{12,}+)"
_AUTHORIZATION = (
    r"(?i)(?P<head>\bauthorization\\{0,4}+[\"']?\]?[ \t]{0,8}+(?:=>|[:=])[ \t]{0,8}+\\{0,4}+[\"']?"
    r"(?![a-z_.]{1,60}+[(\[])"
    r"(?:[a-z]{1,20}+[ \t]{1,8}+)?+)(?P<value>[^\s\"',;$<{*\[]{6,}+)"
)
_LOGIN = r"(?P<head>://[^\s/:@\"'<>]{0,100}:)(?P<value>[^\s/\"'<>]{1,200})(?=@)"
_ACCOUNT = (
    r"(?P<head>(?<![\w.:/@-])[\w.-]{1,64}+:)(?P<value>[^\s:/@\"'<>]{3,100}+)"
    r"(?=@(?:localhost\b|tcp\(|(?:[\w-]{1,63}+\.){1,8}+[a-z]{2}))"
)
"""`user:password@host` without a scheme before it."""
_ELEMENT = (
    r"(?i)(?P<head><[\w:.-]{0,30}(?:passw|passphrase|secret)[\w:.-]{0,30}>)"
    r"(?P<value>(?!(?-i:\$[A-Z_{(])|[{<*])[^<\n]{1,400}+)(?=</)"
)
"""`<password>…</password>`"""
_SHORT_OPTION = (
    r"(?P<head>(?:(?<=\s)|^)-p)"
    r"(?P<value>(?!\$[A-Z_{(]|[<*{]|\d{1,5}:)[^\s\"']{2,}+|\"[^\"\n]++|'[^'\n]++)"
)
_SSHPASS = r"(?P<head>\bsshpass[ \t]{1,4}+-p[ \t]{0,4}+[\"']?)(?P<value>(?!\$[A-Z_{(]|<)[^\s\"']++)"
_USER_OPTION = (
    r"(?P<head>(?<=\s)(?:-u|--user|--proxy-user)[ \t=]{0,4}+[\"']?[^\s:\"'$]{1,100}+:)"
    r"(?P<value>(?!\$[A-Z{(]|<|\*)[^\s\"']{1,200}+)"
)
_DATABASES = ("mysql", "mariadb")
_FETCHERS = ("curl", "wget")
_PROGRAMS = (
    "redis-cli", "login", "zip", "mongo", "sqlcmd", "ldap", "useradd", "usermod", "7z", "rar",
    "sudo", "passwd", "cryptsetup", "openssl",
)  # fmt: skip
_PROGRAM_OPTION = r"""(?x)
    (?P<head> (?<![\w.-])
      (?: redis-cli \b ARGUMENTS -a
        | (?: (?: docker | podman | nerdctl | buildah | skopeo | crane | helm [ ] registry
            | az | az [ ] acr | oc | cf ) [ ] login
          | mongo\w*+ | user(?:add|mod) ) \b ARGUMENTS -p
        | (?: (?:un)?zip | sqlcmd ) \b ARGUMENTS -P
        | openssl \b ARGUMENTS -k
        | htpasswd (?= ARGUMENTS -\w{0,8}b ) (?: [ \t]++ [^\s|;&>-][^\s|;&]{0,199}+ )?+
          (?: [ \t]++ -\w{1,12}+ (?: [ \t]++ \d{1,2}+ )?+ )++
          (?: [ \t]++ [^\s|;&>-][^\s|;&]{0,199}+ ){1,2}
        | ldap[a-z]{1,12}+ \b ARGUMENTS -w )
      [ \t]{1,4}+ ["']?
    | (?<![\w.-]) (?: 7z[ar]? | (?:un)?rar ) \b ARGUMENTS -h?p["']? )
    (?P<value> (?! \$[A-Z_{(] | [<>*-] | \d{1,5}: ) [^\s"'|;&]{1,200}+ )
""".replace("ARGUMENTS", r"(?: [^|;&\n] | (?<=\\)\n ){0,200}? \s")
"""What stands before the option may go on in the next line, behind a backslash."""
_PIPED = r"""(?x)
    (?P<head> \b(?:echo|printf) [ \t]++ (?: -[a-z]++ [ \t]++ )?+ ["']?
      (?: [\w.-]{1,64}+ : )?+ )
    (?P<value> (?! \$[A-Z_{(] | [<*] ) [^\s"'|]{1,100}+ )
    (?= ["']? [ \t]*+ \| [ \t]*+ (?: sudo [ \t]++ )?+
      (?: -\w*S | chpasswd | passwd | cryptsetup | \w{1,20}+ [ \t]++ login ) \b )
"""
"""`echo ana:x | chpasswd`: what gets a password from its input."""
_CUT = r"(?P<head>\b(?:A[KS]IA|gh[opsru]_|github_pat_|glpat-|[rs]k_(?:live|test)_|sk-|xox[a-z]-|npm_|pypi-|AIza|eyJ|hf_|SG\.|shp(?:at|ca|pa|ss)_|do[opr]_v1_))[0-9A-Za-z_.-]{6,}+(?=\u2026|\Z)"  # noqa: E501
"""A token of which the end was cut off when it was stored."""

_NO_VALUES = frozenset(
    "none null nil true false undefined str string int bytes bool object any required optional"
    " include omit same-origin empty missing here there changeme example xxx"
    " yes no is not was are and or for".split()
)
_ABOUT = frozenset(
    "name names id ids file files path dir count type kind arn ref url uri length len size ttl"
    " expiry expires limit field format version policy reset prefix header index usage budget"
    " manager store stdin fd prompt command env min max age rule rules label title text"
    " md txt py js ts html".split()
)
"""What a secret is not, but something about it: `password_file=`, `token_count=`."""
_ALGORITHMS = frozenset(
    "md5 sha1 sha256 sha512 argon2 argon2id pbkdf2 oauth2 base64 utf8 utf-8 base32".split()
)
_PLACEHOLDER = r"""(?x)
    \$ [A-Z_][A-Z0-9_]*+ | \$ (?: [0-9@*?] | [A-Za-z_]*(?i:password|passwd|secret|token|key)\w*+ )
    | \$ [{(] .*+ | % [A-Z_]++ % | % [sd] | % \( .*+ | [<{[(] [^0-9]*+ | [*.xX\u2022\u2026_-]++
    | `.*+ | -[A-Za-z] | --[a-z-]++
"""
"""What stands for a value: a variable, a template, a row of stars."""
_CODE = r"""(?x)
    (?: [a-z_][A-Za-z_]*+ \. | [a-z_][A-Za-z_]*+ (?=[(\[]) )
    (?: [A-Za-z_]++ \.? )*+ (?: [(\[] .*+ )?
"""
"""`get_password()`, `os.environ['X']`, `self.password`: code, without any digit in its names."""
_IDENTIFIER = r"[a-z_]++|[A-Z_]++|[a-z]++(?:[A-Z][a-z]++)++"
_OBJECTS = (
    "self cls this os sys settings config conf cfg env process ctx context args opts options"
    " request req response form data app event params props state secrets vault kwargs user row"
).split()
_DIVIDED = str.maketrans("-.", "__")
_PATHS = ("/", "./", "../", "~/")
_GIVES = ("=", ":=", "=>", "->", "→", "\uff1a", ":")
_SHORTEST = 4
_LONG_ENOUGH = 16
_LONG_AS_ANY_KEY = 20
_VARIED = 8
_BEFORE = 24
_HEX = frozenset("0123456789abcdef-")


class Masker:
    """What may be shown. `is_open` shows everything; `names` are the user's own secret files."""

    __slots__ = ("_names", "is_open")

    def __init__(
        self, *, is_open: bool = False, names: "Callable[[], Iterable[str]] | None" = None
    ) -> None:
        self.is_open = is_open
        self._names = names

    def words(self, text: str) -> str:
        """A prompt, a label, a summary, a title or a reason, as it may be shown."""
        return text if self.is_open else without_secrets(text)

    def how_secret(self, path: bytes) -> str:
        """How much of a file is secret, by its name."""
        if self.is_open:
            return secrets.PLAIN
        how = secrets.how_secret(path)
        if how == secrets.PLAIN and self._names is not None:
            return secrets.added(path, self._names())
        return how

    def lines(self, path: bytes, lines: "Sequence[bytes]", how: str = "") -> "secrets.Mask | None":
        if self.is_open:
            return None
        return secrets.Mask(path, lines, how or self.how_secret(path))


def without_secrets(text: str) -> str:
    """Words as they may be shown: without tokens, private keys, passwords."""
    shown = secrets.without_tokens(_without_keys(text))
    lower = shown.lower()
    if any(hint in lower for hint in _HINTS):
        shown = _without_values(shown)
    if (" -" in shown or "|" in shown) and any(program in lower for program in _PROGRAMS):
        shown = _without_typed(shown)
    if "@" in shown and ":" in shown:
        shown = _without_accounts(shown)
    if secrets.may_hold_cut_token(shown):
        import re

        shown = re.sub(_CUT, lambda found: found["head"] + _MASK, shown)
    return shown


_MASK = secrets.MASK.decode()
CLOSED = Masker()
"""Masks what is known to be secret without any settings."""


def _without_keys(text: str) -> str:
    """Without what stands inside private keys; a summary has them on one line, or half of one."""
    parts: list[str] = []
    done, at = 0, text.find(_BEGIN)
    while at >= 0:
        head = text.find(_DASHES, at + len(_BEGIN))
        if head < 0:
            break
        if head - at > _LONGEST_HEAD or "PRIVATE KEY" not in text[at:head]:
            at = text.find(_BEGIN, at + len(_BEGIN))
            continue
        start = head + len(_DASHES)
        end = text.find("-----END ", start)
        parts += text[done:start], _MASK
        done = len(text) if end < 0 else end
        at = text.find(_BEGIN, done)
    return "".join((*parts, text[done:]))


def _without_values(text: str) -> str:
    import re

    text = re.sub(_LOGIN, _masked, text)
    text = re.sub(_AUTHORIZATION, _masked, text)
    text = re.sub(_ELEMENT, _masked, text)
    text = re.sub(_SSHPASS, _masked, text)
    text = re.sub(_HEADER, _without_header, text)
    lower = text.lower()
    for words, expression in ((_DATABASES, _SHORT_OPTION), (_FETCHERS, _USER_OPTION)):
        if any(word in lower for word in words):
            text = _without_options(text, words, expression)
    named = re.compile(_NAMED)
    parts: list[str] = []
    done = at = 0
    while (found := named.search(text, at)) is not None:
        at = start = found.end()
        end = _end_of_secret(text, start, found)
        if end > start:
            parts += text[done:start], _MASK
            done = at = end
    return "".join((*parts, text[done:]))


def _masked(found: "re.Match[str]") -> str:
    return found["head"] + _MASK


def _without_typed(text: str) -> str:
    import re

    text = re.sub(_PROGRAM_OPTION, _masked, text)
    return re.sub(_PIPED, _masked, text) if "|" in text else text


def _without_accounts(text: str) -> str:
    import re

    def shown(found: "re.Match[str]") -> str:
        return _masked(found) if _is_mixed(found["value"]) else found[0]

    return re.sub(_ACCOUNT, shown, text)


def _without_options(text: str, words: "tuple[str, ...]", expression: str) -> str:
    """Without passwords in the options of certain programs, line by line."""
    import re

    def shown(line: str) -> str:
        lower = line.lower()
        return re.sub(expression, _masked, line) if any(w in lower for w in words) else line

    # A line that ends with a backslash goes on in the next one.
    return "".join(map(shown, re.split(r"(?<=[^\\]\n)", text)))


def _end_of_secret(text: str, start: int, found: "re.Match[str]") -> int:
    """Where the secret ends that begins at `start`; there itself if there is none."""
    import re

    quote = found["quote"] or ""
    kinds = _ESCAPED if len(quote) > 1 else _VALUES
    expression = kinds[quote[-1]] if quote else _BARE
    # It is not looked at further than a value is long, so that no text takes long.
    value = re.compile(expression).match(text, start, start + _LOOKED_AT)
    if value is None or not _is_secret(value[0], found, text[value.end() : value.end() + 1]):
        return start
    whole = re.compile(expression if quote else expression + _REST).match(text, start)
    return whole.end() if whole is not None else value.end()


def _without_header(found: "re.Match[str]") -> str:
    value = found["value"]
    is_likely = _is_mixed(value) or len(value) >= _LONG_AS_ANY_KEY
    return found[0][: -len(value)] + _MASK if is_likely else found[0]


def _is_secret(value: str, found: "re.Match[str]", after: str) -> bool:
    name, mark = found["name"].lower(), found["mark"].strip("\"'`\\]? \t")
    # Behind a type, or "the password is: x".
    mark = "=" if mark.endswith(" =") else mark[-1:] if mark.endswith(("s:", "o:", "e:")) else mark
    if not value or _stands_for_a_value(value, found):
        return False
    is_about = not _ABOUT.isdisjoint(found["more"].lower().translate(_DIVIDED).split("_"))
    # Words in backquotes are names of things: "the password `field`".
    has_quote = bool(found["quote"]) and bool(mark or not found["quote"].endswith("`"))
    is_flag = not mark and _is_flag(found)
    if name in _PASSWORDS and not is_about:
        return _is_password(value, mark, after, is_sure=is_flag or has_quote)
    if name in _SHORT_NAMES and not is_about:
        is_close = mark in ("=", ":") and not found["mark"].endswith(" ")
        # "pass=12" counts tests.
        is_long = len(value) >= _SHORTEST or not value.isdigit()
        is_given = is_long and (is_close or is_flag or (name != "pass" and bool(mark)))
        return bool(mark or is_flag) and (has_quote or is_given or _is_mixed(value))
    is_named = name not in ("key", *_SHORT_NAMES) and not is_about and (is_flag or mark in _GIVES)
    if is_named and _is_given(value, found, after, is_sure=is_flag or has_quote):
        return not _is_hash(value.lower()) or name != "token"
    may_be_hash = name == "key" or not (mark or is_flag)
    return _is_random(value) and not (may_be_hash and _is_hash(value.lower()))


def _is_given(value: str, found: "re.Match[str]", after: str, *, is_sure: bool) -> bool:
    """Whether what follows `token=` or `secret:` is one; in doubt it is."""
    if value.startswith(_PATHS) or (value.isdigit() and not is_sure):
        return False
    if is_sure or _is_mixed(value):
        return True
    mark = found["mark"]
    if mark.rstrip().endswith(":"):
        # Words go on after a word; a value stands alone.
        return after not in (" ", "\t") and value[-1:] not in ".!?"
    # With blanks around it is code: "token = match".
    return not mark.endswith((" ", "\t"))


def _is_password(value: str, mark: str, after: str, *, is_sure: bool) -> bool:
    """Whether what follows `password` is one; in doubt it is."""
    if is_sure or (mark in _GIVES and mark != ":"):
        return True
    value = value.rstrip(":,") or value
    is_odd = _is_mixed(value) or value[1:] != value[1:].lower() != value[1:].upper()
    if mark == ":":
        # Words go on after a word; a value stands alone.
        return is_odd or after not in (" ", "\t") or value[-1:] in ".!?"
    if value.lower().rstrip(".!?,") in _ALGORITHMS or value.startswith(_PATHS):
        return False
    if not mark:
        is_odd = is_odd and any(map(str.isdigit, value)) and len(value) > _SHORTEST + 1
        is_odd = is_odd or value.rstrip(".!?").isdigit()
    return is_odd and len(value) >= _SHORTEST


def _stands_for_a_value(value: str, found: "re.Match[str]") -> bool:
    """Whether it is a placeholder, a type, or code that gets the value from somewhere."""
    import re

    name = found["name"].lower()
    bare = value.lower().rstrip(".!?:,")
    is_folder = name == "pwd" and value.startswith(_PATHS)
    if is_folder or bare in _NO_VALUES or bare == name or re.fullmatch(_PLACEHOLDER, value):
        return True
    if re.fullmatch(_CODE, value) and ("(" in value or "[" in value or _is_attribute(value)):
        return True
    if found["name"].isupper() and found["mark"] == "=":
        return False  # a variable of a shell, and no code
    is_other_name = any(word in bare for word in (*_PASSWORDS, "secret", "token", "_key"))
    return is_other_name and bare not in _PASSWORDS and _is_identifier(value)


def _is_attribute(value: str) -> bool:
    first, _, last = value.partition(".")
    is_name = any(word in last.lower() for word in (*_PASSWORDS, "secret", "token", "key"))
    return first in _OBJECTS or is_name


def _is_identifier(value: str) -> bool:
    import re

    return re.fullmatch(_IDENTIFIER, value) is not None and value.lower() != "secret"


def _is_flag(found: "re.Match[str]") -> bool:
    """Whether the name is that of an option: `--db-password VALUE`."""
    before = found.string[max(found.start() - _BEFORE, 0) : found.start()]
    return before.split(" ")[-1].startswith("-")


def _is_random(value: str) -> bool:
    """Whether letters and digits are mixed as in no word, path or date that people write."""
    if len(value) < _LONG_ENOUGH or not _is_mixed(value) or len(set(value[:200])) < _VARIED:
        return False
    if "/" not in value:
        return ":" not in value
    # A path, or base64: that has everything, and no dots.
    kinds = (str.isupper, str.islower, str.isdigit)
    return (
        len(value) >= _LONG_AS_ANY_KEY * 2 - 8
        and "." not in value
        and all(any(map(kind, value)) for kind in kinds)
    )


def _is_hash(value: str) -> bool:
    """A SHA or a UUID: nearly always the name of something."""
    if not set(value) <= _HEX:
        return False
    dashes = [at for at, letter in enumerate(value) if letter == "-"]
    return (len(value) == 36 and dashes == [8, 13, 18, 23]) or len(value) in (40, 64)


def _is_mixed(value: str) -> bool:
    """Whether there is more than letters: digits, or signs that no name has."""
    return any(map(str.isalpha, value)) and any(not c.isalpha() and c not in "-_." for c in value)
