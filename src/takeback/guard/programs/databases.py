"""Clients of databases: which server they talk to, and what their statements do."""

import re

from takeback.guard.findings import FILE, HIDDEN_FLOW, NOTHING, TEXT, UNKNOWN, Flow, Word
from takeback.guard.programs.network import is_local_host
from takeback.model.beyond.effects import (
    DESTRUCTIVE,
    LOCAL,
    OVERWRITE,
    PROGRAM,
    READ,
    TRANSACTIONAL,
)  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.guard.call import Call, Options

HERE, REMOTE, HELD = "", "remote", "held"
_PSQL = ("-c -f -h -p -U -d -v -F -o -P -R -L -T --command --file --host --port --username "
         "--dbname --set --output --variable")  # fmt: skip
_MYSQL = "-e -h -P -u -D -S --execute --host --port --user --database --socket --defaults-file"


def psql(call: "Call") -> Flow:
    options = call.options(_PSQL)
    if options.has("-l", "--list", "--version", "-V", "--help", "-?"):
        return call.add(READ, call.name, "reads")
    host = _postgres_host(call, options)
    texts = [_with_variables(word.value, options) for word in options.all("-c", "--command")]
    _run_meta(call, texts)
    if f"{host or 'localhost'}/{_database_name(options)}" in call.shell.rules.held:
        host = HELD
    return _statements(call, options, texts, ("-f", "--file"), host, "postgres")


def _with_variables(text: str, options: "Options") -> str:
    """A statement with the variables that `-v` gives it."""
    for word in options.all("-v", "--set", "--variable"):
        name, _, value = word.value.partition("=")
        text = text.replace(f":{name}", value)
    return text


def _database_name(options: "Options") -> str:
    """The database that psql is told to open; empty if it is not named."""
    names = [*options.all("-d", "--dbname"), *options.operands]
    text = names[0].value if names else ""
    found = re.search(r"://[^/]*/([^?]+)", text) or re.search(r"\bdbname=(\S+)", text)
    return found[1] if found else text


def _postgres_host(call: "Call", options: "Options") -> str:
    """The host, empty for this machine, `remote` if it is not known."""
    given = options.last("-h", "--host")
    names = [word.value for word in (*options.operands, *options.all("-d", "--dbname"))]
    for text in names:
        found = re.search(r"://(?:[^@/]*@)?([^/:?]*)", text) or re.search(r"\bhost=(\S+)", text)
        if found is not None:
            return _host(found[1])
        if UNKNOWN in text and given is None:
            return REMOTE
    if given is not None:
        return _host(given.value)
    variable = call.scope.single("PGHOST") or call.scope.single("MYSQL_HOST")
    return _host(variable.value) if variable is not None else HERE


def _host(text: str) -> str:
    if text == "" or text.startswith("/") or is_local_host(text):
        return HERE
    return REMOTE if UNKNOWN in text else text


def _run_meta(call: "Call", texts: "list[str]") -> None:
    r"""`\\! command` of psql runs a command of this machine."""
    for text in texts:
        for found in re.finditer(r"\\!\s*(.+)", text):
            call.run_text(found[1])
        for found in re.finditer(r"(?i)\bto\s+program\s+'([^']*)'", text):
            call.run_text(found[1])


def _without_password(call: "Call") -> None:
    """`-psecret` is a password, not a row of options."""
    call.args = [word for word in call.args if not re.match(r"-p\S", word.value)]


def mysql(call: "Call") -> Flow:
    _without_password(call)
    options = call.options(_MYSQL)
    given = options.last("-h", "--host")
    host = _host(given.value) if given is not None else HERE
    texts = [word.value for word in options.all("-e", "--execute")]
    return _statements(call, options, texts, (), host, "mysql")


def sqlite(call: "Call") -> Flow:
    """`sqlite3 FILE STATEMENT`: a file of the tree is covered like every other."""
    options = call.options("-cmd -init -separator -nullvalue -c -s -f")
    words = options.operands
    if options.has("-version", "--version", "-help") or not (words or options.given):
        return call.add(READ, call.name, "reads")
    words = words or [Word(":memory:")]
    path = call.scope.absolute(words[0].value)
    texts = [word.value for word in (*words[1:], *options.all("-cmd", "-c", "-s"))]
    texts += [call.stdin.text] if call.stdin.kind == TEXT and not texts else []
    if not texts:
        return call.add(PROGRAM, call.name, "runs-program")
    _shell_commands(call, texts)
    if options.has("-readonly"):
        return call.add(READ, call.name, "queries")
    return _sqlite_statements(call, words[0], path, texts)


def _sqlite_statements(call: "Call", file: Word, path: str, texts: "list[str]") -> Flow:
    effect, kind = _gravest_statement(
        [text for text in texts if not text.startswith(".")], "sqlite"
    )
    if effect == READ:
        return call.add(READ, "sql.read", "queries", kind=kind)
    in_memory = file.value == ":memory:" or call.scope.is_made(path)
    if effect == "opaque":
        return call.shell.hide(call.raw, "unparsed", "sql.unparsed")
    if path in call.shell.rules.held:
        return call.add(TRANSACTIONAL, "sql.held", "in-database", kind=kind)
    attached = [
        call.scope.target(Word(name), OVERWRITE)
        for name in re.findall(
            r"(?i)\battach\s+(?:database\s+)?['\"]([^'\"]+)['\"]", "\n".join(texts)
        )
        if name != ":memory:"
    ]
    opened = re.findall(r"(?m)^\s*\.open\s+(?:--?\w+\s+)*['\"]?([^'\"\s]+)", "\n".join(texts))
    attached += [call.scope.target(Word(name), OVERWRITE) for name in opened]
    if in_memory and attached:
        return call.add_targets(attached, "writes-rows", rule="sql.write")
    if in_memory:
        return call.add(LOCAL, "sql.write", "writes-rows", kind=kind)
    return call.add_targets(
        [call.scope.target(file, OVERWRITE), *attached], "writes-rows", rule="sql.write"
    )


def _shell_commands(call: "Call", texts: "list[str]") -> None:
    for text in texts:
        for found in re.finditer(r"(?m)^\s*\.(?:shell|system)\s+(.+)$", text):
            call.run_text(found[1])
        for found in re.finditer(r"(?m)^\s*\.(?:output|once)\s+['\"]?\|\s*(.+)$", text):
            call.run_text(found[1].rstrip("'\""))
        for found in re.finditer(r"(?m)^\s*\.(?:output|once|backup|save)\s+([^|\s]\S*)$", text):
            from takeback.guard.programs.files import overwrite

            overwrite(call, [Word(found[1])])


def _statements(
    call: "Call", options: "Options", texts: "list[str]", file_flags: "tuple[str, ...]", host: str,
    dialect: str,
) -> Flow:  # fmt: skip
    for word in options.all(*file_flags) if file_flags else ():
        if word.value in {"-", "/dev/stdin"}:
            if call.stdin.kind != TEXT:
                _piped(call, host)
                continue
            texts.append(call.stdin.text)
            _run_meta(call, [call.stdin.text])
            continue
        flow = word.flow or call.scope.written.get(call.scope.absolute(word.value))
        if flow is not None and flow.kind == TEXT:
            texts.append(flow.text)
        else:
            _script(call, host)
    if not texts and not (file_flags and options.has(*file_flags)):
        if call.stdin.kind == TEXT:
            texts = [call.stdin.text]
            _run_meta(call, texts)
        else:
            return _piped(call, host)
    if texts:
        _judge_statements(call, texts, host, dialect)
    return HIDDEN_FLOW


def _script(call: "Call", host: str) -> Flow:
    """A file of statements, which is not read: a program, and on another machine one seen there."""
    if host == HELD:
        return call.add(PROGRAM, "sql.script", "runs-program")
    if host:
        return call.publish("database", host=_shown(host), rule="sql.script", code="runs-there")
    return call.add(PROGRAM, "sql.script", "runs-program")


def _piped(call: "Call", host: str) -> Flow:
    if call.stdin.kind in {FILE, "hidden", "empty"}:
        return _script(call, host)
    if call.stdin.kind == NOTHING:
        return call.add(PROGRAM, call.name, "runs-program")
    return call.shell.hide(call.raw, "decodes-and-runs", "sql.hidden")


def _shown(host: str) -> str:
    return "" if host == REMOTE else host


def _judge_statements(call: "Call", texts: "list[str]", host: str, dialect: str) -> Flow:
    effect, kind = _gravest_statement(texts, dialect)
    if effect == READ:
        return call.add(READ, "sql.read", "queries", kind=kind)
    if effect == "opaque":
        return call.shell.hide(call.raw, "unparsed", "sql.unparsed")
    if host == HELD:
        return call.add(TRANSACTIONAL, "sql.held", "in-database", kind=kind)
    if host:
        return call.publish(
            "database", call.raw, _shown(host), rule=f"sql.{kind}", code="changes-database"
        )
    if effect == LOCAL:
        return call.add(LOCAL, f"sql.{kind}", "writes-rows", kind=kind)
    return call.add(DESTRUCTIVE, f"sql.{kind}", "destroys-rows", kind=kind)


def _gravest_statement(texts: "list[str]", dialect: str) -> "tuple[str, str]":
    from takeback.guard.programs.sql import classify

    return classify("\n;\n".join(texts), dialect)


# -- other clients ------------------------------------------------------------------------------

_MONGO_WRITES = re.compile(
    r"\.(?:insert\w*|update\w*|replace\w*|save|createIndex\w*|createCollection|bulkWrite|findAndModify"
    r"|findOneAnd\w+|renameCollection)\s*\("
)
_MONGO_DESTROYS = re.compile(
    r"\.(?:drop\w*|delete\w*|remove\w*|update\w*|replace\w*|findOneAnd\w+)\s*\("
)


def mongo(call: "Call") -> Flow:
    options = call.options("--eval -u -p --host --port --username --password --file -f")
    texts = [word.value for word in options.all("--eval")]
    texts += [call.stdin.text] if call.stdin.kind == TEXT and not texts else []
    given = options.last("--host")
    host = _host(given.value) if given is not None else HERE
    for word in options.operands:
        if "://" in word.value or UNKNOWN in word.value:
            found = re.search(r"://(?:[^@/]*@)?([^/:?,]*)", word.value)
            host = _host(found[1]) if found else REMOTE
        elif word.value.endswith(".js"):
            return _script(call, host)
    code = "\n".join(texts)
    if not code:
        return _piped(call, host)
    if UNKNOWN in code.strip()[:1] or re.search(r"\]\s*\(|\beval\(|Function\(", code):
        return call.shell.hide(call.raw, "eval", "mongo.hidden")
    if not _MONGO_WRITES.search(code) and not _MONGO_DESTROYS.search(code):
        return call.add(READ, "mongo.read", "queries")
    if host:
        return call.publish(
            "database", call.raw, _shown(host), rule="mongo", code="changes-database"
        )
    destroys = _MONGO_DESTROYS.search(code) is not None
    return call.add(
        DESTRUCTIVE if destroys else LOCAL, "mongo", "destroys-rows" if destroys else "writes-rows"
    )


_REDIS_READS = frozenset(
    """
    get mget keys scan exists ttl pttl type info ping dbsize hget hgetall hkeys hvals hlen hscan
    llen
    lrange lindex smembers scard sismember sscan zrange zscore zcard zrangebyscore zscan
    strlen getrange
    memory object monitor client time lastsave slowlog command echo config xrange xlen xinfo
    """.split()
)
_REDIS_DESTROYS = frozenset(
    "del unlink flushall flushdb hdel lpop rpop ltrim srem spop zrem expire rename getdel swapdb "
    "shutdown restore migrate xtrim xdel script".split()
)


def _called(words: "list[str]") -> "list[str] | None":
    """The commands that a script for redis calls; None if it makes their names up."""
    script = words[1] if len(words) > 1 else UNKNOWN
    calls = len(re.findall(r"redis\.p?call", script))
    named = re.findall(r"redis\.p?call\s*\(\s*['\"](\w+)['\"]\s*[,)]", script)
    if UNKNOWN in script or len(named) < calls or "loadstring" in script:
        return None
    return [each.lower() for each in named]


def redis(call: "Call") -> Flow:
    options = call.options(
        "-h -p -a -n -u -s --user --pass -r -i --pattern --type --eval", stops=True
    )
    given = options.last("-h")
    host = _host(given.value) if given is not None else HERE
    url = options.last("-u")
    if url is not None:
        found = re.search(r"://(?:[^@/]*@)?([^/:?]*)", url.value)
        host = _host(found[1]) if found else REMOTE
    words = [word.value for word in options.operands]
    if not words and call.stdin.kind == TEXT:
        words = call.stdin.text.split()
    if options.has("--eval"):
        return _script(call, host)
    if not words or options.has(*_REDIS_SHOWS):
        return call.add(READ if options.has(*_REDIS_SHOWS) else PROGRAM, call.name)
    return _redis_command(call, words, host)


_REDIS_SHOWS = ("--scan", "--bigkeys", "--stat", "--memkeys", "--hotkeys", "--latency")


def _redis_command(call: "Call", words: "list[str]", host: str) -> Flow:
    verb = words[0].lower()
    if verb in {"eval", "evalsha", "fcall"}:
        called = _called(words) if verb == "eval" else None
        if called is None:
            return call.shell.hide(call.raw, "eval", "redis.eval")
        verb = next((each for each in called if each in _REDIS_DESTROYS), "") or next(
            (each for each in called if each not in _REDIS_READS), "get"
        )
    if verb in _REDIS_READS and words[1:2] not in (["set"], ["SET"], ["kill"]):
        return call.add(READ, "redis.read", "queries")
    if host:
        return call.publish(
            "database", call.raw, _shown(host), rule=f"redis.{verb}", code="changes-database"
        )
    destroys = (
        verb in _REDIS_DESTROYS
        or verb in {"config", "module", "debug", "replicaof"}
        or UNKNOWN in verb
    )
    return call.add(DESTRUCTIVE if destroys else LOCAL, f"redis.{verb}",
                    "destroys-rows" if destroys else "writes-rows")  # fmt: skip


def drop(call: "Call") -> Flow:
    """`dropdb`, `dropuser`, `createdb`, `pg_restore`, `pg_dump`."""
    from takeback.guard.programs.files import overwrite

    options = call.options(_PSQL + " -j -t -n -F --uri --db --collection --out")
    host = _postgres_host(call, options)
    for word in options.all("--uri"):
        found = re.search(r"://(?:[^@/]*@)?([^/:?,]*)", word.value)
        host = _host(found[1]) if found else REMOTE
    if call.name in {"pg_dump", "pg_dumpall", "mysqldump", "mongodump", "mongoexport"}:
        end = options.last("-f", "--file", "-o", "--out", "--result-file")
        if end is not None:
            return overwrite(call, [end])
        call.add(READ, call.name, "queries")
        return HIDDEN_FLOW
    if host:
        return call.publish(
            "database", call.raw, _shown(host), rule=call.name, code="changes-database"
        )
    if call.name in {"createdb", "createuser"}:
        return call.add(LOCAL, call.name, "changes-machine")
    if call.name in {"pg_restore", "mongorestore", "mongoimport"} and not options.has(
        "-c", "--clean", "--drop"
    ):
        return call.add(LOCAL, call.name, "writes-rows")
    return call.add(DESTRUCTIVE, call.name, "destroys-rows")


def mysqladmin(call: "Call") -> Flow:
    _without_password(call)
    options = call.options(_MYSQL)
    given = options.last("-h", "--host")
    host = _host(given.value) if given is not None else HERE
    words = [word.value for word in options.operands]
    if {"status", "ping", "processlist", "variables", "version"} & set(words):
        return call.add(READ, call.name, "queries")
    if host:
        return call.publish(
            "database", call.raw, _shown(host), rule=call.name, code="changes-database"
        )
    return call.add(DESTRUCTIVE if "drop" in words else LOCAL, call.name, "destroys-rows")


_QUERY = (
    "-e -q -Q -f -h -H -S -U -P -u -p -d -i --execute --query --file --host --server --port --user"
)


def query(call: "Call") -> Flow:
    """Other clients of SQL: `cqlsh`, `clickhouse-client`, `sqlcmd`, `trino`."""
    options = call.options(_QUERY)
    given = options.last("-h", "-H", "-S", "--host", "--server")
    host = _host(given.value.partition(",")[0]) if given is not None else HERE
    if call.name in {"snowsql", "bq", "snow", "databricks"}:
        host = REMOTE
    elif call.name == "cqlsh" and options.operands:
        host = _host(options.operands[0].value)
    texts = [word.value for word in options.all("-e", "-q", "-Q", "--execute", "--query")]
    if call.name == "bq":
        words = [word.value for word in options.operands]
        if words[:1] != ["query"]:
            from takeback.guard import knowledge

            return knowledge.judge(call, knowledge.programs()["bq"])
        texts = [text for text in words[1:] if " " in text]
    return _statements(call, options, texts, ("-f", "-i", "--file"), host, "")


JUDGES: "dict[str, Callable[[Call], Flow]]" = {
    "psql": psql,
    "pgcli": psql,
    "cockroach": psql,
    "mysql": mysql,
    "mariadb": mysql,
    "mycli": mysql,
    "sqlite3": sqlite,
    "sqlite": sqlite,
    "litecli": sqlite,
    "duckdb": sqlite,
    "mongosh": mongo,
    "mongo": mongo,
    "redis-cli": redis,
    "valkey-cli": redis,
    **dict.fromkeys(
        "dropdb dropuser createdb createuser pg_restore pg_dump pg_dumpall mysqldump mongodump "
        "mongorestore mongoimport mongoexport".split(),
        drop,
    ),
    "mysqladmin": mysqladmin,
    **dict.fromkeys(
        "cqlsh clickhouse-client clickhouse sqlcmd snowsql snow trino presto hive beeline bq "
        "isql usql".split(),
        query,
    ),
}
