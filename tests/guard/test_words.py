"""Programs that nobody told the guard about, clients of this machine, and commands in texts."""

import pytest

from guarding import class_of
from takeback.model.beyond.effects import (
    DESTRUCTIVE,
    INSIDE,
    IRREVERSIBLE,
    LOCAL,
    PROGRAM,
    READ,
    gravity,
)  # fmt: skip


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("frobctl delete workspace x", DESTRUCTIVE),
        ("frob-cli db:drop", DESTRUCTIVE),
        ("frob-collect-garbage -d", DESTRUCTIVE),
        ("gio trash --empty", DESTRUCTIVE),
        ("frobctl publish", IRREVERSIBLE),
        ("npx frob-cli deploy --prod", IRREVERSIBLE),
        ("frobctl list release", PROGRAM),
        ("frobctl publish --dry-run", PROGRAM),
        ("frobctl cache clear", PROGRAM),
        ("tmux send-keys -t x 'npm test' Enter", PROGRAM),
    ],
)
def test_the_words_of_an_unknown_program_count(command: str, effect: str) -> None:
    """A verb among the first words says what a program does that nobody described."""
    assert class_of(command) == effect


@pytest.mark.parametrize(
    "command",
    [
        "make deploy",
        "npm run deploy",
        "just publish",
        "task release",
        "./deploy.sh production",
        "scripts/delete_all.sh",
        "node_modules/.bin/frob delete",
        "uv run frob delete",
        "poetry run publish",
        "npx create-frob notify",
        "pytest -k delete",
    ],
)
def test_targets_of_the_project_stay_programs(command: str) -> None:
    """The name of a target or a script says nothing about what it does."""
    assert class_of(command) == PROGRAM


@pytest.mark.parametrize(
    ("here", "effect", "there"),
    [
        ("kafka-topics --bootstrap-server localhost:9092 --create --topic x", LOCAL, "a.io"),
        ("kafka-topics --bootstrap-server localhost:9092 --delete --topic x", DESTRUCTIVE, "a.io"),
        ("grpcurl -plaintext localhost:50051 pkg.Service/Method", LOCAL, "a.io"),
        ("etcdctl --endpoints=http://localhost:2379 del /x", DESTRUCTIVE, "a.io"),
        ("docker push localhost:5000/app", LOCAL, "a.io"),
        ("printf x | openssl s_client -connect localhost:443", READ, "a.io"),
    ],
)
def test_a_host_decides(here: str, effect: str, there: str) -> None:
    """What goes to this machine is seen by nobody; the same to another one is."""
    assert class_of(here) == effect
    assert class_of(here.replace("localhost", there)) == IRREVERSIBLE


@pytest.mark.parametrize(
    "around",
    [
        "a[$({})]=1",
        "declare 'a[$({})]=1'",
        "[[ -v 'a[$({})]' ]]",
        "printf -v 'a[$({})]' x",
        "let 'a[$({})]=1'",
        "n='a[$({})]'; (( n ))",
        "p='$({})'; echo \"${{p@P}}\"",
        "echo ${{none:-`{}`}}",
        "compgen -W '$({})'",
        "compgen -C '{}' x",
        "mapfile -C '{} #' -c 1 lines < README.md",
        "split --filter='{}' README.md",
        "git -c filter.x.clean='{}' add .",
        "git clone -u '{}' ssh://host/x",
        "PSQL_PAGER='{}' psql -c 'select 1'",
        "env 'BASH_FUNC_ls%%=() {{ {}; }}' bash -c ls",
        "dc -e '!{}'",
        "perf stat -- {}",
        "pkexec {}",
        "newgrp docker <<< '{}'",
    ],
)
@pytest.mark.parametrize("command", ["rm -rf ~/notes", "git push --force"])
def test_a_command_in_a_text_is_never_harmless(around: str, command: str) -> None:
    """What the shell or a program may still run out of a text counts."""
    assert gravity(class_of(around.format(command))) >= gravity(PROGRAM)


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ('git commit -m "rm -rf ~/x was wrong"', LOCAL),
        ("git commit -m 'no $(rm -rf ~/x) in the docs'", LOCAL),
        ("git log --grep='git push --force' --oneline", READ),
        ('grep -rn "rm -rf /" .', READ),
        ("grep -n '`git push`' README.md", READ),
        ("rg 'sh -c \"rm -rf ~\"' src", READ),
        ("echo 'run git push origin main'", READ),
        ("awk '{print $(NF-1)}' access.log", READ),
        ("curl -s https://api.acme.io/x -H 'X-Note: rm -rf /'", READ),
        ("cat > NOTES.md <<'END'\n$(rm -rf ~/x)\nEND", INSIDE),
    ],
)
def test_a_text_about_a_command_stays_a_text(command: str, effect: str) -> None:
    """Messages, patterns and documents that name a command do not run it."""
    assert class_of(command) == effect


@pytest.mark.parametrize(
    "command",
    [
        "CDPATH=~; cd docs && rm -rf old",
        "su - user -c 'rm -rf mail'",
        "ssh localhost rm -rf mail",
        "xargs < list.txt -I@ unlink @",
        "fd -t f . ~/.gnupg -x rm",
        "tar xPf bundle.tar",
        "sqlite3 :memory: \"attach '/srv/x.db' as h; delete from h.urls\"",
    ],
)
def test_where_a_command_runs_is_followed(command: str) -> None:
    """A folder that is not known is not the project's."""
    assert class_of(command) == DESTRUCTIVE
