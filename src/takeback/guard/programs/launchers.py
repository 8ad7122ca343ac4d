"""Programs that start another one: `sudo`, `env`, `xargs`, `npx`, `docker exec` and their kind."""

from takeback.guard.findings import (
    HIDDEN,
    HIDDEN_FLOW,
    LISTING,
    NO_FLOW,
    TEXT,
    UNKNOWN,
    Finding,
    Flow,
    Word,
)  # fmt: skip
from takeback.model.beyond.effects import (
    COMPENSABLE,
    INSIDE,
    IRREVERSIBLE,
    LOCAL,
    OPAQUE,
    PROGRAM,
    READ,
    TRANSACTIONAL,
    Outside,
)  # fmt: skip
from takeback.model.reasons import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.guard.call import Call

_VALUED = {
    "sudo": "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir",
    "doas": "-u -C",
    "timeout": "-k -s --kill-after --signal",
    "gtimeout": "-k -s --kill-after --signal",
    "nice": "-n --adjustment",
    "ionice": "-c -n -p --class --classdata",
    "time": "-o -f --output --format",
    "stdbuf": "-i -o -e --input --output --error",
    "strace": "-o -e -p -s -E -u",
    "ltrace": "-o -e -p",
    "chroot": "--userspec --groups",
    "unshare": "--map-user -S -G",
    "taskset": "",
    "flock": "-w -E -c --timeout",
    "setpriv": "--reuid --regid",
    "exec": "-a",
    "watch": "-n -d --interval",
    "entr": "",
    "dotenv": "-f -e",
    "caffeinate": "-t -w",
    "systemd-run": "-p -u -M -E --unit --property --on-active --slice --uid --gid --setenv",
    "firejail": "",
    "prlimit": "",
    "nsenter": "-t -S -G --target",
    "runuser": "-u -g -s",
    "chronic": "", "nohup": "", "setsid": "", "command": "", "builtin": "", "busybox": "",
    "toybox": "", "coproc": "", "unbuffer": "", "faketime": "", "eatmydata": "", "fakeroot": "",
    "gosu": "", "tsocks": "", "proxychains": "", "proxychains4": "", "sem": "-j", "env-cmd": "-f",
    "then": "", "not": "", "!": "", "cross-env": "", "dbus-run-session": "", "xvfb-run": "-s -n",
    "ssh-agent": "-a -t", "direnv": "", "rtk": "", "arch": "", "valgrind": "",
    "pkexec": "--user",
    "hyperfine": "-w -r -m -n -p", "chrt": "", "numactl": "-N -m -C", "cpulimit": "-l -p",
}  # fmt: skip
_SKIPS = {"timeout": 1, "chrt": 1, "gtimeout": 1, "chroot": 1, "flock": 1, "taskset": 1, "gosu": 1,
          "faketime": 1, "prlimit": 0}  # fmt: skip


def start(call: "Call") -> Flow:
    """A launcher: options, then the command it starts."""
    options = call.options(_VALUED.get(call.name, ""), stops=True)
    if call.name == "command" and options.has("-v", "-V"):
        call.add(READ, "command", "reads")
        names = [word.value for word in options.operands]
        return Flow(TEXT, names[-1]) if names else NO_FLOW
    command = options.last("-c") if call.name == "flock" else None
    if command is not None:
        return call.run_text(command.value)
    folder = options.last("-D", "--chdir") if call.name == "sudo" else None
    if folder is not None:
        call.scope = call.scope.copy()
        call.scope.cwd = call.scope.absolute(folder.value) or None
    words = options.operands[_SKIPS.get(call.name, 0) :]
    while words and "=" in words[0].value and call.name in {"sudo", "cross-env", "dotenv", "doas"}:
        words = words[1:]
    if call.name in {"sudo", "doas"} and options.has("-s", "-i", "--shell", "--login"):
        text = " ".join(word.raw or word.value for word in words)
        return call.run_text(text) if words else call.add(PROGRAM, call.name)
    if not words:
        return call.add(READ, call.name)
    if call.name in {"watch", "hyperfine"} or (len(words) == 1 and " " in words[0].value):
        return _run_texts(call, words)
    if call.name == "direnv" and words[0].value == "exec":
        words = words[2:]
    return call.run(words)


def with_secrets(call: "Call") -> Flow:
    """Programs that hold secrets, and of which `run` or `exec` starts a command."""
    if call.texts[:1] not in (["run"], ["exec"]):
        return _own(call)
    texts = call.texts
    words = call.args[texts.index("--") + 1 :] if "--" in texts else call.args[1:]
    return call.run(words) if words else call.add(PROGRAM, call.name)


def new_shell(call: "Call") -> Flow:
    """`newgrp GROUP`: a shell that reads commands."""
    from takeback.guard.programs import code

    return code.run_flow(call, call.stdin)


def _run_texts(call: "Call", words: "list[Word]") -> Flow:
    if call.name == "hyperfine":
        for word in words:
            _run_known(call, word.value)
        return NO_FLOW
    return _run_known(call, " ".join(word.value for word in words))


def _run_known(call: "Call", text: str) -> Flow:
    if UNKNOWN in text:
        return call.shell.hide(call.raw, "eval", f"{call.name}.hidden")
    return call.run_text(text)


def environment(call: "Call") -> Flow:
    """`env`: variables, options, and a command; alone it shows the environment."""
    from takeback.guard.programs import registry

    options = call.options("-u -C -S --unset --chdir --split-string", stops=True)
    for text in options.all("-S", "--split-string"):
        rest = " ".join(word.raw or word.value for word in options.operands)
        return _run_known(call, f"{text.value} {rest}")
    folder = options.last("-C", "--chdir")
    if folder is not None:
        call.scope = call.scope.copy()
        call.scope.cwd = call.scope.absolute(folder.value) or None
    words = list(options.operands)
    while words and "=" in words[0].value:
        name, _, value = words.pop(0).value.partition("=")
        if name in {"LD_PRELOAD", "BASH_ENV", "LD_LIBRARY_PATH"}:
            call.shell.hide(call.raw, "loads-code", "shell.variable")
        registry.judge_named(call.shell, call.scope, name, Word(value), call.raw)
        call.scope = call.scope.copy()
        call.scope.variables[name] = (Word(value),)
    if not words:
        call.add(READ, "env", "reads")
        return Flow(HIDDEN, has_secret=True)
    return call.run(words)


def collect(call: "Call") -> Flow:
    """`xargs`: a command with what comes through the pipe as its arguments."""
    options = call.options(
        "-I -n -P -L -d -s -E -a --max-args --max-procs --replace --delimiter --arg-file",
        stops=True,
    )
    words = list(options.operands) or [Word("echo")]
    given = _arguments(call)
    mark = options.last("-I", "--replace", "-i")
    if mark is not None:
        name = mark.value or "{}"
        if call.stdin.kind == TEXT and UNKNOWN not in call.stdin.text:
            given = [Word(line, line) for line in call.stdin.text.splitlines()[:100]]
        words = [made for word in words for made in _replaced(word, name, given)]
    else:
        words += given
    return call.run(words, NO_FLOW)


def _arguments(call: "Call") -> "list[Word]":
    if call.stdin.kind == LISTING and call.stdin.paths:
        return [word.replace(is_glob=True) for word in call.stdin.paths]
    if call.stdin.kind == TEXT and UNKNOWN not in call.stdin.text:
        whole = {"-0", "--null", "-d"} & set(call.texts)
        texts = [call.stdin.text.strip("\n\0")] if whole else call.stdin.text.split()[:100]
        return [Word(text, text) for text in texts]
    return [Word(UNKNOWN, "(from the pipe)")]


def _replaced(word: Word, mark: str, given: "list[Word]") -> "list[Word]":
    if word.value == mark:
        return given
    if mark not in word.value:
        return [word]
    known = given[0].value if len(given) == 1 and not given[0].is_glob else UNKNOWN
    return [word.replace(value=word.value.replace(mark, known))]


def parallel(call: "Call") -> Flow:
    options = call.options("-j --jobs -I -N -n --colsep -a --results --timeout --delay", stops=True)
    values = [word.value for word in options.operands]
    at = next((at for at, text in enumerate(values) if text.startswith(":::")), len(values))
    words, given = options.operands[:at], options.operands[at + 1 :] or _arguments(call)
    if not words:
        return call.shell.hide(call.raw, "eval", "parallel.hidden")
    if len(words) == 1 and " " in words[0].value:
        return _run_known(call, f"{words[0].value} {' '.join(word.raw for word in given)}")
    return call.run([*(made for word in words for made in _replaced(word, "{}", given)), *given])


def switch_user(call: "Call") -> Flow:
    """`su -c COMMAND`, `script -c COMMAND`."""
    options = call.options("-c --command -s --shell -g -u")
    command = options.last("-c", "--command")
    if command is None:
        return call.add(PROGRAM, call.name)
    if call.name == "su" and {"-", "-l", "--login"} & set(call.texts):
        call.scope = call.scope.copy()
        call.scope.cwd = None  # it runs in the other user's home folder
    return _run_known(call, command.value)


def profile(call: "Call") -> Flow:
    """`perf stat COMMAND`, `perf record -- COMMAND`; its reports only read."""
    from takeback.guard.call import parse

    if call.texts[:1] not in (["stat"], ["record"], ["trace"], ["mem"], ["lock"], ["sched"]):
        return call.add(READ, "perf", "reads")
    valued = "-o -e -p -F -C -r -g -D -I -a --output --event --call-graph --delay --repeat"
    words = parse(call.args[1:], valued.replace(" -g", "").replace(" -a", ""), stops=True).operands
    while words and words[0].value in {"record", "--"}:
        words = words[1:]
    return call.run(words) if words else call.add(READ, "perf", "reads")


def later(call: "Call") -> Flow:
    """`at`, `batch`: what comes through the pipe runs later."""
    from takeback.guard.programs import code

    call.add(LOCAL, call.name, "changes-machine")
    if any(text in {"-l", "-d", "-r"} for text in call.texts):
        return NO_FLOW
    return code.run_flow(call, call.stdin)


def multiplex(call: "Call") -> Flow:
    """`tmux`, `screen`: some of their subcommands run a command line."""
    call.add(LOCAL, call.name, "changes-machine")
    options = call.options("-s -n -t -c -L -f -S -x -y -F" if call.name == "tmux" else "-S -c -L")
    words = options.operands
    if call.name == "screen":
        return call.run(words) if words else NO_FLOW
    first = words[0].value if words else ""
    if first in {"send-keys", "send", "new-session", "new", "new-window", "neww", "split-window",
                 "splitw", "run-shell", "run", "respawn-pane", "pipe-pane",
                 "if-shell"}:  # fmt: skip
        keys = {"Enter", "C-m", "C-c", "C-l"}
        texts = [word.value for word in words[1:] if word.value not in keys]
        for text in texts:
            if text:
                _run_known(call, text)
    return NO_FLOW


# -- programs of packages -----------------------------------------------------------------------

_RUNNERS = {
    "npx": ("", "-p --package -c --call"),
    "bunx": ("", "-p"),
    "pnpx": ("", ""),
    "uvx": ("", "--from --with --python -p"),
    "uv": ("run", "--with --python -p --directory --project --group --extra --env-file -m"),
    "poetry": ("run", "-C --directory"),
    "pipenv": ("run", ""),
    "pdm": ("run", ""),
    "hatch": ("run", ""),
    "rye": ("run", ""),
    "pipx": ("run", "--spec"),
    "bundle": ("exec", ""),
    "mise": ("exec", ""),
    "asdf": ("exec", ""),
    "conda": ("run", "-n -p --name"),
    "pixi": ("run", ""),
    "pnpm": ("exec dlx", "--filter -F --dir -C"),
    "yarn": ("exec dlx", "--cwd"),
    "npm": ("exec x", "--package -c --prefix -w --workspace"),
    "bun": ("x", "--cwd"),
    "devbox": ("run", ""),
    "nix": ("run develop shell", "-c --command"),
    "infisical": ("run", "--env"),
}


def run_package(call: "Call") -> Flow:
    """`npx NAME`, `uv run NAME`: a known name is judged, anything else is a program."""
    from takeback.guard import knowledge
    from takeback.guard.programs import registry

    subs, valued = _RUNNERS[call.name]
    options = call.options(valued, stops=True)
    for text in options.all("-c", "--call", "--command"):
        return _run_known(call, text.value)
    words = list(options.operands)
    if subs:
        if not words or words[0].value not in subs.split():
            return _own(call)
        from takeback.guard.call import parse

        words = parse(words[1:], valued, stops=True).operands
    if not words:
        return call.add(PROGRAM, call.name)
    name = words[0].value.rpartition("/")[2].partition("@")[0] or words[0].value
    if name in registry.JUDGES or name in knowledge.programs() or words[0].value == "--":
        return call.run([words[0].replace(value=name), *words[1:]])
    call.add(PROGRAM, f"{call.name}.run", "runs-program")
    if subs != "run":  # what it fetches is not of the project, so its words say what it does
        knowledge.judge_by_words(call, name, [word.value for word in words[1:]])
    return HIDDEN_FLOW


def _own(call: "Call") -> Flow:
    from takeback.guard import knowledge

    if "build" in call.texts[:3] and "--secret" in " ".join(call.texts):
        return call.add(PROGRAM, f"{call.name}.build", "runs-program")

    program = knowledge.programs().get(call.name)
    if program is None:
        return call.add(PROGRAM, call.name)
    return knowledge.judge(call, program)


# -- elsewhere ----------------------------------------------------------------------------------

_HARMLESS = (READ,)


def run_elsewhere(
    call: "Call", words: "list[Word]", *, rule: str, is_remote: bool, host: str = "",
    text: str = "",
) -> Flow:  # fmt: skip
    """Judge what runs on another machine or in a container: nothing there is in the project."""
    shell, before = call.shell, len(call.shell.findings)
    scope = call.scope.elsewhere()
    scope.cwd = "/"
    if text:
        shell.run_text(text, scope, call.stdin)
    elif len(words) == 1:
        shell.run_text(words[0].value, scope, call.stdin)
    else:
        shell.invoke(words, call.stdin, call.raw, scope)
    found = shell.findings[before:]
    shell.findings[before:] = [
        _seen_there(each, call, rule, is_remote=is_remote, host=host) for each in found
    ]
    return HIDDEN_FLOW


def _seen_there(found: Finding, call: "Call", rule: str, *, is_remote: bool, host: str) -> Finding:
    bare = found.replace(targets=(), git=(), git_dirs=())
    if found.effect in {READ, OPAQUE, IRREVERSIBLE}:
        return bare
    if is_remote:
        outside = Outside("remote", call.raw, host, IRREVERSIBLE)
        reason = Reason("outside", program=call.name, kind="remote", host=host)
        return bare.replace(effect=IRREVERSIBLE, rule=rule, reason=reason, outside=(outside,))
    if found.effect in {INSIDE, TRANSACTIONAL, COMPENSABLE} and found.effect != COMPENSABLE:
        return bare.replace(effect=LOCAL, rule=rule)
    return bare


_LOCAL_CONTEXTS = frozenset("default desktop-linux colima orbstack rootless minikube".split())


def _is_elsewhere(call: "Call") -> bool:
    """Whether docker talks to another machine: by context, host or `DOCKER_HOST`."""
    options = call.options("-H --host --context -c", stops=True)
    context, host = options.last("--context", "-c"), options.last("-H", "--host")
    if context is not None and context.value not in _LOCAL_CONTEXTS:
        return True
    variable = call.scope.single("DOCKER_HOST")
    texts = [each.value for each in (host, variable) if each is not None]
    return any(text.startswith(("tcp://", "ssh://")) and "localhost" not in text for text in texts)


def run_in_container(call: "Call") -> Flow:
    """`docker exec NAME COMMAND`, `docker compose exec SERVICE COMMAND`, `docker run IMAGE`."""
    from takeback.guard.call import parse
    from takeback.guard.programs import hidden

    options = call.options(
        "-H --host --context -c -f --file -p --project-name --env-file", stops=True
    )
    words = list(options.operands)
    if words[:1] and words[0].value in {"compose", "container"}:
        options = parse(words[1:], "-f --file -p --project-name --env-file --profile", stops=True)
        words = list(options.operands)
    first = words[0].value if words else ""
    if first not in {"exec", "run"}:
        given = _own(call)
        if _is_elsewhere(call):
            call.findings = [_seen_there(each, call, "docker.remote", is_remote=True, host="")
                             for each in call.findings]  # fmt: skip
        return given
    inner = parse(
        words[1:],
        "-u --user -w --workdir -e --env --env-file --index --detach-keys -v --volume --name -p "
        "--publish --network --net --entrypoint -m --memory --cpus --mount --platform --add-host "
        "-l --label --restart --gpus --ipc --shm-size --ulimit --hostname -h --pull",
        stops=True,
    )
    if first == "run":
        is_server = inner.has("-d", "--detach") and len(inner.operands) < 2
        call.add(LOCAL if is_server else PROGRAM, "docker.run", "runs-program")
        words = inner.operands[1:]
        if words and hidden.is_program(words[0].value):
            run_elsewhere(call, words, rule="docker.run", is_remote=False)
        return HIDDEN_FLOW
    if len(inner.operands) < 2:
        return call.add(PROGRAM, "docker.exec", "runs-program")
    return run_elsewhere(call, inner.operands[1:], rule="docker.exec", is_remote=False)


_KUBECTL = (
    "-n --namespace --context -c --container -f --filename -o --output -l --selector --kubeconfig "
    "--kube-context --set --values --version --cluster --user --type -p --patch --replicas"
)


def run_in_cluster(call: "Call") -> Flow:
    """`kubectl exec POD -- COMMAND`; a cluster on this machine is known by its context."""
    options = call.options(_KUBECTL)
    words = options.operands
    context = options.last("--context", "--kube-context")
    is_local = context is not None and context.value.startswith(
        ("kind-", "minikube", "docker-desktop", "k3d-", "rancher-desktop", "colima", "orbstack")
    )
    if words and words[0].value in {"exec", "debug", "run"} and "--" in call.texts:
        after = call.args[call.texts.index("--") + 1 :]
        if words[0].value == "exec":
            return run_elsewhere(call, after, rule="kubectl.exec", is_remote=not is_local)
    elif words and words[0].value == "exec" and len(words) > 2:
        return run_elsewhere(call, words[2:], rule="kubectl.exec", is_remote=not is_local)
    if words and words[0].value == "cp" and len(words) == 3 and ":" not in words[2].value:
        from takeback.guard.programs.files import overwrite

        return overwrite(call, [words[2]], rule="kubectl.cp")
    given = _own(call)
    if words and words[0].value == "scale" and "--replicas=0" in call.texts:
        call.findings = [
            each.at_least(IRREVERSIBLE, each.rule, each.reason) for each in call.findings
        ]
    if is_local:
        verb = words[0].value if words else ""
        call.findings = [_on_this_machine(each, verb) for each in call.findings]
    return given


def _on_this_machine(found: Finding, verb: str) -> Finding:
    if found.effect not in {IRREVERSIBLE, COMPENSABLE}:
        return found
    effect = "destructive" if verb in {"delete", "drain", "replace", "uninstall"} else LOCAL
    return found.replace(
        effect=effect, outside=(), reason=Reason("changes-machine", program="kubectl")
    )


JUDGES: "dict[str, Callable[[Call], Flow]]" = {
    **dict.fromkeys(_VALUED, start),
    "env": environment,
    "xargs": collect,
    "perf": profile,
    "newgrp": new_shell,
    **dict.fromkeys(("op", "doppler", "aws-vault"), with_secrets),
    "parallel": parallel,
    "su": switch_user,
    "script": switch_user,
    "at": later,
    "batch": later,
    "tmux": multiplex,
    "screen": multiplex,
    **dict.fromkeys(_RUNNERS, run_package),
    "docker": run_in_container,
    "docker-compose": run_in_container,
    "podman": run_in_container,
    "nerdctl": run_in_container,
    "kubectl": run_in_cluster,
    "oc": run_in_cluster,
    "k": run_in_cluster,
    "helm": run_in_cluster,
}
