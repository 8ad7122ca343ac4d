"""Whatever a payload holds, a hook answers in words that the agent accepts, and nothing is lost.

`TAKEBACK_TEST_EXAMPLES=10000` tries so many payloads instead of the few of `./check`.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import answers
import oracle
import takeback
from agents import surroundings
from chance import examples
from documented import of_cursor, of_vs_code, of_windsurf
from takeback.agents.agent import ALLOW, ASK, DENY, HOLD, Answer, HookEvent
from takeback.agents.registry import REGISTERED, agent_of
from takeback.disk import operations
from takeback.hooks import hook

EXAMPLES = examples(150)
pytestmark = pytest.mark.timeout(600 if EXAMPLES < 1000 else 0)

EVERY = 50
COUNTED: Counter[str] = Counter()
TOLD: Counter[bool] = Counter()
PAYLOADS = [
    json.loads(path.read_text())
    for path in sorted((Path(__file__).parents[1] / "support/payloads").glob("*/*.json"))
]
PAYLOADS += [
    payload for made in (of_cursor, of_vs_code, of_windsurf) for payload in made(Path("/project"))
]
STRANGE: list[Any] = [
    None, True, 0, -1, 1e308, "", "x" * 5000, "\0", "\ud800", "/", "../..", "~", [], {}, [[]],
    {"a": {}}, "<task-notification>", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd",
]  # fmt: skip

values = st.sampled_from(STRANGE) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
mutations = st.lists(
    st.tuples(st.sampled_from(["set", "drop", "copy"]), st.integers(0, 50), values), max_size=4
)
cuts = st.none() | st.floats(0, 1)


def mutated(payload: Any, changes: list[tuple[str, int, Any]]) -> Any:  # noqa: ANN401 -- as JSON has it
    """A payload with some of its fields changed, wherever they are."""
    payload = json.loads(json.dumps(payload))
    for verb, pick, value in changes:
        places = list(_places(payload))
        if not places:
            break
        holder, key = places[pick % len(places)]
        if verb == "set":
            holder[key] = json.loads(json.dumps(value))
        elif verb == "drop":
            del holder[key]
        else:
            other, from_key = places[(pick * 7) % len(places)]
            holder[key] = json.loads(json.dumps(other[from_key]))
    return payload


def _places(value: Any) -> "list[tuple[Any, Any]]":  # noqa: ANN401
    if isinstance(value, dict):
        own = [(value, key) for key in value]
        return own + [place for inner in value.values() for place in _places(inner)]
    if isinstance(value, list):
        mine: list[tuple[Any, Any]] = [(value, key) for key in range(len(value))]
        return mine + [place for inner in value for place in _places(inner)]
    return []


VERDICTS = [
    Answer(verdict, "risky", *words)
    for verdict in (ALLOW, ASK, DENY, HOLD)
    for words in (("", ""), ("for the agent", ""), ("", "for the user"), ("both", "both"))
]


class Restores:
    """Now and then something is taken back, so that agents have to be told."""

    def __init__(self, project: takeback.Project, tree: Path) -> None:
        self._project = project
        self._tree = tree
        self.count = 0

    def next(self) -> None:
        """One payload more."""
        self.count += 1
        if self.count % EVERY == 1:
            first = self._project.checkpoint().id
            (self._tree / "made").write_text("made\n")
            self._project.checkpoint()
            self._project.rollback(first)


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(payload=st.sampled_from(PAYLOADS), changes=mutations, cut=cuts)
def test_any_payload_is_answered(
    payload: Any,  # noqa: ANN401 -- as JSON has it
    changes: list[tuple[str, int, Any]],
    cut: float | None,
    project: takeback.Project,
    tree: Path,
    restores: Restores,
) -> None:
    """The answer is one that the agent accepts; tree and log are untouched."""
    restores.next()
    before, events = oracle.picture(tree), project.workspace.ledger.last_event()
    said = mutated(payload, changes)
    text = json.dumps(said).replace('"/project', f'"{tree}').encode()
    data = text if cut is None else text[: int(len(text) * cut)]
    answer = hook.hear(surroundings(), data)
    event = read(data)
    assert event is None or answers.refused(event, json.loads(answer or b"{}")) == ""
    COUNTED[event.agent.name if event is not None else ""] += 1
    TOLD[bool(answer)] += 1
    assert oracle.picture(tree) == before
    assert project.workspace.ledger.last_event() >= events
    if EXAMPLES < 1000 or restores.count % 500 == 0:  # it reads the whole log
        known = [event.seq for event in project.workspace.ledger.events() if event.seq <= events]
        assert known == list(range(1, events + 1))
    for each in VERDICTS if event is not None else ():
        assert event is not None
        assert answers.refused(event, event.agent.answer(event, each)) == "", each


def read(data: bytes) -> HookEvent | None:
    """The event that a payload reports; None if it is no object."""
    try:
        payload = json.loads(data)
    except ValueError:
        return None
    return agent_of(payload).read(payload) if isinstance(payload, dict) else None


def test_every_agent_was_among_them() -> None:
    """What is not tried proves nothing; in many payloads, some answers say something."""
    assert set(answers.CHECKS) >= {agent.name for agent in REGISTERED}
    if EXAMPLES >= 1000:
        print(f"\n{sum(COUNTED.values())} payloads, {TOLD[True]} answers: {dict(COUNTED)}")  # noqa: T201
        assert {agent.name for agent in REGISTERED} <= set(COUNTED)
        assert TOLD[True]


def test_the_log_is_sound_after_all_of_it(project: takeback.Project) -> None:
    """Nothing of what was recorded on the way contradicts itself."""
    assert project.upkeep.examine()[0] == ()
    assert project.verify().ok


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all payloads: what one leaves behind, the next one meets."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project that all payloads name."""
    made = tmp_path_factory.mktemp("tree")
    (made / "a").write_text("a\n")
    return made


@pytest.fixture(scope="module")
def project(home: Path, tree: Path) -> Any:  # noqa: ANN401 -- a generator of one project
    """It, and the surroundings of a hook."""
    with pytest.MonkeyPatch.context() as patch:
        home.chmod(0o700)
        patch.setenv("TAKEBACK_HOME", str(home))
        patch.setattr(operations, "sync", False)  # nothing waits for the disk
        patch.chdir(tree)
        with takeback.open(tree) as opened:
            opened.checkpoint()
            yield opened


@pytest.fixture(scope="module")
def restores(project: takeback.Project, tree: Path) -> Restores:
    """Of that project."""
    return Restores(project, tree)
