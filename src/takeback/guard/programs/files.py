"""Programs that delete, overwrite, move and search files, and redirections."""

from takeback.guard.call import parse
from takeback.guard.findings import FILE, NO_FLOW, NOTHING, TEXT, UNKNOWN, Flow, Word
from takeback.guard.programs import builtins
from takeback.guard.scope import is_device, text_of
from takeback.model.beyond.effects import (
    DELETE,
    DESTRUCTIVE,
    IN_GIT,
    IN_TREE,
    INSIDE,
    LOCAL,
    MODE,
    MOVE,
    OUTSIDE,
    OVERWRITE,
    PROGRAM,
    READ,
    TRUNCATE,
    WHOLE_GIT,
    Target,
)  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from takeback.guard.call import Call
    from takeback.guard.scope import Scope


def judge_redirect(call: "Call", word: Word, *, is_append: bool) -> None:
    """`> file` empties what is there; `>> file` loses nothing."""
    path = call.scope.absolute(word.value)
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        from takeback.guard.programs.network import is_local_host

        host = path.split("/")[3]
        if is_local_host(host):
            call.add(PROGRAM, "shell.socket", "sends-local", host=host)
        else:
            call.publish("request", host=host, rule="shell.socket")
    elif is_append:
        _append(call, word)
    elif is_device(path):
        target = call.scope.target(word, OVERWRITE)
        call.add(DESTRUCTIVE, "shell.device", "overwrites-device", targets=(target,))
    else:
        overwrite(call, [word], rule="shell.redirect")


def overwrite(call: "Call", words: "Sequence[Word]", rule: str = "") -> Flow:
    """Note files that are written anew; one in a temporary folder is taken for a new one."""
    targets = [call.scope.target(word, OVERWRITE) for word in words]
    kept = [each for each in targets if not _is_temporary(call, each)]
    if len(kept) < len(targets):
        call.add(LOCAL, rule, "writes-temporary")
    if kept:
        call.add_targets(kept, "overwrites", rule=rule)
    return NO_FLOW


def _is_temporary(call: "Call", target: Target) -> bool:
    return target.where == OUTSIDE and call.scope.is_temporary(text_of(target.path))


def _append(call: "Call", word: Word) -> None:
    path = call.scope.absolute(word.value)
    where = call.scope.where(path)
    call.add(INSIDE if where == IN_TREE else LOCAL, "shell.append", "appends")


def note_written(scope: "Scope", word: Word, given: Flow, *, is_append: bool = False) -> None:
    """Remember what a redirection wrote, so that a script in it can be read later."""
    path = scope.absolute(word.value)
    if not path or not word.is_known:
        return
    before = scope.written.get(path)
    if is_append and before is not None:
        is_text = before.kind == given.kind == TEXT
        scope.written[path] = given.replace(text=before.text + given.text) if is_text else given
        return
    scope.written[path] = given if given.kind != NOTHING else Flow("empty")
    if not is_append:
        scope.made.add(path)


# -- delete and move ----------------------------------------------------------------------------


def remove(call: "Call") -> Flow:
    options = call.options("")
    is_recursive = options.has("-r", "-R", "--recursive")
    words = options.operands
    if options.has("--help", "--version") or not words:
        return call.add(READ, call.name, "reads")
    targets = [call.scope.target(word, DELETE, is_recursive=is_recursive) for word in words]
    if call.scope.root and any(_holds_root(call, each) for each in targets):
        return call.add(
            DESTRUCTIVE, "rm.root", "deletes-project", targets=targets, git=(WHOLE_GIT,)
        )
    return call.add_targets(targets, "deletes")


def _holds_root(call: "Call", target: Target) -> bool:
    """Whether a deletion takes the project's folder with everything in it, `.git` included."""
    path = text_of(target.path)
    root = call.scope.root
    if not path or not target.is_recursive:
        return False
    if target.is_glob and not path.endswith((".*", "/.[!.]*")):
        folder = path.rpartition("/")[0]
        return (root + "/").startswith(folder + "/") and folder != root and folder + "/" != root
    path = path.removesuffix("/.*").removesuffix("/.[!.]*")
    return (root + "/").startswith(path.rstrip("/") + "/")


def shred(call: "Call") -> Flow:
    options = call.options("-n -s --iterations --size --random-source")
    targets = [call.scope.target(word, TRUNCATE) for word in options.operands]
    if any(is_device(text_of(each.path)) for each in targets):
        return call.add(DESTRUCTIVE, "shred", "overwrites-device", targets=targets)
    return call.add_targets(targets, "overwrites")


def move(call: "Call") -> Flow:
    options = call.options("-t --target-directory -S --suffix")
    words = list(options.operands)
    into = options.last("-t", "--target-directory")
    if into is None and len(words) > 1:
        into = words.pop()
    if into is None or not words:
        return call.add(READ, call.name, "reads")
    targets = [call.scope.target(word, MOVE) for word in words]
    end = call.scope.target(into, OVERWRITE)
    outside = [each for each in targets if each.where != IN_TREE and not call.is_harmless(each)]
    if not outside and end.where == IN_TREE:
        return call.add(INSIDE, "mv", "moves", targets=[*targets, end])
    if end.where in {IN_TREE, OUTSIDE} and (_is_temporary(call, end) or end.where == IN_TREE):
        grave = [each for each in outside if each.where != OUTSIDE]
        effect = DESTRUCTIVE if grave or call.scope.root in _texts(targets) else LOCAL
        git = (WHOLE_GIT,) if any(each.path.endswith(b"/.git") for each in targets) else ()
        return call.add(effect, "mv", "moves", targets=[*targets, end], git=git)
    git = (WHOLE_GIT,) if any(each.path.endswith(b"/.git") for each in targets) else ()
    return call.add(DESTRUCTIVE, "mv", "moves", targets=[*targets, end], git=git)


def _texts(targets: "Sequence[Target]") -> "list[str]":
    return [each.path.decode("utf-8", "surrogateescape") for each in targets]


def copy(call: "Call") -> Flow:
    options = call.options("-t --target-directory -S --suffix -m -o -g --mode --owner --group")
    words = list(options.operands)
    into = options.last("-t", "--target-directory")
    if call.name == "install" and options.has("-d", "--directory"):
        return make_folder(call)
    if into is None and len(words) > 1:
        into = words.pop()
    if into is None:
        return call.add(READ, call.name, "reads")
    path = call.scope.absolute(into.value)
    if path and into.is_known and len(words) == 1:
        from takeback.guard.programs.registry import content_of

        source = content_of(words[0], call.scope)
        if source.kind != FILE:
            call.scope.written[path] = source
    return overwrite(call, [into])


def link(call: "Call") -> Flow:
    options = call.options("-t --target-directory -S --suffix")
    words = options.operands
    end = words[-1] if len(words) > 1 else Word(".")
    where = call.scope.where(call.scope.absolute(end.value))
    if options.has("-f", "--force"):
        overwrite(call, [end])
    else:
        call.add(INSIDE if where == IN_TREE else LOCAL, "ln", "creates")
    _remember_link(call, words, end)
    return NO_FLOW


def _remember_link(call: "Call", words: "Sequence[Word]", end: Word) -> None:
    """What is reached through a link is where the link leads."""
    import posixpath

    path = call.scope.absolute(end.value)
    if len(words) != 2 or not path or not words[0].value:
        return
    text = words[0].value
    if not text.startswith(("/", "~", UNKNOWN)):
        text = f"{posixpath.dirname(path)}/{text}"
    start = call.scope.absolute(text)
    if start:
        call.scope.links[path] = start


def make_folder(call: "Call") -> Flow:
    """What is made new destroys nothing, wherever it is."""
    options = call.options("-m --mode -t -d -r --date --reference -o -g")
    effect = INSIDE
    for word in options.operands:
        path = call.scope.absolute(word.value)
        if call.scope.where(path) != IN_TREE:
            effect = LOCAL
        if path and call.name == "mkdir" and not options.has("-p", "--parents"):
            call.scope.made.add(path)
    return call.add(effect, call.name, "creates")


def truncate(call: "Call") -> Flow:
    options = call.options("-s -r --size --reference -o")
    targets = [call.scope.target(word, TRUNCATE) for word in options.operands]
    return call.add_targets(targets, "overwrites")


def write_disk(call: "Call") -> Flow:
    """`dd`: what `of=` names is overwritten; a device is lost."""
    ends = [word for word in call.args if word.value.startswith("of=")]
    if not ends:
        return call.add(READ, "dd", "reads")
    words = [word.replace(value=word.value[3:]) for word in ends]
    if is_device(words[0].value) and words[0].value != "/dev/null":
        target = call.scope.target(words[0], OVERWRITE)
        return call.add(DESTRUCTIVE, "dd.device", "overwrites-device", targets=(target,))
    if words[0].value == "/dev/null":
        return call.add(READ, "dd", "reads")
    return overwrite(call, words)


def tee(call: "Call") -> Flow:
    options = call.options("--output-error")
    words = [word for word in options.operands if not is_device(word.value)]
    written: list[tuple[Word, bool]] = []
    for word in options.operands:
        if word.value.startswith("/dev/sd"):
            call.add(DESTRUCTIVE, "tee", "overwrites-device")
        if word.is_known:
            written.append((word, options.has("-a", "--append")))
    if options.has("-a", "--append"):
        for word in words:
            _append(call, word)
    elif words:
        overwrite(call, words)
    else:
        call.add(READ, "tee", "reads")
    for word, is_append in written:
        note_written(call.scope, word, call.stdin, is_append=is_append)
    return call.stdin


def change_mode(call: "Call") -> Flow:
    options = call.options("--reference --from")
    is_recursive = options.has("-R", "--recursive")
    words = options.operands[(0 if options.has("--reference") else 1) :]
    targets = [call.scope.target(word, MODE, is_recursive=is_recursive) for word in words]
    effect = INSIDE
    for each in targets:
        if each.where == IN_TREE or call.is_harmless(each):
            continue
        if is_recursive and not _is_temporary(call, each):
            effect = DESTRUCTIVE
        elif effect == INSIDE:
            effect = LOCAL
    return call.add(effect, call.name, "changes-mode", targets=targets)


# -- search and edit ----------------------------------------------------------------------------

_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_FIND_WRITES = ("-fprint", "-fprintf", "-fls", "-fprint0")
_FIND_NARROWS = (
    "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-type", "-size",
    "-mtime", "-newer", "-mmin", "-empty", "-user", "-perm", "-maxdepth", "-links", "-ctime",
    "-atime", "-amin", "-cmin",
)  # fmt: skip


def find(call: "Call") -> Flow:
    starts, tests = _find_parts(call.args)
    texts = [word.value for word in tests]
    patterns = _find_patterns(starts, tests)
    if "-delete" in texts:
        _found_deleted(call, starts, texts, patterns)
    at = 0
    while at < len(tests):
        if texts[at] in _FIND_RUNS:
            end = _end_of_command(texts, at + 1)
            inner = [word.replace(value=call.scope.absolute(word.value)) for word in patterns]
            cwd = call.scope.cwd
            if texts[at].endswith("dir"):
                call.scope.cwd = None  # it runs in the folder of what it found
            _found_run(call, tests[at + 1 : end], inner)
            call.scope.cwd = cwd
            at = end
        elif texts[at] in _FIND_WRITES and at + 1 < len(tests):
            overwrite(call, [tests[at + 1]], rule="find.print")
        at += 1
    if not call.findings:
        call.add(READ, "find", "reads")
    from takeback.guard.findings import LISTING

    return Flow(LISTING, paths=tuple(patterns))


def _find_parts(args: "list[Word]") -> "tuple[list[Word], list[Word]]":
    at = 0
    while at < len(args) and args[at].value in {"-L", "-H", "-P", "-E", "-X"}:
        at += 1
    start = at
    while at < len(args) and not args[at].value.startswith(("-", "(", "!")):
        at += 1
    return args[start:at] or [Word(".")], args[at:]


def _find_patterns(starts: "list[Word]", tests: "list[Word]") -> "list[Word]":
    """What find may name: a pattern below each start; the starts themselves only without tests."""
    endings = dict.fromkeys(
        f"**/{name}" if "/" not in name else "**/*"
        for alternative in _alternatives(tests)
        for name in _names_in(alternative)
    )
    found = []
    for start in starts:
        for ending in endings or ("**/*",):
            value = f"{start.value.rstrip('/') or '/'}/{ending}".replace("//", "/")
            found.append(Word(value, start.raw, is_glob=True))
    return found


def _alternatives(tests: "list[Word]") -> "list[list[Word]]":
    """What stands between `-o`, but for what is only left out."""
    found: list[list[Word]] = [[]]
    for word in tests:
        if word.value in {"-o", "-or", ","}:
            found.append([])
        else:
            found[-1].append(word)
    return [each for each in found if not any(word.value == "-prune" for word in each)]


def _names_in(tests: "list[Word]") -> "list[str]":
    """The patterns of names that tests have; any name if they have none."""
    found = []
    for at, word in enumerate(tests[:-1]):
        is_negated = at > 0 and tests[at - 1].value in {"!", "-not"}
        if word.value in {"-name", "-iname"} and not is_negated:
            name = tests[at + 1].value
            found.append(_in_any_case(name) if word.value == "-iname" else name)
    return found or ["*"]


def _in_any_case(pattern: str) -> str:
    """A pattern for names whose letters may be large or small."""
    if "[" in pattern:
        return "*"
    return "".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else c for c in pattern)


def _found_deleted(
    call: "Call", starts: "list[Word]", texts: "list[str]", patterns: "list[Word]"
) -> None:
    narrow = any(text in _FIND_NARROWS and text not in {"-type", "-maxdepth"} for text in texts)
    spares_git = any(text in {".git", "*/.git/*", "./.git/*", "./.git", "*/.git"} for text in texts)
    narrow = narrow or (spares_git and ("-not" in texts or "!" in texts or "-prune" in texts))
    words = patterns if narrow else starts
    targets = [call.scope.target(word, DELETE, is_recursive=True) for word in words]
    if not narrow and call.scope.root and any(_holds_root(call, each) for each in targets):
        call.add(DESTRUCTIVE, "find.root", "deletes-project", targets=targets, git=(WHOLE_GIT,))
    else:
        call.add_targets(targets, "deletes", rule="find.delete")


def _end_of_command(texts: "list[str]", start: int) -> int:
    for at in range(start, len(texts)):
        if texts[at] == ";" or (texts[at] == "+" and at > start and texts[at - 1] == "{}"):
            return at
    return len(texts)


def _found_run(call: "Call", words: "list[Word]", patterns: "list[Word]") -> None:
    """The command of `-exec`, with the names that find may put in."""
    if not words:
        return
    made: list[Word] = []
    for word in words:
        if word.value == "{}":
            made += patterns
        elif "{}" in word.value:
            made.append(word.replace(value=word.value.replace("{}", UNKNOWN)))
        else:
            made.append(word)
    call.run(made, NO_FLOW)


_FD = "-d -t -e -E -c -j -S -o --type --extension --exclude --max-depth --size --owner --color"


def find_fast(call: "Call") -> Flow:
    """`fd`: reads, unless it runs a command for what it finds."""
    texts = call.texts
    for at, text in enumerate(texts):
        if text in {"-x", "-X", "--exec", "--exec-batch"}:
            before = parse(call.args[:at], _FD)
            folders = [word.value for word in before.operands][1:]
            folders += [word.value for word in before.all("--search-path", "--base-directory")]
            given = [Word(f"{each}/*", is_glob=True) for each in folders or ["."]]
            rest = call.args[at + 1 :]
            words = [each for word in rest for each in (given if word.value == "{}" else [word])]
            if "{}" not in texts[at + 1 :]:
                words += given
            return call.run(words, NO_FLOW)
    call.add(READ, "fd", "reads")
    return builtins.flow_of(call)


def edit_stream(call: "Call") -> Flow:
    """`sed`: a filter, unless it edits in place, writes a file or runs a command."""
    options = call.options("-e -f --expression --file -l -s --line-length")
    words = [word for word in options.operands if word.value]
    scripts = options.all("-e", "--expression")
    if not scripts and words and not options.has("-f", "--file"):
        scripts = [words.pop(0)]
    for script in scripts:
        _sed_script(call, script)
    if _edits_in_place(call.texts):
        overwrite(call, words or [Word(UNKNOWN)], rule="sed.in-place")
    elif not call.findings:
        call.add(READ, "sed", "reads")
    return builtins.flow_of(call)


def _edits_in_place(texts: "list[str]") -> bool:
    import re

    return any(re.match(r"--in-place|-[nErsuz]*i", text) for text in texts)


def _sed_script(call: "Call", script: Word) -> None:
    import re

    text = script.value
    if re.search(r"(?:^|[;{}\n]|\d|\$|/)\s*e(?:\s+\S|\s*$)|/[gp0-9]*e[gp]*\s*(?:$|[;}\n])", text):
        command = re.search(r"(?:^|[;{}\n\d$/])\s*e\s+(.+)", text)
        if command is not None:
            call.run_text(command[1])
        call.shell.hide(call.raw, "hidden", "sed.run")
    for found in re.finditer(r"(?:^|[;{}\n]|/[gpI0-9]*)\s*w\s+(\S+)", text):
        overwrite(call, [Word(found[1])], rule="sed.write")


def sort(call: "Call") -> Flow:
    options = call.options("-o --output -k -t -S -T --compress-program --key --field-separator")
    end = options.last("-o", "--output")
    program = options.last("--compress-program")
    if program is not None:
        call.run([program])
    if end is not None:
        overwrite(call, [end])
    else:
        call.add(READ, "sort", "reads")
    return builtins.flow_of(call)


def archive(call: "Call") -> Flow:
    """`tar`: lists, makes or unpacks; some options run programs."""
    options = call.options("-f -C -T -X -I --file --directory --exclude --use-compress-program "
                           "--to-command --checkpoint-action --strip-components -b")  # fmt: skip
    for word in options.all("-I", "--use-compress-program", "--to-command", "-F", "--info-script"):
        call.run_text(word.value)
    for word in options.all("--checkpoint-action"):
        if word.value.startswith("exec="):
            call.run_text(word.value[5:])
            call.shell.hide(call.raw, "hidden", "tar.run")
    texts = call.texts
    first = texts[0] if texts else ""
    mode = first if not first.startswith("--") else ""
    if "x" in mode or options.has("-x", "--extract", "--get"):
        if "P" in mode or options.has("-P", "--absolute-names"):
            return call.add_targets(
                [call.scope.target(Word(UNKNOWN, "(in the archive)"), OVERWRITE)], "overwrites"
            )
        into = options.last("-C", "--directory") or _after(call.args, "C") or Word(".")
        return _unpack(call, into, overwrites=options.has("--overwrite"))
    if "c" in mode or options.has("-c", "--create"):
        end = options.last("-f", "--file") or _archive_name(call.args)
        if options.has("--remove-files"):
            _archived(call, options.operands)
        if end is not None and end.value != "-":
            return overwrite(call, [end])
        call.add(READ, "tar", "reads")
        return builtins.filtered(call)
    if options.has("--delete", "-r", "-u", "--append", "--update"):
        return call.add(INSIDE, "tar", "changes-files")
    return call.add(READ, "tar", "reads")


def _archived(call: "Call", words: "Sequence[Word]") -> None:
    """Files that are deleted once they are in an archive."""
    targets = [call.scope.target(word, DELETE, is_recursive=True) for word in words]
    call.add_targets(targets, "deletes", rule=f"{call.name}.remove")


def _after(args: "list[Word]", letter: str) -> "Word | None":
    for at, word in enumerate(args[:-1]):
        if word.value == "-" + letter:
            return args[at + 1]
    return None


def _archive_name(args: "list[Word]") -> "Word | None":
    """The archive of `tar czf name`, where the letters have no dash."""
    if len(args) > 1 and "f" in args[0].value and not args[0].value.startswith("-"):
        return args[1]
    return None


def _unpack(call: "Call", into: Word, *, overwrites: bool = False) -> Flow:
    path = call.scope.absolute(into.value)
    where = call.scope.where(path)
    if where == IN_TREE:
        return call.add(INSIDE, call.name, "changes-files")
    if call.scope.is_temporary(path) or call.scope.is_made(path) or path.startswith("/tmp"):  # noqa: S108
        return call.add(LOCAL, call.name, "writes-temporary")
    if overwrites or where == IN_GIT or path in {"", "/", "/etc", "/usr", call.scope.home}:
        return call.add_targets([call.scope.target(into, OVERWRITE)], "overwrites")
    return call.add(LOCAL, call.name, "changes-machine")


def unzip(call: "Call") -> Flow:
    options = call.options("-d -x -P")
    if options.has("-l", "-t", "-v", "-Z"):
        return call.add(READ, "unzip", "reads")
    return _unpack(call, options.last("-d") or Word("."), overwrites=options.has("-o"))


def pack(call: "Call") -> Flow:
    """`7z`: its first word says what it does, and `-oFOLDER` where."""
    verb = call.texts[0] if call.texts else ""
    if verb in {"l", "t", "i", "h", "b", ""}:
        return call.add(READ, call.name, "reads")
    if verb in {"x", "e"}:
        into = next((word for word in call.args if word.value.startswith("-o")), Word("-o."))
        overwrites = bool({"-y", "-aoa"} & set(call.texts))
        return _unpack(call, into.replace(value=into.value[2:]), overwrites=overwrites)
    ends = [word for word in call.args[1:] if not word.value.startswith("-")]
    if "-sdel" in call.texts:
        _archived(call, ends[1:])
    return overwrite(call, ends[:1])


def compress(call: "Call") -> Flow:
    """`zip a.zip files`, `gzip file`."""
    options = call.options("-P -b -n -t -tt -TT --unzip-command")
    runs = options.last("-TT", "--unzip-command")
    if runs is not None:
        call.run_text(runs.value)
        call.shell.hide(call.raw, "hidden", "zip.run")
    words = options.operands[:1] if call.name == "zip" else options.operands
    if call.name == "zip" and options.has("-m", "--move"):
        _archived(call, options.operands[1:])
    if options.has("-c", "--stdout", "-l", "-t") or not words:
        call.add(READ, call.name, "reads")
        return builtins.flow_of(call)
    return overwrite(call, words)


JUDGES: "dict[str, Callable[[Call], Flow]]" = {
    **dict.fromkeys("rm unlink rmdir srm rimraf del-cli trash".split(), remove),
    "shred": shred,
    "mv": move,
    "cp": copy,
    "install": copy,
    "ln": link,
    **dict.fromkeys(("mkdir", "touch", "mkfifo", "mknod"), make_folder),
    "truncate": truncate,
    "dd": write_disk,
    "tee": tee,
    "sponge": tee,
    **dict.fromkeys(("chmod", "chown", "chgrp", "setfacl", "chattr"), change_mode),
    "find": find,
    "gfind": find,
    "fd": find_fast,
    "fdfind": find_fast,
    "sed": edit_stream,
    "gsed": edit_stream,
    "sort": sort,
    "tar": archive,
    "bsdtar": archive,
    "gtar": archive,
    "unzip": unzip,
    **dict.fromkeys(("7z", "7za", "7zz", "7zr"), pack),
    **dict.fromkeys(("zip", "gzip", "bzip2", "xz", "zstd", "gunzip", "bunzip2", "unxz"), compress),
}
