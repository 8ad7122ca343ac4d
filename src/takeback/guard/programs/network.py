"""Programs that talk to other machines: HTTP by method and host, shells and copies elsewhere."""

import re

from takeback.guard.findings import (
    DOWNLOAD,
    HIDDEN_FLOW,
    NO_FLOW,
    NOTHING,
    TEXT,
    UNKNOWN,
    Flow,
    Word,
)
from takeback.guard.scope import bytes_of
from takeback.model.beyond.effects import (
    DESTRUCTIVE,
    LOCAL,
    PROGRAM,
    READ,
)  # fmt: skip
from takeback.model.text.secrets import PLAIN, how_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from takeback.guard.call import Call, Options

_SENDERS = frozenset(
    """
    curl wget nc ncat netcat socat ssh scp sftp rsync ftp lftp telnet http https xh httpie aws
    gsutil
    gcloud az rclone mail mutt mailx sendmail msmtp swaks gh gist hub glab s3cmd croc wormhole
    ffsend
    transfer aria2c mosquitto_pub websocat grpcurl kubectl ngrok nslookup dig host openssl rsh tftp
    """.split()
)
_URL = re.compile(
    r"\b(?:https?|ftp|wss?|postgres(?:ql)?|mysql|mongodb(?:\+srv)?|rediss?|ssh|git|grpc|amqps?)"
    r"(?:\+\w+)?://(?:[^@/\s'\"]*@)?(\[[0-9a-fA-F:]+\]|[^/:?\s'\"#)]+)"
)
_LOCAL = re.compile(
    r"localhost|.*\.localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[?::1?\]?|host\.docker\.internal|\d+"
)
_VALUES = {
    "curl": (
        "--req --requ --reque --reques "
        "-X -d -H -o -u -A -b -c -e -F -T -w -m -K -x -C -D -E -r -y -Y -z -P -Q --request --data "
        "--data-raw "
        "--data-binary --data-urlencode --data-ascii --json --form --form-string --header --output "
        "--user --user-agent --cookie --cookie-jar --referer --upload-file --write-out --max-time "
        "--connect-timeout --retry --retry-delay --proxy --cacert --cert --key --capath --url "
        "--config --dump-header --resolve --interface --limit-rate --netrc-file --unix-socket "
        "--output-dir --oauth2-bearer --connect-to --cert-type --key-type --retry-max-time --trace "
        "--mail-rcpt --mail-from "
        "--trace-ascii --range --max-filesize --pinnedpubkey --variable --url-query --aws-sigv4 -t"
    ),
    "wget": (
        "-O -o -P -U -t -T -w -e -a -i -Q -l -A -R -D --output-document --output-file --post-data "
        "--post-file --body-data --body-file --method --header --user --password --timeout --tries "
        "--directory-prefix --user-agent --load-cookies --certificate --private-key "
        "--ca-certificate --level --accept --reject --domains --wait"
    ),
}
_KEEPS = ("--cert", "--key", "--cacert", "-E", "--capath", "--netrc-file", "-i", "--identity", "-o",
          "--output", "-K", "--config", "-O", "--output-document", "--private-key", "--certificate",
          "--ca-certificate", "--exclude", "--exclude-from", "-F", "--kubeconfig", "--cookie-jar",
          "-c", "--filter", "--load-cookies", "--profile")  # fmt: skip
"""Options whose files are used to connect, or are written, and are not sent."""


_KEPT = ("-i", "--exclude", "--include", "--key=", "--cert=", "--output=")


def is_local_host(host: str) -> bool:
    return _LOCAL.fullmatch(host.lower()) is not None


def host_in(texts: "Iterable[str]") -> str:
    """The first host that is named in an address; empty if there is none."""
    for text in texts:
        found = _URL.search(text)
        if found is not None:
            return "" if UNKNOWN in found[1] else found[1]
    return ""


# -- secrets ------------------------------------------------------------------------------------


def is_secret(text: str) -> bool:
    """Whether a word names a file that holds secrets."""
    name = text.rstrip("*").partition(";")[0]
    if not name or name.startswith(("http://", "https://")):
        return False
    if "/.ssh/" in name and not name.endswith(
        (".pub", "known_hosts", "/config", "authorized_keys")
    ):
        return True
    if name.endswith((".pub", "/.ssh", "/.aws", "/.gnupg")):
        return not name.endswith(".pub")
    path = bytes_of(name)
    if name.startswith(("/etc/shadow", "/etc/sudoers")):
        return True
    return how_secret(path) != PLAIN and ("/" in name or "." in name or name.startswith("id_"))


_NAMES = re.compile(r"[~\w./@*-]+")


def has_secret_name(text: str) -> bool:
    return any(is_secret(each.lstrip("@")) for each in _NAMES.findall(text))


def sends_secret(call: "Call") -> bool:
    """Whether a secret file goes to a program that talks to other machines."""
    if call.name not in _SENDERS or _is_local_only(call):
        return False
    if call.name == "openssl" and "s_client" not in call.texts:
        return False
    if call.stdin.has_secret and _reads_input(call):
        return True
    keeps: tuple[str, ...] = _KEEPS
    if call.name in {"curl", "http"}:
        keeps = tuple(each for each in _KEEPS if each not in {"-F", "-i"})
    before = ""
    for word in call.args:
        text = word.value
        is_kept = before in keeps or text.startswith(_KEPT)
        if not is_kept and (word.has_secret or _names_secret(call, text)):
            return True
        before = text
    return False


def _reads_input(call: "Call") -> bool:
    if call.name in {"wget", "gh", "kubectl", "gcloud", "az", "aria2c", "nslookup", "dig", "host"}:
        return "-" in call.texts or (call.name == "gh" and call.stdin.kind != "nothing")
    if call.name == "curl":
        return any(
            text.endswith(("@-", "=@-", "<-")) or text in {"-", ".", "@/dev/stdin"}
            for text in call.texts
        )
    return True


def _names_secret(call: "Call", text: str) -> bool:
    if call.name in {"scp", "rsync", "sftp"}:
        if _is_remote(text):
            return False
        return not _only_downloads(call) and is_secret(text)
    if call.name in {
        "ssh",
        "gh",
        "glab",
        "kubectl",
        "gcloud",
        "az",
        "openssl",
        "dig",
        "nslookup",
        "host",
    }:
        return (
            call.name in {"gh", "glab", "ssh"}
            and call.name == "gh"
            and "gist" in call.texts
            and is_secret(text)
        )
    if call.name == "aws" and "s3" not in call.texts:
        return False
    for mark in ("=@", "@", "=<", "<", "=", "file="):
        start, found, rest = text.partition(mark)
        if found and (("/" not in start and " " not in start) or not start) and is_secret(rest):
            return True
    return is_secret(text)


def _only_downloads(call: "Call") -> bool:
    operands = [text for text in call.texts if not text.startswith("-")]
    return bool(operands) and not _is_remote(operands[-1])


def _is_local_only(call: "Call") -> bool:
    host = host_in(call.texts)
    return bool(host) and is_local_host(host)


# -- HTTP ---------------------------------------------------------------------------------------


def curl(call: "Call") -> Flow:
    options = call.options(_VALUES["curl"])
    urls = [word.value for word in (*options.operands, *options.all("--url"))]
    if not urls:
        if options.has("-K", "--config"):
            return call.add(PROGRAM, "curl", "runs-program")
        return call.add(READ, "curl", "reads")
    if options.has("--mail-rcpt", "--mail-from") or any(url.startswith("smtp") for url in urls):
        return call.publish("message", host=host_in(urls), rule="curl.mail")
    talks = [url for url in urls if url.startswith(_TALKS) and not is_local_host(_host_of(url))]
    if talks:
        return call.publish("request", host=host_in(talks), rule="curl.talk", code="sends")
    method = _curl_method(options)
    for word in options.all("-o", "--output"):
        _download_to(call, word)
    if options.has("-O", "--remote-name", "--remote-name-all", "-J"):
        for url in urls:
            name = url.rstrip("/").rpartition("/")[2].partition("?")[0]
            _download_to(call, Word(f"./{name or UNKNOWN}"))
    body = " ".join(
        word.value for word in options.all("-d", "--data", "--data-raw", "--json", "--data-binary")
    )
    _request(call, method, urls, body)
    kept = options.has("-o", "--output", "-O")
    secret = call.stdin.has_secret
    if urls and all(url.startswith("file://") for url in urls):
        return HIDDEN_FLOW
    return NO_FLOW if kept else Flow(DOWNLOAD, has_secret=secret)


_TALKS = ("telnet:", "gopher:", "dict:", "mqtt:", "smb:", "imap", "pop3", "ldap")
"""Addresses at which curl sends what it is given, whatever its method."""


def _curl_method(options: "Options") -> str:
    given = options.last("-X", "--request", "--req", "--requ", "--reque", "--reques")
    if given is not None:
        return given.value.lower()
    if options.has("-I", "--head"):
        return "head"
    if options.has("-T", "--upload-file"):
        return "put"
    sends = ("-d", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--data-ascii",
             "--json", "-F", "--form", "--form-string")  # fmt: skip
    if options.has(*sends) and not options.has("-G", "--get"):
        return "post"
    if options.has("-Q", "--quote"):
        return "delete"
    return "get"


def _download_to(call: "Call", word: Word) -> None:
    from takeback.guard.programs.files import overwrite

    if word.value in {"-", "/dev/null", "/dev/stdout"}:
        return
    overwrite(call, [word], rule=f"{call.name}.output")
    path = call.scope.absolute(word.value)
    if path:
        call.scope.written[path] = Flow(DOWNLOAD)


_ASKS = re.compile(r"/(?:_search|_count|_msearch|graphql|search|query)(?:[/?]|$)")


def _request(call: "Call", method: str, urls: "list[str]", body: str = "") -> Flow:
    """Note a request by its method and its hosts."""
    rule = f"{call.name}.{method}" if method.isalpha() else call.name
    if UNKNOWN in method:
        return call.publish("request", rule=call.name, code="sends", host=host_in(urls))
    if method in {"get", "head", "options", "trace", "propfind"}:
        return call.add(READ, rule, "fetches", host=host_in(urls))
    hosts = [_host_of(url) for url in urls]
    if hosts and all(map(is_local_host, hosts)):
        if method == "delete":
            return call.add(DESTRUCTIVE, rule, "sends-local", host=hosts[0])
        return call.add(LOCAL, rule, "sends-local", host=hosts[0])
    if method == "post" and any(_ASKS.search(url) for url in urls) and _only_asks(body):
        return call.add(READ, rule, "fetches", host=host_in(urls))
    host = next((each for each in hosts if not is_local_host(each)), "")
    return call.publish("request", " ".join([method.upper(), *urls]), host, rule=rule, code="sends")


def _only_asks(body: str) -> bool:
    return (
        bool(body)
        and UNKNOWN not in body
        and not body.startswith("@")
        and ("mutation" not in body and "delete" not in body.lower())
    )


def _host_of(url: str) -> str:
    if "://" in url:
        found = _URL.search(url)
        return found[1] if found else ""
    return re.split(r"[/:?]", url, maxsplit=1)[0]


def wget(call: "Call") -> Flow:
    options = call.options(_VALUES["wget"])
    urls = [word.value for word in options.operands]
    end = options.last("-O", "--output-document")
    given = options.last("--method")
    sends = options.has("--post-data", "--post-file", "--body-data", "--body-file")
    method = given.value.lower() if given is not None else "post" if sends else "get"
    to_output = end is not None and end.value in {"-", "/dev/stdout"}
    clustered = any(re.fullmatch(r"-[a-zA-Z]*O-", text) for text in call.texts)
    if end is not None and not to_output and not clustered:
        _download_to(call, end)
    elif not to_output and not clustered and not options.has("--spider"):
        folder = options.last("-P", "--directory-prefix")
        for url in urls:
            name = url.rstrip("/").rpartition("/")[2].partition("?")[0] or "index.html"
            _download_to(call, Word(f"{folder.value}/{name}" if folder else name))
    _request(call, method, urls)
    return Flow(DOWNLOAD) if to_output or clustered else NO_FLOW


def httpie(call: "Call") -> Flow:
    options = call.options(
        "-a --auth -o --output --session --timeout --verify --cert -A --auth-type"
    )
    words = [word.value for word in options.operands]
    is_method = re.compile(r"[A-Z]{3,8}|(?i:get|post|put|patch|delete|head|options)")
    method = words[0] if words and is_method.fullmatch(words[0]) else ""
    rest = words[1:] if method else words
    if not rest:
        return call.add(READ, call.name, "reads")
    sends = any(re.search(r"[^=!:]:?=[^=]|@", text) for text in rest[1:])
    return _request(call, method.lower() or ("post" if sends else "get"), [_http_url(rest[0])])


def _http_url(text: str) -> str:
    return f"localhost{text}" if text.startswith(":") else text


def fetch(call: "Call") -> Flow:
    """Programs that fetch only: `aria2c`, `lynx -dump`."""
    call.add(READ, call.name, "fetches")
    return Flow(DOWNLOAD)


# -- elsewhere ----------------------------------------------------------------------------------

_SSH = "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w"


def ssh(call: "Call") -> Flow:
    from takeback.guard.programs.launchers import run_elsewhere

    options = call.options(_SSH, stops=True)
    for word in options.all("-o"):
        name, _, value = word.value.partition("=")
        if name.strip().lower() in {"proxycommand", "localcommand", "knownhostscommand"}:
            call.run_text(value)
            call.add(PROGRAM, "ssh.command", "runs-program")
    if not options.operands:
        return call.add(READ, "ssh", "reads")
    host = options.operands[0].value.rpartition("@")[2]
    words = options.operands[1:]
    if is_local_host(host):
        call.scope = call.scope.copy()
        call.scope.cwd = call.scope.home or None
        return call.run_text(" ".join(word.value for word in words)) if words else call.add(PROGRAM)
    text = " ".join(word.value for word in words)
    if not words and call.stdin.kind == TEXT:
        text = call.stdin.text
    if not text and call.stdin.kind not in {NOTHING, TEXT}:
        return call.publish("remote", host=host, rule="ssh.command")
    if not text:
        tunnels = options.has("-L", "-R", "-D", "-N", "-W", "-T")
        return call.add(LOCAL if tunnels else PROGRAM, "ssh", "connects", host=host)
    if UNKNOWN in text.split(" ")[0]:
        return call.publish("remote", host=host, rule="ssh.command")
    if call.stdin.kind not in {"nothing", TEXT} and _writes_there(text):
        call.publish("remote", host=host, rule="ssh.command")
    return run_elsewhere(
        call, [], text=text, rule="ssh.command", is_remote=True,
        host="" if UNKNOWN in host else host,
    )  # fmt: skip


def _writes_there(text: str) -> bool:
    return bool(re.search(r"\b(?:cat|tee|dd|tar|sh|bash|psql|mysql)\b", text))


def _is_remote(text: str) -> bool:
    """Whether a path of scp or rsync is on another machine: `host:path`."""
    if "://" in text:
        return not text.startswith("file:")
    host, mark, _ = text.partition(":")
    return bool(mark) and "/" not in host and bool(host)


_COPIES = (
    "-i -P -F -o -l -c -S -J -e --rsh --exclude --include --filter -f --exclude-from --port -T -M "
    "--include-from --files-from --bwlimit --timeout --log-file --chmod --chown --max-size "
    "--backup-dir"
)


def copy_elsewhere(call: "Call") -> Flow:
    """`scp`, `rsync`: to another machine it is seen there, from it this is a copy."""
    options = call.options(_COPIES)
    for word in options.all("-e", "--rsh", "-S"):
        first = word.value.split(" ")[0]
        if first and first not in {"ssh", "/usr/bin/ssh"}:
            call.run_text(word.value)
    words = options.operands
    if len(words) < 2 or options.has("-n", "--dry-run", "--list-only"):
        return call.add(READ, call.name, "reads")
    end = words[-1]
    if _is_remote(end.value):
        host = end.value.partition(":")[0].rpartition("@")[2]
        return call.publish("upload", host=host if UNKNOWN not in host else "")
    return _copied_here(call, options, end)


def _copied_here(call: "Call", options: "Options", end: Word) -> Flow:
    from takeback.guard.programs.files import overwrite
    from takeback.model.beyond.effects import DELETE

    deletes = any(name.startswith("--delete") for name in options.given) or options.has(
        "--remove-source-files"
    )
    if options.has("--remove-source-files"):
        sources = [call.scope.target(word, DELETE) for word in options.operands[:-1]]
        call.add_targets(sources, "deletes", rule="rsync.remove")
    if deletes:
        target = call.scope.target(end, DELETE, is_recursive=True)
        return call.add_targets([target], "deletes", rule="rsync.delete")
    return overwrite(call, [end])


def sftp(call: "Call") -> Flow:
    text = call.stdin.text if call.stdin.kind == TEXT else ""
    if text and not re.search(
        r"^\s*(?:put|mput|rm|rmdir|rename|mkdir|chmod|chown|ln|symlink|!)", text, re.MULTILINE
    ):
        return call.add(LOCAL, call.name, "connects")
    return call.publish("upload", rule=call.name)


def netcat(call: "Call") -> Flow:
    texts = call.texts
    options = call.options("-w -p -s -e -c -q -i -X -x")
    if options.has("-e", "-c", "--exec", "--sh-exec"):
        return call.shell.hide(call.raw, "hidden", "nc.exec")
    if options.has("-z") or options.has("-h"):
        return call.add(READ, call.name, "fetches")
    if options.has("-l"):
        return call.add(LOCAL, call.name, "connects")
    hosts = [text for text in texts if not text.startswith("-")]
    if hosts and is_local_host(hosts[0]):
        call.add(LOCAL, call.name, "sends-local")
        return Flow(DOWNLOAD)
    call.publish("request", host=hosts[0] if hosts else "", rule=call.name, code="sends")
    return Flow(DOWNLOAD)


def tls(call: "Call") -> Flow:
    """`openssl s_client`: what comes through the pipe is sent; everything else is in the file."""
    from takeback.guard import knowledge

    talks = "s_client" in call.texts[:1] and call.stdin.kind != NOTHING
    is_silent = call.stdin.kind == TEXT and call.stdin.text.strip() in {"", "Q", "QUIT", "quit"}
    if talks and not is_silent and "/dev/null" not in call.raw:
        found = call.options("-connect -servername -host").last("-connect", "-host")
        host = _host_of(found.value) if found is not None else ""
        if not is_local_host(host):
            return call.publish("request", host=host, rule="openssl.s_client", code="sends")
    knowledge.judge(call, knowledge.programs()["openssl"])
    from takeback.guard.programs.builtins import flow_of

    return flow_of(call)


def socat(call: "Call") -> Flow:
    if any(re.search(r"exec:|system:|shell:", text, re.IGNORECASE) for text in call.texts):
        return call.shell.hide(call.raw, "hidden", "socat.exec")
    return netcat(call)


def api_of_host(call: "Call") -> Flow:
    """`gh api`: a request by its method; everything else is in the knowledge file."""
    from takeback.guard import knowledge

    if call.texts[:1] != ["api"]:
        return knowledge.judge(call, knowledge.programs()[call.name])
    options = call.options("-X --method -f -F --field --raw-field -H --header --input -q --jq -t "
                           "--template --hostname -p --preview --cache")  # fmt: skip
    given = options.last("-X", "--method")
    fields = " ".join(word.value for word in options.all("-f", "-F", "--field", "--raw-field"))
    path = " ".join(word.value for word in options.operands[1:])
    sends = options.has("-f", "-F", "--field", "--raw-field", "--input")
    method = given.value.lower() if given is not None else "post" if sends else "get"
    if method == "get":
        return call.add(READ, f"{call.name}.api", "fetches")
    if path.startswith("graphql") and fields and "mutation" not in fields and UNKNOWN not in fields:
        return call.add(READ, f"{call.name}.api", "fetches")
    return call.publish(
        "request", f"{method.upper()} {path}", rule=f"{call.name}.api", code="sends"
    )


def cloud_storage(call: "Call") -> Flow:
    """`aws s3 cp`, `gsutil cp`: a copy to here is a download, a copy there is seen there."""
    from takeback.guard import knowledge
    from takeback.guard.programs.files import overwrite

    words = [word for word in call.args if not word.value.startswith("-")]
    texts = [word.value for word in words]
    if call.texts[-1:] == ["-"]:
        return call.add(READ, call.name, "fetches")
    copies = {"cp", "sync", "rsync", "copy"} & set(texts[:3])
    ends = [text for text in texts if "://" in text or text.startswith(("s3:", "gs:"))]
    if copies and ends and words and words[-1].value not in ends:
        return overwrite(call, [words[-1]])
    return knowledge.judge(call, knowledge.programs()[call.name])


JUDGES: "dict[str, Callable[[Call], Flow]]" = {
    "curl": curl,
    "wget": wget,
    "http": httpie,
    "https": httpie,
    "xh": httpie,
    "xhs": httpie,
    "aria2c": fetch,
    "lynx": fetch,
    "links": fetch,
    "w3m": fetch,
    "ssh": ssh,
    "mosh": ssh,
    "autossh": ssh,
    "scp": copy_elsewhere,
    "rsync": copy_elsewhere,
    "sftp": sftp,
    "ftp": sftp,
    "lftp": sftp,
    "nc": netcat,
    "ncat": netcat,
    "netcat": netcat,
    "telnet": netcat,
    "socat": socat,
    "openssl": tls,
    "gh": api_of_host,
    "glab": api_of_host,
    "aws": cloud_storage,
    "gsutil": cloud_storage,
    "awslocal": cloud_storage,
    "s3cmd": cloud_storage,
    "rclone": cloud_storage,
}
