"""Which source decides: rules, declarations, annotations, agents' tools, the command itself."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from guarding import HOME, ROOT, judged
from takeback.disk.home import Home
from takeback.effects import rule_files
from takeback.guard import rules as guard_rules
from takeback.guard.judge import judge
from takeback.guard.rules import Rule, Rules
from takeback.model import tools, words
from takeback.model.beyond.effects import CLASSES, Judgement

RULES = """
[[rule]]
id = "dry"
class = "read"
match = "./deploy.sh --dry-run"
examples = ["./deploy.sh --dry-run prod"]
not_examples = ["./deploy.sh prod"]

[[rule]]
id = "deploy"
class = "irreversible"
match = "./deploy.sh"
reason = "it deploys to production"
instead = "./deploy.sh --dry-run"
examples = ["./deploy.sh prod", "sudo ./deploy.sh", "cd x && ../deploy.sh"]

[[rule]]
id = "tickets"
class = "compensable"
tool = "mcp__jira__create_*"

[mcp]
trusted = ["files"]
"""


def rules(text: str = RULES) -> Rules:
    found, wrong = guard_rules.parse(tomllib.loads(text), "user")
    assert wrong == ()
    return found


def call(tool: str, given: "dict[str, object] | None" = None, **more: object) -> Judgement:
    return judge(
        tool, given or {}, kind=str(more.pop("kind", tools.kind_of(tool))), cwd=ROOT, root=ROOT,
        home=HOME, **more,  # type: ignore[arg-type]
    )  # fmt: skip


# -- rules --------------------------------------------------------------------------------------


def test_the_first_rule_that_matches_decides() -> None:
    """A rule has the last word, with its own reason and what to do instead."""
    found = judged("./deploy.sh prod", rules())
    assert (found.effect, found.rule) == ("irreversible", "user.deploy")
    assert dict(found.reason.facts)["text"] == "it deploys to production"
    assert found.instead == "./deploy.sh --dry-run"
    assert judged("./deploy.sh --dry-run", rules()).rule == "user.dry"
    assert judged("./deploy.sh prod").effect == "program"


def test_a_rule_decides_about_its_command_only() -> None:
    """What else stands in the command line is judged as ever, and what is lost is still named."""
    listed = Rules((Rule("push", "local", ("git", "push")), Rule("rm", "read", ("rm",))))
    assert judged("git push", listed).effect == "local"
    assert judged("git push && npm publish", listed).effect == "irreversible"
    assert judged("git push $(npm publish)", listed).effect == "irreversible"
    found = judged("rm -rf ~/a", listed)
    assert (found.effect, found.targets[0].path) == ("read", b"/Users/user/a")


def test_patterns_of_words_match() -> None:
    """`**` stands for any words, `*` for a part of one."""
    listed = Rules((Rule("a", "opaque", ("kubectl", "**", "--context=prod*")),))
    assert judged("kubectl get pods --context=prod-eu", listed).rule == "user.a"
    assert judged("kubectl get pods --context=dev", listed).effect == "read"


def test_a_rule_of_the_tree_only_makes_graver() -> None:
    """Where it would make lighter, what is known decides."""
    listed = Rules(tree=(Rule("a", "read", ("git", "push")), Rule("b", "opaque", ("make",))))
    assert judged("git push", listed).rule == "git.push"
    assert judged("make", listed).rule == "tree.b"


def test_rules_are_tried_against_their_examples() -> None:
    """Examples that another rule decides are found."""
    assert guard_rules.failing(rules(), ROOT, ROOT, HOME) == []
    wrong = rules(RULES.replace('"./deploy.sh --dry-run prod"', '"./other.sh"'))
    assert guard_rules.failing(wrong, ROOT, ROOT, HOME) == [("dry", "./other.sh", "program")]


def test_rules_are_read_from_store_user_and_tree(tmp_path: Path) -> None:
    """The store's rules come first; a file in the tree lightens nothing and trusts no server."""
    home, tree = tmp_path / "home", tmp_path / "tree"
    (home / "projects/p").mkdir(parents=True)
    (tree / ".takeback").mkdir(parents=True)
    (home / "guard.toml").write_text(RULES)
    (home / "projects/p/guard.toml").write_text('[[rule]]\nclass="local"\nmatch="make"\n')
    (tree / ".takeback/guard.toml").write_text(
        '[[rule]]\nid="light"\nclass="read"\nmatch="git push"\n[mcp]\ntrusted=["evil"]\n'
    )
    found = rule_files.read(Home(str(home).encode()), "p", str(tree).encode(), reports=True)
    assert [rule.id for rule in found.rules.rules] == ["rule-1", "dry", "deploy", "tickets"]
    assert found.rules.trusted == ("files",)
    assert [each.code for each in found.problems] == ["guard-tree-lighter", "guard-tree-trust"]
    assert judged("git push", found.rules).effect == "irreversible"
    assert len(found.paths) == 3


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('[[rule]]\nclass="none"\nmatch="a"\n', "guard-unknown-class"),
        ('[[rule]]\nclass="read"\n', "guard-no-match"),
        ("[rules]\n", "guard-unknown-table"),
        ("rule = [", "guard-unread"),
    ],
)
def test_what_is_wrong_in_a_file_is_reported(tmp_path: Path, text: str, code: str) -> None:
    """As a code, and the rest of the file counts."""
    (tmp_path / "guard.toml").write_text(text)
    found = rule_files.read(Home(str(tmp_path).encode()), None)
    assert [each.code for each in found.problems] == [code]
    assert found.rules.rules == ()


def test_a_database_of_a_participant_is_transactional(tmp_path: Path) -> None:
    """A rollback brings its rows back; a database that no participant holds stays as it was."""
    (tmp_path / "config.toml").write_text(
        '[participants.app]\ntype = "sqlite"\npath = "/srv/app.db"\n'
        '[participants.shop]\ntype = "postgres"\nurl = "postgresql://me@localhost/shop"\n'
    )
    found = rule_files.read(Home(str(tmp_path).encode()), None).rules
    assert found.held == ("/srv/app.db", "localhost/shop")
    for command, effect in (
        ("sqlite3 /srv/app.db 'DELETE FROM a'", "transactional"),
        ("sqlite3 /srv/other.db 'DELETE FROM a'", "destructive"),
        ("psql -h localhost shop -c 'DROP TABLE a'", "transactional"),
        ("psql postgresql://localhost/shop -c 'DROP TABLE a'", "transactional"),
        ("psql -d other -c 'DROP TABLE a'", "destructive"),
        ("psql -h db.x.io shop -c 'DROP TABLE a'", "irreversible"),
        ("psql shop -c 'SELECT 1'", "read"),
    ):
        assert judged(command, found).effect == effect, command


# -- declarations and annotations ---------------------------------------------------------------


def test_a_harness_declares_its_own_tools() -> None:
    """A class, with the inverse; a class that nobody knows is opaque."""
    found = call(
        "send", declared={"class": "compensable", "inverse": "unsend 1", "reason": "sends"}
    )
    assert (found.effect, found.inverse) == ("compensable", "unsend 1")
    assert [each.kind for each in found.outside] == ["tool"]
    assert call("anything", declared="local").effect == "local"
    assert call("anything", declared="nonsense").effect == "opaque"


def test_annotations_count_if_the_server_is_trusted() -> None:
    """Those of any server make a call graver; only a trusted one can make it lighter."""
    reads, local = {"readOnlyHint": True}, {"openWorldHint": False, "destructiveHint": False}
    assert call("mcp__files__list", annotations=reads, rules=rules()).effect == "read"
    assert call("mcp__files__move", annotations=local, rules=rules()).effect == "local"
    assert call("mcp__other__list", annotations=reads, rules=rules()).effect == "program"
    assert call("mcp__other__send", annotations={}, rules=rules()).effect == "irreversible"
    closed = {"openWorldHint": False}
    assert call("mcp__other__drop", annotations=closed, rules=rules()).effect == "destructive"
    assert call("mcp__jira__create_issue", annotations={}, rules=rules()).rule == "user.tickets"


# -- the agents' own tools ----------------------------------------------------------------------

OWN = [
    ("Read", {"file_path": "/etc/passwd"}, "read"),
    ("Grep", {"pattern": "a"}, "read"),
    ("WebFetch", {"url": "https://x.io"}, "read"),
    ("fetch_webpage", {"url": "https://x.io", "method": "POST"}, "irreversible"),
    ("fetch_webpage", {"url": "http://localhost:80", "method": "POST"}, "local"),
    ("Write", {"file_path": "/work-tree/a", "content": ""}, "inside"),
    ("edit", {"path": "a.py"}, "inside"),
    ("Write", {"file_path": "/Users/user/.bashrc", "content": ""}, "local"),
    ("write_file", {"path": "/work-tree/.git/config"}, "local"),
    ("delete_file", {"path": "/Users/user/a"}, "destructive"),
    ("delete_file", {"path": "a"}, "inside"),
    ("apply_patch", {"input": "*** Begin Patch\n*** Add File: a\n+b\n*** End Patch"}, "inside"),
    ("Edit", {}, "program"),
    ("Task", {"prompt": "x"}, "program"),
    ("whatever", {}, "program"),
    ("Bash", {"command": "git push"}, "irreversible"),
    ("shell", {"command": ["bash", "-lc", "git push"]}, "irreversible"),
    ("exec_command", {"cmd": "rm a", "workdir": "/Users/user"}, "destructive"),
    ("run_shell_command", {"command": "rm a", "directory": "src"}, "inside"),
    ("run_commands", {"commands": ["ls", "git push"]}, "irreversible"),
    ("python", {"code": "import os; os.system('git push')"}, "irreversible"),
    ("python", {"code": "print(1)"}, "program"),
    ("Bash", {}, "program"),
    ("file_system.bash", {"command": "npm publish"}, "irreversible"),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "given", "effect"), OWN)
def test_the_tools_of_agents_are_known(tool: str, given: dict[str, object], effect: str) -> None:
    """By their kind, the paths they name, and the commands they hold."""
    kind = words.SHELL if tool == "file_system.bash" else tools.kind_of(tool)
    assert call(tool, given, kind=kind).effect == effect


def test_an_edit_names_what_it_overwrites() -> None:
    """Also outside the tree, so that it can be saved before."""
    (target,) = call("Write", {"file_path": "../other/a"}).targets
    assert (target.path, target.where) == (b"/other/a", "outside")


def test_an_error_inside_counts_as_opaque() -> None:
    """Nothing raises, and an error makes nothing look harmless."""

    class Broken(dict[str, object]):
        def get(self, *_: object) -> object:
            raise RuntimeError

    assert call("Bash", Broken(command="ls"), kind=words.SHELL).rule == "guard.error"
    assert call("Bash", Broken(command="ls"), kind=words.SHELL).effect == "opaque"


def test_every_judgement_is_json() -> None:
    """With a class that is known, and words for the reason."""
    for command in ("ls", "rm -rf ~/a", "git push", "echo 'a", "rm -rf .git"):
        found = judged(command).as_json()
        assert found["class"] in CLASSES
        assert dict(judged(command).reason.facts)["text"]


def test_a_read_tool_imports_nothing_heavy() -> None:
    """No parser, no knowledge file, no SQL for a tool that reads."""
    code = (
        "import sys; from takeback.guard.judge import judge\n"
        "judge('Read', {'file_path': 'a'}, kind='read', cwd=b'/a', root=b'/a', home=b'/b')\n"
        "print(sorted(set(sys.modules) & {'tree_sitter', 'tree_sitter_bash', 'sqlglot', 're',"
        " 'tomllib', 'ast', 'takeback.guard.shell', 'takeback.guard.tools'}))\n"
        "judge('Bash', {'command': 'git push'}, kind='shell', cwd=b'/a', root=b'/a', home=b'/b')\n"
        "print(sorted(set(sys.modules) & {'tree_sitter', 'sqlglot'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n['tree_sitter']\n"
