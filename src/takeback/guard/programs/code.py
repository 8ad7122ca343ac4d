"""Interpreters: code on the command line is looked at, a script of the same line is read."""

import re

from takeback.guard.findings import (
    DECODED,
    DOWNLOAD,
    FILE,
    HIDDEN,
    HIDDEN_FLOW,
    NO_FLOW,
    NOTHING,
    TEXT,
    UNKNOWN,
    Flow,
    Word,
)  # fmt: skip
from takeback.model.beyond.effects import DELETE, DESTRUCTIVE, IN_TREE, OVERWRITE, PROGRAM, READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.guard.call import Call

_SHELLS = frozenset("sh bash zsh dash ksh fish ash mksh csh tcsh rbash".split())
_VALUED = {
    "python": "-c -m -W -X -Q",
    "node": "-e -p -r --eval --print --require --import --loader --env-file",
    "ruby": "-e -r -I -C",
    "perl": "-e -E -I -M -m",
    "php": "-r -d -f -B -E -F",
    "lua": "-e -l",
    "osascript": "-e -l",
    "deno": "",
    "Rscript": "-e",
    "R": "-e",
    "groovy": "-e",
    "elixir": "-e",
    "julia": "-e -E",
    "pwsh": "-c -Command -File -EncodedCommand -e -enc",
    "powershell": "-c -Command -File -EncodedCommand -e -enc",
    "expect": "-c",
    "tclsh": "",
    "bun": "-e",
    "awk": "-f -v -F",
    "vim": "-c -S -s -u",
    "emacs": "--eval -l -f",
    "gdb": "-ex -x -p",
}
_CODE = ("-c", "-e", "-E", "-p", "-r", "--eval", "--print", "-Command", "-ex", "-B")


def run_flow(call: "Call", flow: Flow) -> Flow:
    """Judge what an interpreter of shell reads from a pipe."""
    if flow.kind == TEXT and UNKNOWN not in flow.text:
        return call.run_text(flow.text)
    if flow.kind == DECODED:
        if flow.text and UNKNOWN not in flow.text:
            call.run_text(flow.text)
        return call.shell.hide(call.raw, "decodes-and-runs", "shell.decoded")
    if flow.kind == DOWNLOAD:
        return call.shell.hide(call.raw, "downloads-and-runs", "shell.download")
    if flow.kind in {FILE, "empty"}:
        return call.add(PROGRAM, call.name, "runs-program")
    if flow.kind == NOTHING:
        return call.add(PROGRAM, call.name, "runs-program")
    return call.shell.hide(call.raw, "eval", "shell.eval")


def run_file(call: "Call", path: str) -> Flow:
    """Judge a script by its path: read if the same command line wrote it."""
    flow = call.scope.written.get(path)
    if flow is None:
        return call.add(PROGRAM, call.name, "runs-program")
    if flow.kind == TEXT and _is_other_script(flow.text, path):
        judge_code(call, _language(flow.text, path), flow.text)
        return NO_FLOW
    if flow.kind == HIDDEN:
        return call.add(PROGRAM, call.name, "runs-program")
    return run_flow(call, flow)


def _is_other_script(text: str, path: str) -> bool:
    return _language(text, path) != "sh"


def _language(text: str, path: str) -> str:
    first = text.partition("\n")[0]
    endings = {".py": "python", ".js": "node", ".mjs": "node", ".ts": "node", ".rb": "ruby",
               ".pl": "perl", ".php": "php"}  # fmt: skip
    for name in ("python", "node", "ruby", "perl", "php"):
        if first.startswith("#!") and name in first:
            return name
    return next((name for ending, name in endings.items() if path.endswith(ending)), "sh")


def shell(call: "Call") -> Flow:
    """`sh -c TEXT`, `sh FILE`, `… | sh`."""
    options = call.options("-o -O --rcfile --init-file", stops=True)
    for word in options.all("--rcfile", "--init-file"):
        if word.flow is not None:
            run_flow(call, word.flow)
        else:
            run_file(call, call.scope.absolute(word.value))
    if options.has("-c") or any(re.fullmatch(r"-[a-z]*c[a-z]*", text) for text in call.texts[:1]):
        words = options.operands
        return _run_command_text(call, words)
    checks = options.has("-n") and options.operands and not options.has("-s")
    if checks or (options.has("--version", "--help") and not options.operands):
        return call.add(READ, call.name, "reads")
    word = options.operands[0] if options.operands else Word("-")
    if word.flow is not None:
        return run_flow(call, word.flow)
    if word.value in {"/dev/stdin", "-"} or options.has("-s"):
        return run_flow(call, call.stdin)
    _set_arguments(call, options.operands[1:])
    return run_file(call, call.scope.absolute(word.value) if word.is_known else "")


def _set_arguments(call: "Call", words: "list[Word]") -> None:
    call.scope = call.scope.copy()
    for number in range(1, 10):
        value = words[number - 1] if number <= len(words) else Word("")
        call.scope.variables[str(number)] = (value,)
    call.scope.variables["@"] = tuple(words)


def _run_command_text(call: "Call", words: "list[Word]") -> Flow:
    if not words:
        return call.shell.hide(call.raw, "eval", "shell.eval")
    word = words[0]
    if word.source == DOWNLOAD:
        return call.shell.hide(call.raw, "downloads-and-runs", "shell.download")
    if not word.is_known:
        # What is not known may be an argument; the rest of the text is judged all the same.
        if word.source in {DECODED, HIDDEN} and word.value == UNKNOWN:
            return call.shell.hide(call.raw, "eval", "shell.eval")
        name = re.split(r"\s", word.value.strip())[0]
        if UNKNOWN in name:
            return call.shell.hide(call.raw, "eval", "shell.eval")
    _set_arguments(call, words[2:])
    return call.run_text(word.value.replace(UNKNOWN, "${unknown}"))


def interpreter(call: "Call") -> Flow:
    """`python -c CODE`, `python -m MODULE`, `python FILE`, code through a pipe."""
    name = {"python": "python", "pypy": "python", "nodejs": "node"}.get(call.name, call.name)
    options = call.options(_VALUED.get(name, ""), stops=True)
    if options.has("--version", "-V", "-v", "--help", "-h") and not options.operands:
        return call.add(READ, call.name, "reads")
    if options.has("-i") and call.stdin is not NO_FLOW and name in {"python", "node", "php"}:
        _from_flow(call, name, call.stdin)
    module = options.last("-m") if name == "python" else None
    if module is not None:
        return _module(call, module)
    code = (
        [word for word in options.all(*_CODE) if word.value] if name not in {"vim", "awk"} else []
    )
    if code:
        if name in {"perl", "ruby"} and _edits_in_place(call, code, options.operands):
            return NO_FLOW
        for word in code:
            judge_code(call, name, word.value)
            if name == "osascript":
                _judge_script(call, word.value)
        return _output(call)
    if options.has("-EncodedCommand", "-enc"):
        return call.shell.hide(call.raw, "decodes-and-runs", f"{call.name}.decoded")
    word = options.operands[0] if options.operands else Word("-", flow=call.stdin)
    flow = call.stdin if word.value in {"-", "/dev/stdin"} else word.flow
    return _from_flow(call, name, flow) if flow is not None else _script(call, name, word)


def _judge_script(call: "Call", text: str) -> None:
    """AppleScript: what it tells other applications to send or to delete."""
    if re.search(r"\bsend\b|\bpost\b|outgoing message", text):
        call.publish("message", rule="osascript.send", code="sends")
    elif re.search(r"\b(?:delete|empty|erase|shut down|restart)\b", text):
        call.add(DESTRUCTIVE, "osascript.delete", "destroys")


def _edits_in_place(call: "Call", code: "list[Word]", words: "list[Word]") -> bool:
    """`perl -pi -e 's/a/b/' FILE` only edits the files that it names."""
    from takeback.guard.programs.files import overwrite

    flags = [text for text in call.texts if re.match(r"-[a-zA-Z0-9.]*i", text)]
    plain = re.compile(r"\s*(?:s([/|#,{!~]).*|tr/.*|\$_.*|print.*|y/.*)", re.DOTALL)
    risky = re.compile(
        r"system|exec|`|unlink|open|qx|eval|require|use |/[gimsx]*e[gimsx]*\s*;?\s*$"
    )
    if not flags or not words:
        return False
    if any(not plain.fullmatch(each.value) or risky.search(each.value) for each in code):
        return False
    overwrite(call, words, rule=f"{call.name}.in-place")
    return True


def _module(call: "Call", module: Word) -> Flow:
    from takeback.guard import knowledge
    from takeback.guard.call import parse
    from takeback.guard.programs import registry

    rest = parse(call.args, _VALUED["python"] + " ", stops=True).operands
    texts = call.texts
    at = texts.index("-m") + 2 if "-m" in texts else len(texts)
    words = [module, *call.args[at:]]
    if module.value in {"http.server", "venv", "virtualenv", "ensurepip", "site"}:
        from takeback.model.beyond.effects import INSIDE, LOCAL

        effect = INSIDE if module.value in {"venv", "virtualenv"} else LOCAL
        return call.add(effect, f"python.{module.value}", "changes-machine")
    if module.value in {"json.tool", "py_compile", "this", "platform", "sysconfig"}:
        return call.add(READ, f"python.{module.value}", "reads")
    _ = rest
    if module.value in registry.JUDGES or module.value in knowledge.programs():
        return call.run(words)
    return call.add(PROGRAM, "python.module", "runs-program")


def _from_flow(call: "Call", name: str, flow: Flow) -> Flow:
    if flow.kind == TEXT:
        judge_code(call, name, flow.text)
        return _output(call)
    if flow.kind == DOWNLOAD:
        return call.shell.hide(call.raw, "downloads-and-runs", "shell.download")
    if flow.kind == DECODED:
        return call.shell.hide(call.raw, "decodes-and-runs", "shell.decoded")
    if flow.kind == HIDDEN:
        return call.shell.hide(call.raw, "eval", "shell.eval")
    return call.add(PROGRAM, call.name, "runs-program")


_FRAMEWORKS = frozenset(("manage.py", "artisan", "console", "rails", "rake"))


def _script(call: "Call", name: str, word: Word) -> Flow:
    if any("://" in text for text in call.texts[:4]) and name in {"deno", "bun"}:
        return call.shell.hide(call.raw, "downloads-and-runs", "shell.download")
    base = word.value.rpartition("/")[2]
    if base in _FRAMEWORKS:
        at = call.texts.index(word.value) if word.value in call.texts else 0
        return call.run([word.replace(value=base), *call.args[at + 1 :]])
    if base == "setup.py" and "upload" in call.texts:
        return call.publish("publish", rule="setup.py.upload")
    path = call.scope.absolute(word.value)
    flow = call.scope.written.get(path)
    if flow is not None and flow.kind in {TEXT, DOWNLOAD, DECODED}:
        return _from_flow(call, name, flow)
    call.add(PROGRAM, call.name, "runs-program")
    return HIDDEN_FLOW


def _output(call: "Call") -> Flow:
    """What code on the command line prints: not known, so nothing that runs it can be read."""
    return Flow(HIDDEN, has_secret=call.stdin.has_secret)


# -- the code itself ----------------------------------------------------------------------------

_HIDING = re.compile(
    r"""(?x)
    (?<![.\w])(?:exec|eval)\s*\(|\b__import__\s*\(\s*(?!['"])|\bmarshal\b|\bunhexlify\b
    | b(?:16|32|64|85)decode|\bfromhex\b|\bcodecs\.decode\b
    | \bgetattr\s*\(\s*(?:os|sys|builtins|sub[p]rocess|__)
    | \batob\s*\(|new\s+Function\b|\bFunction\s*\(|fromCharCode|Buffer\.from\s*\(
    | \bunpack\s*\(?\s*['"]|base64_decode|\binstance_eval|\.decode64|\bpack\s*\(\s*['"]H
    | (?<![.\w])eval\s+(?:\$|pack|decode|join|reverse|unpack)
    | \bchr\s*\(.*\bchr\s*\(|\\x[0-9a-f]{2}\\x[0-9a-f]{2}\\x[0-9a-f]{2}|globals\s*\(\s*\)\s*\[
    | __builtins__|\[::-1\]|urlopen\([^)]*\)\.read\(\)\s*\)|import_module\s*\(\s*[^'"\s]
    | process\.binding|\biex\b|Invoke-Expression|\brunpy\b
    """,
)
_SYSTEM = re.compile(
    r"""(?x)
    (?:os\.system|os\.popen|sub[p]rocess\.\w+|(?:child_process[^.]{0,30}\.)?exec(?:Sync|File|FileSync)?
      |spawn(?:Sync)?|system|shell_exec|passthru|popen|do\s+shell\s+script|getoutput|check_output|run
      |check_call|call|Popen|qx|os\.exec[lv]p?e?|doShellScript|IO\.popen)
    \s*\(?\s*
    """,
)
_STRING = re.compile(r"""[rbuf]{0,2}("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_SENDS = re.compile(
    r"""(?x)
    (?:requests|httpx|axios|session|client|http|got|superagent|ky)['")]*
      \.(?:post|put|patch|delete)\s*\(
    | smtplib | sendmail | \bmethod\s*[:=]\s*['"](?:POST|PUT|PATCH|DELETE)
    | \.request\s*\(\s*['"](?:POST|PUT|PATCH|DELETE) | (?i:-method\s+['"]?(?:post|put|patch|delete))
    | (?:LWP|HTTP::Tiny|Mojo|Faraday|HTTParty|RestClient|Guzzle).*(?:->|\.)
      (?:post|put|patch|delete)\b
    | (?<![.\w$>])mail\s*\(\s*['"$] | Send-MailMessage | CURLOPT_(?:POST|CUSTOMREQUEST)
    | Net::HTTP(?:\.|::)[Pp]ost | urlopen\([^)]*data\s*= | Request\([^)]*data\s*=
    | (?:boto3|stripe|twilio|nodemailer|slack_sdk|openai|sendgrid|paramiko|ftplib).*
      \.(?:create|send\w*|chat_\w+|put_\w+|delete_\w+|upload\w*|publish|exec_command|storbinary)\s*\(
    | (?:socket|fsockopen|TCPSocket).*(?:send|sendall|write|puts|fwrite)\s*\(
    """,
    re.DOTALL,
)
_DELETES = re.compile(
    r"""(?x)
    (?:shutil\.rmtree|os\.(?:remove|unlink|rmdir|removedirs)|rmSync|rmdirSync|unlinkSync
      |rm_rf|rmtree|FileUtils\.rm\w*|File\.delete|unlink|remove_tree|rimraf(?:\.sync)?)
    \s*\(?\s*
    """,
)


def judge_code(call: "Call", name: str, code: str) -> None:
    """Judge code that stands in the command: what it hides, runs, sends and deletes."""
    if name == "sh":
        call.run_text(code)
        return
    if UNKNOWN in code and code.strip() == UNKNOWN:
        call.shell.hide(call.raw, "eval", f"{call.name}.eval")
        return
    hidden = _HIDING.search(code)
    if hidden is not None and not _is_harmless_decoding(code, hidden[0]):
        call.shell.hide(call.raw, "decodes-and-runs", f"{call.name}.hidden")
    _started(call, code)
    _sent(call, code)
    _deleted(call, code)
    _written(call, code)
    call.add(PROGRAM, f"{call.name}.code", "runs-program")


def _is_harmless_decoding(code: str, mark: str) -> bool:
    """Decoding alone hides nothing that runs: only with a call that runs what it gives."""
    runs = re.search(
        r"\bexec\b|\beval\b|system|sub[p]rocess|popen|spawn|__import__|Function|getattr", code
    )
    return not runs and not mark.startswith(("exec", "eval", "__", "compile", "new", "Function"))


def _started(call: "Call", code: str) -> None:
    for found in _SYSTEM.finditer(code):
        rest = code[found.end() :].lstrip()
        if rest.startswith("["):
            inner = rest[: rest.find("]")]
            words = [Word(_inner(each[0]), _inner(each[0])) for each in _STRING.finditer(inner)]
            if words and found[0].strip("( "):
                call.run(words, NO_FLOW)
            continue
        string = _STRING.match(rest)
        if string is not None:
            call.run_text(_inner(string[0]).replace("\\n", "\n"))
    for found in re.finditer(r"`([^`]+)`", code):
        if call.name in {"ruby", "perl", "php"}:
            call.run_text(found[1])


def _inner(text: str) -> str:
    return text.lstrip("rbufRBUF")[1:-1]


def _sent(call: "Call", code: str) -> None:
    from takeback.guard.programs.network import has_secret_name, host_in, is_local_host

    secret = has_secret_name(code)
    sends = _SENDS.search(code)
    if secret and (sends or re.search(r"https?://|urlopen|requests|fetch\(", code)):
        call.publish("secret", rule="secret.sent", code="sends-secret")
    elif sends is not None:
        host = host_in([code])
        is_here = re.search(r"localhost|127\.0\.0\.1|0\.0\.0\.0", code) and not host
        if not is_here and not (host and is_local_host(host)):
            call.publish("request", host=host, rule=f"{call.name}.request", code="sends")


_WRITES = re.compile(
    r"""(?x)
    (?:writeFileSync|writeFile|truncateSync|File\.write|file_put_contents|os\.truncate|truncate
      |shutil\.move|os\.rename|os\.replace|renameSync|File\.rename|rename|IO\.write)\s*\(?\s*
      (?P<first>"[^"]*"|'[^']*')
    | \bopen\s*\(\s*(?P<opened>"[^"]*"|'[^']*')\s*,\s*(?:mode\s*=\s*)?["'][rb+]*[wx]
    | Path\s*\(\s*(?P<path>"[^"]*"|'[^']*')\s*\)(?:\.expanduser\(\))?
      \.(?:unlink|write_text|write_bytes|rmdir|rename|replace)\b
    """,
)


def _written(call: "Call", code: str) -> None:
    """Files outside the tree that code writes anew, moves or deletes, named by a literal."""
    targets = []
    for found in _WRITES.finditer(code):
        text = _inner(found["first"] or found["opened"] or found["path"])
        word = Word(text, text)
        is_new = call.scope.is_temporary(call.scope.absolute(text)) or text.startswith("/dev/")
        if text.startswith(("/", "~", "..")) and not is_new:
            targets.append(call.scope.target(word, OVERWRITE))
    lost = [each for each in targets if each.where != IN_TREE and not call.is_harmless(each)]
    if lost:
        call.add(DESTRUCTIVE, f"{call.name}.write", "overwrites", targets=lost)


_HOMES = (
    "expanduser", "homedir", "Path.home", "env.HOME", "environ['HOME", 'environ["HOME',
    "Dir.home", "ENV['HOME", 'ENV["HOME', "$ENV{HOME", "getenv('HOME", 'getenv("HOME',
)  # fmt: skip


def _deleted(call: "Call", code: str) -> None:
    targets = []
    for found in _DELETES.finditer(code):
        rest = code[found.end() :].lstrip()
        string = _STRING.match(rest)
        if string is not None:
            word = Word(_inner(string[0]), _inner(string[0]))
        elif any(mark in rest[:40] for mark in _HOMES):
            word = Word("~")
        else:
            continue
        targets.append(call.scope.target(word, DELETE, is_recursive=True))
    if any(each.where != IN_TREE and not call.is_harmless(each) for each in targets):
        call.add(DESTRUCTIVE, f"{call.name}.delete", "deletes", targets=targets)
    elif targets:
        call.add(PROGRAM, f"{call.name}.code", "runs-program", targets=targets)


_EMPTIES = re.compile(
    r"(?i)\.delete\(|delete_all|destroy_all|truncate|\.drop|drop_|drop table|delete from|flushall"
)


def framework(call: "Call") -> Flow:
    """`manage.py`, `rails`, `artisan`: their commands, and code that empties tables."""
    from takeback.guard import knowledge

    runs_code = call.texts[:1] and call.texts[0] in {"shell", "runner", "r", "tinker", "eval"}
    text = " ".join([*call.texts[1:], call.stdin.text])
    if runs_code and _EMPTIES.search(text):
        return call.add(DESTRUCTIVE, f"{call.name}.code", "destroys-rows")
    return knowledge.judge(call, knowledge.programs()[call.name])


def scan(call: "Call") -> Flow:
    """`awk`: a filter, unless its program runs commands or writes files."""
    from takeback.guard.programs import builtins
    from takeback.guard.programs.files import overwrite

    options = call.options("-f -v -F -i", stops=True)
    if options.has("-f"):
        call.add(PROGRAM, "awk", "runs-program")
        return builtins.flow_of(call)
    code = options.operands[0].value if options.operands else ""
    rest = re.sub(r"\|\|", "", code)
    for found in re.finditer(r'system\s*\(\s*"((?:[^"\\]|\\.)*)"\s*\)', code):
        call.run_text(found[1])
        rest = rest.replace(found[0], "")
    for found in re.finditer(r'\|\s*"((?:[^"\\]|\\.)*)"', code):
        call.shell.run_text(found[1], call.scope, HIDDEN_FLOW)
        rest = rest.replace(found[0], "")
    runs = re.search(r"\bsystem\s*\(|\|\s*getline|\|&|\|\s*[\"\w]|@load", rest)
    if runs is not None or code == UNKNOWN:
        call.shell.hide(call.raw, "hidden", "awk.run")
    for found in re.finditer(r'(?<![><!=])>>?\s*"([^"]+)"', code):
        if not found[1].startswith("/dev/"):
            overwrite(call, [Word(found[1])], rule="awk.write")
    if not call.findings:
        call.add(READ, "awk", "reads")
    return builtins.flow_of(call)


def editor(call: "Call") -> Flow:
    """`vim -c ':!command'`, `ed`, `emacs --eval`: programs that run what they are told."""
    call.add(PROGRAM, call.name, "runs-program")
    for text in call.texts:
        found = re.search(
            r"!\s*(.+)|system\(\s*['\"](.+)['\"]|shell-command\s+\"(.+)\"|^\s*shell\s+(.+)", text
        )
        if found is not None:
            call.run_text(next(each for each in found.groups() if each))
    if call.stdin.kind == TEXT:
        for line in call.stdin.text.splitlines():
            if line.startswith("!"):
                call.run_text(line[1:])
    return NO_FLOW


JUDGES: "dict[str, Callable[[Call], Flow]]" = {
    **dict.fromkeys(_SHELLS, shell),
    **dict.fromkeys(
        "python pypy node nodejs ruby perl php lua osascript deno Rscript R groovy elixir julia "
        "pwsh powershell expect tclsh irb iex ghci scala swift".split(),
        interpreter,
    ),
    **dict.fromkeys(("manage.py", "rails", "artisan"), framework),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), scan),
    **dict.fromkeys(("vim", "vi", "nvim", "ex", "ed", "emacs", "gdb", "nano", "view"), editor),
}
