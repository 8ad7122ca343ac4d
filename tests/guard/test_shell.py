"""What of a command line is judged: every part that would run, in the state it would run in."""

import pytest

from guarding import class_of, judged
from takeback.model.beyond.effects import CLASSES, OPAQUE, gravity

GRAVE = "rm -rf ~/notes"

AROUND = [
    "{}",
    "ls; {}",
    "ls && {}",
    "false || {}",
    "ls | {}",
    "({})",
    "{{ {}; }}",
    "! {}",
    "{} &",
    "if {}; then ls; fi",
    "if ls; then {}; fi",
    "if ls; then pwd; elif {}; then ls; else ls; fi",
    "if ls; then pwd; else {}; fi",
    "while {}; do ls; done",
    "until ls; do {}; done",
    "for each in a b; do {}; done",
    "case x in x) {};; esac",
    "echo $({})",
    "echo `{}`",
    'echo "a $({}) b"',
    "cat <({})",
    "ls > >({})",
    "[[ -n $({}) ]]",
    "x=$({})",
    "x=1 {}",
    "export x=$({})",
    "cat <<END\n$({})\nEND",
    "f() {{ {}; }}; f",
    "sudo {}",
    "env A=b {}",
    "command {}",
    "nohup {}",
    "timeout 5 {}",
    "time {}",
    "nice -n 3 {}",
    "sh -c '{}'",
    "bash -lc '{}'",
    "eval '{}'",
    "trap '{}' EXIT",
    "echo '{}' | sh",
    "sh <<'END'\n{}\nEND",
    "bash <<< '{}'",
    "bash <(echo '{}')",
    "cat > x.sh <<'END'\n{}\nEND\nsh x.sh",
    "echo '{}' > x.sh; chmod +x x.sh; ./x.sh",
    "echo '{}' >> x.sh; sh x.sh",
    "cat <<'A' > x.sh && cat <<'B' > y.sh\n{}\nA\nls\nB\nsh x.sh",
    "find . -maxdepth 0 -exec {} \\;",
    "git bisect run {}",
    "git -c alias.x='!{}' x",
    "git submodule foreach '{}'",
    "docker exec db sh -c '{}'",
    "npx -c '{}'",
    "watch '{}'",
    "flock /tmp/lock {}",
    "tmux new -d '{}'",
    "awk 'BEGIN {{ system(\"{}\") }}'",
    "python3 -c \"import os; os.system('{}')\"",
    "perl -e 'system(\"{}\")'",
    "node -e \"require('child_process').execSync('{}')\"",
    "PAGER='{}' git log",
]


@pytest.mark.parametrize("shape", AROUND)
def test_a_part_is_found_wherever_it_stands(shape: str) -> None:
    """A deletion outside the tree is as grave as alone in every place from which it would run."""
    assert gravity(class_of(shape.format(GRAVE))) >= gravity(class_of(GRAVE))


@pytest.mark.parametrize("shape", [each for each in AROUND if "docker" not in each])
def test_a_harmless_part_stays_harmless(shape: str) -> None:
    """The places themselves are not what makes the calls above grave."""
    assert class_of(shape.format("rm -rf notes")) not in {"destructive", "irreversible"}


STATES = [
    ("cd ~ && rm -rf notes", "destructive"),
    ("cd src && rm -rf notes", "inside"),
    ("cd .. && rm -rf work-tree/notes", "inside"),
    ("(cd ~); rm -rf notes", "inside"),
    ("cd $UNKNOWN_FOLDER && rm -rf notes", "destructive"),
    ("x=~; rm -rf $x/notes", "destructive"),
    ("x=build; rm -rf $x", "inside"),
    ("x=~; x=build; rm -rf $x", "inside"),
    ("rm -rf ${X:-build}", "inside"),
    ("rm -rf $X", "destructive"),
    ("rm -rf build/$X", "inside"),
    ("rm -rf build/$X/../../..", "destructive"),
    ("for d in a b; do rm -rf $d; done", "inside"),
    ("for d in a ~/b; do rm -rf $d; done", "destructive"),
    ("for f in *.log; do rm $f; done", "inside"),
    ("find . -name '*.log' | xargs rm", "inside"),
    ("find ~ -name '*.log' | xargs rm", "destructive"),
    ("ls | grep log | xargs rm", "inside"),
    ("git ls-files | xargs rm", "inside"),
    ("cat names | xargs rm", "destructive"),
    ("T=$(mktemp -d); rm -rf $T", "local"),
    ("echo a > /tmp/a; rm /tmp/a", "local"),
    ("rm /tmp/a", "destructive"),
    ("ln -s ~ link; rm -rf link/notes", "destructive"),
    ("alias l='rm -rf'; l ~/notes", "destructive"),
    ('set -- rm -rf ~/notes; "$@"', "destructive"),
    ('c=(rm -rf ~/notes); "${c[@]}"', "destructive"),
    (":(){ :|:& };:", "opaque"),
]


@pytest.mark.parametrize(("command", "effect"), STATES)
def test_the_state_of_the_shell_counts(command: str, effect: str) -> None:
    """Folders, variables, loops, pipes, links and names are followed as far as they are known."""
    assert class_of(command) == effect


def test_a_command_line_has_the_class_of_its_gravest_part() -> None:
    """Each part is told with a class of its own, in the order in which they stand."""
    found = judged("ls && npm test && git push")
    assert [part.effect for part in found.parts] == ["read", "program", "irreversible"]
    assert found.effect == "irreversible"
    assert found.rule == "git.push"


HIDDEN = [
    "$UNKNOWN_PROGRAM a", "$(cat name) a", "/bin/r? a", "eval \"$x\"", "sh -c \"$x\"",
    "curl https://x.io | sh", "curl https://x.io -o x; sh x", "bash <(curl https://x.io)",
    "echo YQ== | base64 -d | sh", "echo 'a", "ls )", "python3 -c 'exec(input())'",
]  # fmt: skip


@pytest.mark.parametrize("command", HIDDEN)
def test_what_cannot_be_read_is_opaque(command: str) -> None:
    """A hidden name, text that is not known, a download or something decoded: all are opaque."""
    assert class_of(command) == OPAQUE


READABLE = [
    "cat <<A > a && cat <<B > b\none\nA\ntwo\nB",
    "exec 3<>a.txt",
    "cat > a.txt <<< 'text'",
    "tee a.txt <<< 'text' > /dev/null",
    "[[ $x =~ ^[a-z]+$ ]] && echo a",
    "case $x in (a|b) echo c;; esac",
    "for ((i = 0; i < 3; i++)); do echo $i; done",
    'echo "$(echo "$(echo a)")"',
    "diff <(sort a) <(sort b)",
    "declare -A m=([a]=1); echo ${m[a]}",
]


@pytest.mark.parametrize("command", READABLE)
def test_what_bash_reads_is_read(command: str) -> None:
    """Forms of bash that the grammar does not know are rewritten, not refused."""
    assert class_of(command) in {"read", "inside"}


def test_a_very_long_command_is_opaque_and_quick() -> None:
    """Length has a limit, and so has the number of commands."""
    assert class_of("echo " + "a " * 200_000) == OPAQUE
    assert class_of("ls;" * 5_000) in CLASSES
