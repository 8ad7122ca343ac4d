"""What is known about programs: `knowledge.toml`, read once and looked up by subcommand and flags.

An entry is the words of a subcommand and the options that have to be there: `compose down -v`.
The entry with the most words counts; of two, the graver.
"""

import re

from takeback.model.beyond.effects import (
    CLASSES,
    COMPENSABLE,
    DESTRUCTIVE,
    IN_TREE,
    INSIDE,
    IRREVERSIBLE,
    LOCAL,
    PROGRAM,
    READ,
    Outside,
    gravity,
)
from takeback.model.reasons import Reason
from takeback.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from takeback.guard.call import Call
    from takeback.guard.findings import Flow, Word


_NO_TEXTS: "Mapping[str, str]" = {}


class Program(Value):
    """A program of the knowledge file."""

    name: str
    entries: "tuple[tuple[tuple[str, ...], str], ...]"
    default: str = "program"
    values: str = ""
    kind: str = ""
    instead: "Mapping[str, str]" = _NO_TEXTS
    inverse: "Mapping[str, str]" = _NO_TEXTS
    reason: str = ""
    targets: bool = False
    """Its words are targets or scripts of the project, which say nothing."""


_ASKS = frozenset(("--version", "--help", "help", "-h", "-V", "version"))
_programs: "dict[str, Program]" = {}
_sentences: "dict[str, str]" = {}


def programs() -> "dict[str, Program]":
    """All programs by name; the file is read at the first call."""
    if not _programs:
        import pkgutil
        import tomllib

        data = pkgutil.get_data("takeback.guard", "knowledge.toml") or b""
        for name, table in tomllib.loads(data.decode()).items():
            _add(name, table)
    return _programs


def with_text(reason: Reason) -> Reason:
    """A reason with its words, from `reasons.toml`, where it has none of its own."""
    facts = dict(reason.facts)
    if facts.get("text"):
        return reason
    if not _sentences:
        import pkgutil
        import tomllib

        data = pkgutil.get_data("takeback.guard", "reasons.toml") or b""
        _sentences.update(tomllib.loads(data.decode()))
    text = _sentences.get(reason.code, "")
    return reason.with_facts(text=text) if text else reason


def _add(name: str, table: "dict[str, object]") -> None:
    names = str(table.get("programs", name)).split()
    entries = [
        (tuple(entry.split()), effect) for effect in CLASSES for entry in _listed(table.get(effect))
    ]
    for each in names:
        _programs[each] = Program(
            each,
            tuple(entries),
            str(table.get("class", "program")),
            str(table.get("values", "")),
            str(table.get("kind", "")),
            _texts(table.get("instead")),
            _texts(table.get("inverse")),
            str(table.get("reason", "")),
            bool(table.get("targets")),
        )


def _listed(value: object) -> "list[str]":
    return [str(each) for each in value] if isinstance(value, list) else []


def _texts(value: object) -> "dict[str, str]":
    if isinstance(value, dict):
        return {str(name): str(text) for name, text in value.items()}
    return {"": value} if isinstance(value, str) else {}


def judge(call: "Call", program: Program) -> "Flow":
    """Judge a command by what the file says of its program."""
    if call.args and all(text in _ASKS for text in call.texts):
        return call.add(READ, call.name, "reads")
    entry, effect = find(program, call)
    rule = ".".join((program.name, *(word for word in entry if word[:1] not in "-*")))
    key = " ".join(entry)
    instead = program.instead.get(key) or program.instead.get("", "")
    inverse = program.inverse.get(key) or program.inverse.get("", "")
    if effect in {IRREVERSIBLE, COMPENSABLE} and _stays_here(call, program):
        texts = [call.name, *call.texts]
        loses = _verb_class([word for text in texts for word in _parts(text)])
        here = DESTRUCTIVE if loses == DESTRUCTIVE else LOCAL
        return call.add(here, rule, "destroys" if here == DESTRUCTIVE else "sends-local")
    if program.kind == "database" and effect in _CHANGING and _is_remote(call):
        return call.publish("database", rule=rule, code="changes-database")
    if effect in {IRREVERSIBLE, COMPENSABLE}:
        from takeback.guard.programs.network import host_in

        host = host_in(call.texts)
        outside = Outside(program.kind or "outside", call.raw, host, effect, inverse)
        return call.add(
            effect, rule, program.reason or "outside", instead=instead, inverse=inverse,
            outside=outside, kind=outside.kind, host=host,
        )  # fmt: skip
    ends = _written_outside(call, program, effect)
    if ends:
        from takeback.guard.programs.files import overwrite

        return overwrite(call, ends, rule=rule)
    return call.add(effect, rule, program.reason, instead=instead, inverse=inverse)


_CONVERTERS = frozenset("convert magick ffmpeg pandoc iconv cpio cwebp jupytext uniq xxd".split())
_WRITING = {"tree": ("-o",), "base64": ("-o",), "openssl": ("-out",), "gpg": ("-o", "--output")}


def _written_outside(call: "Call", program: Program, effect: str) -> "list[Word]":
    """Paths outside the tree that a program writes which otherwise reads, or formats files."""
    words = [word for word in call.args if not word.value.startswith("-")]
    if call.name == "csplit":
        return call.options("-f --prefix").all("-f", "--prefix")
    if call.name in _WRITING:
        return call.options(" ".join(_WRITING[call.name])).all(*_WRITING[call.name])
    if call.name in _CONVERTERS:
        words = words[-1:] if len(words) > 1 else []
    elif effect != INSIDE or (program.default != INSIDE and call.name != "yq"):
        return []
    return [word for word in words if _is_outside(call, word)]


def _is_outside(call: "Call", word: "Word") -> bool:
    looks = word.value.startswith(("/", "~", "..")) or "/../" in word.value
    return looks and call.scope.where(call.scope.absolute(word.value)) != IN_TREE


def _begins(words: "list[str]", named: "list[str]") -> bool:
    """Whether operands begin with the words of an entry; `**` stands for some words before it."""
    from fnmatch import fnmatchcase

    if named[:1] == ["**"]:
        return any(fnmatchcase(word, named[1]) for word in words[1:6])
    if len(words) < len(named):
        return False
    return all(
        word == name or ("*" in name and fnmatchcase(word, name))
        for word, name in zip(words, named, strict=False)
    )


_TASKED = frozenset(("gradle", "gradlew", "sbt"))
"""Programs that name a task with the module it is of: `:lib:publish`."""


def find(program: Program, call: "Call") -> "tuple[tuple[str, ...], str]":
    """The entry that fits best, and its class."""
    options = call.options(program.values)
    words = [word.value for word in options.operands]
    if program.name in _TASKED:
        words = [
            word.lstrip("+").rpartition(":")[2] if word[:1] in ":+" else word for word in words
        ]
    best: tuple[tuple[str, ...], str] = ((), program.default)
    weight = (-1, 0)
    for entry, effect in program.entries:
        named = [word for word in entry if not word.startswith("-")]
        flags = [word for word in entry if word.startswith("-")]
        if not _begins(words, named) or not all(map(options.has, flags)):
            continue
        here = (len(named) + len(flags), gravity(effect))
        if here > weight:
            best, weight = (entry, effect), here
    return best


# -- what the words of a command say --------------------------------------------------------------

_LOSING = frozenset(
    """
    delete del remove rm uninstall destroy drop erase reset purge wipe flush truncate prune garbage
    nuke unlink unpublish zap shred mkfs factory-reset deprovision evict expunge discard
    rb terminate
    forget clear clean-all rollback downgrade obliterate decommission teardown
    """.split()
)
_SEEN = frozenset(
    """
    publish submit deploy upload release push send notify post promote broadcast announce tweet
    sendmail email mail pay charge refund transfer invite submit-job notarize reply
    comment trigger dispatch approve land run-now
    """.split()
)
_HARMLESS = frozenset(
    """
    list ls show info get status describe dump query search view logs log help version check
    validate build test lint run start dev serve init new create add install generate gen print
    diff plan preview inspect stat cat head tail count find read fetch pull download export watch
    explain config doctor whoami env compile format-check analyze parse convert open edit
    verify format fmt
    """.split()
)
_LOSING_OPTIONS = frozenset(
    "--delete --erase --uninstall --wipe --purge --destroy --drop --empty --remove".split()
)
_SEEN_OPTIONS = frozenset("--publish --upload --deploy --submit --send --broadcast".split())
_MAKERS = frozenset("create init generate build test lint check completion language server".split())
_CHANGING = frozenset((LOCAL, PROGRAM, DESTRUCTIVE))
_IN_NAMES = frozenset(
    "delete remove uninstall destroy drop erase reset purge wipe prune garbage nuke".split()
)
_SEEN_IN_NAMES = frozenset("publish deploy upload announce broadcast submit sendmail".split())
_SYNCED = frozenset("wandb neptune comet clearml aim mlflow swanlab trackio tensorboard".split())
_TRIES = frozenset("--dry-run --dryrun --help --list --check --noop --simulate --what-if".split())
_SCRIPTS = (".sh", ".bash", ".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".php", ".ps1")
_A_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_:-]*")
_REMOTE = re.compile(
    r"(?:^|[=@,])(?!127\.|0\.0\.0\.0)[\w-]+(?:\.[\w-]+)+:\d+"
    r"|(?<!\bs3)(?<!\bgs)://(?!/|(?:[^/@\s]*@)?(?:localhost|127\.|0\.0\.0\.0|\[::1))"
)
_HERE = re.compile(
    r"(?:^|[=@,/])(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[?::1\]?|host\.docker\.internal)(?=$|[:/,])"
)


def judge_by_words(call: "Call", name: str = "", texts: "list[str] | None" = None) -> None:
    """Raise a command that nothing is known of, where its name or its first words say enough."""
    if len(call.findings) != 1 or call.findings[0].effect not in {PROGRAM, LOCAL}:
        return
    rule = call.findings[0].rule
    texts = call.texts if texts is None else texts
    name = name or call.name
    program = _programs.get(name)
    if rule not in {"program", name, f"{call.name}.run"} or (program is not None and (
        program.targets or not program.entries
    )):  # fmt: skip
        return
    if name.endswith(_SCRIPTS) or _TRIES & set(texts) or _MAKERS & set(_parts(name)):
        return
    effect = _effect_of_words(name, texts, is_known=program is not None)
    if effect == IRREVERSIBLE and _are_here(texts):
        effect = LOCAL
    elif effect == DESTRUCTIVE and any(map(_REMOTE.search, texts)):
        effect = IRREVERSIBLE
    if effect in {DESTRUCTIVE, IRREVERSIBLE}:
        call.findings.clear()
        if effect == IRREVERSIBLE:
            call.publish("outside", rule=f"{name}.words")
        else:
            call.add(DESTRUCTIVE, f"{name}.words", "destroys")


def _effect_of_words(name: str, texts: "list[str]", *, is_known: bool) -> str:
    words = [text for text in texts if _A_WORD.fullmatch(text)][:4]
    effect = _verb_class(words) or _option_class(texts)
    if effect:
        return effect
    if words[:1] == ["sync"] and name in _SYNCED:
        return IRREVERSIBLE
    named = set() if is_known else set(_parts(name))
    if named & _IN_NAMES:
        return DESTRUCTIVE
    return IRREVERSIBLE if named & _SEEN_IN_NAMES else ""


def _verb_class(words: "list[str]") -> str:
    """The class of the first verb among some words; READ stands for one that harms nothing."""
    for word in words:
        parts = [word.lower(), *_parts(word)]
        if word.lower() in _HARMLESS or (len(parts) > 1 and parts[1] in _HARMLESS):
            return READ
        if any(part in _LOSING for part in parts):
            return READ if any("cache" in each.lower() for each in words) else DESTRUCTIVE
        if any(part in _SEEN for part in parts):
            return IRREVERSIBLE
    return ""


def _option_class(texts: "list[str]") -> str:
    """The class of options that are a verb: `--delete`, `--publish`."""
    names = {text.partition("=")[0] for text in texts if text.startswith("--")}
    if names & _LOSING_OPTIONS:
        return DESTRUCTIVE
    return IRREVERSIBLE if names & _SEEN_OPTIONS else ""


def _parts(text: str) -> "list[str]":
    return [part for part in re.split(r"[-_:.]", text.lower()) if part]


def _stays_here(call: "Call", program: Program) -> bool:
    """Whether a client is told to talk to this machine only."""
    return program.kind not in {"message", "payment", "push"} and _are_here(call.texts)


def _is_remote(call: "Call") -> bool:
    """Whether a client of a database is told another machine, by a word or by a variable."""
    known = call.scope.variables
    given = [known[name][0].value for name in _ADDRESSES if known.get(name)]
    hosts = [
        known[name][0].value for name in ("PGHOST", "DB_HOST", "MYSQL_HOST") if known.get(name)
    ]
    return any(map(_REMOTE.search, [*call.texts, *given])) or any(
        "." in host and not _HERE.search(host) for host in hosts
    )


_ADDRESSES = tuple(
    """
    DATABASE_URL DB_URL DIRECT_URL POSTGRES_URL MONGO_URL ETCDCTL_ENDPOINTS DBMATE_DATABASE_URL
    GOOSE_DBSTRING FLYWAY_URL INFLUX_HOST
    """.split()
)


def _are_here(texts: "list[str]") -> bool:
    return any(map(_HERE.search, texts)) and not any(map(_REMOTE.search, texts))
