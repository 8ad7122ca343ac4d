"""Whatever is pressed in the interactive preview: what it shows last is what is done."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from chance import examples
from oracle import Picture, differences
from shop import Shop
from takeback.cli.restore_flow import Contents, Wanted
from takeback.cli.screen import Screen
from takeback.cli.screens.picker import Model
from takeback.cli.screens.picker_view import PickerView
from takeback.model.tree import REGULAR
from takeback.model.words import DECISIONS

KEYS = ["down", "up", "end", " ", "m", "t", "b", "s", "M", "T", "tab"]
KEPT = ("mine", "skip", "leave", "keep")
LINES = "".join(f"line {number}\n" for number in range(20))


class Fingers:
    """In the place of a terminal: presses keys one after the other, and looks at nothing."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = iter([*keys, "a", "q"])

    def draw(self, lines: Sequence[tuple[str, str]]) -> None:
        """Look at the screen."""

    def key(self) -> str:
        """Press the next one."""
        return next(self._keys)


def with_lines(by: str, *numbers: int) -> str:
    """The lines, some of them by somebody."""
    text = LINES
    for number in numbers:
        text = text.replace(f"line {number}\n", f"{by} {number}\n")
    return text


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A turn that does a bit of everything, and somebody who worked on after it."""
    folder = tmp_path_factory.mktemp("picking")
    (folder / "home").mkdir(mode=0o700)
    (folder / "tree").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAKEBACK_HOME", str(folder / "home"))
        made = Shop(folder / "tree")
        made.write(
            {"old/a": LINES, "old/b": "b\n", "merged": LINES, "bin": "\0old", "moved": LINES}
        )
        made.write({"hunks": LINES, "places": LINES})
        made.project.checkpoint("more")
        gone: dict[str, str | None] = {"old/b": None, "src/cart.py": None}
        with made.session.turn("Everything") as turn, turn.step("Bash", {"command": "make"}):
            made.write(gone | {"new/x/1": "1\n", "new/x/2": "2\n", "new/y": "y\n"})
            made.write({"merged": LINES.replace("line 3\n", "3\n"), "bin": "\0new"})
            made.write({"src/pay.py": "def pay():\n    return 2\n", "notes.md": "turn\n"})
            made.write(dict.fromkeys(("hunks", "places"), with_lines("the turn", 2, 9, 16)))
            (folder / "tree/moved").rename(folder / "tree/there")
        made.write({"merged": LINES.replace("line 3\n", "3\n").replace("line 17\n", "17\n")})
        made.write({"src/pay.py": "def pay():\n    return 3\n", "bin": "\0mine", "new/x/3": "3\n"})
        made.write({"src/cart.py": "mine\n", "moved": "mine\n"})
        made.write({"places": with_lines("the turn", 2).replace("line 9\n", "mine 9\n")})
        made.write({"places": with_lines("mine", 9, 16).replace("line 2\n", "the turn 2\n")})
        with made.project:
            yield made


def picked(shop: Shop, keys: Sequence[str], decide: str, *, by_hunk: bool) -> tuple[Model, bool]:
    """Press keys; the last list, and whether it was applied."""
    project, contents, screen = shop.project, Contents(shop.project), Screen()
    picking = PickerView(
        screen,
        contents,
        lambda wanted: project.plan_undo(
            "Everything",
            paths=wanted.paths,
            decide=wanted.decide,
            inside=wanted.inside,
            by_hunk=wanted.by_hunk,
        ),
        Wanted([], b"", decide, by_hunk=by_hunk),
    )
    plan = picking.choose(project.plan_undo("Everything", by_hunk=by_hunk), Fingers(keys))
    assert picking.shown is not None
    return picking.shown, plan is not None and bool(project.apply(plan, yes=True).id)


def wrong(shop: Shop, model: Model, before: Picture) -> list[str]:
    """Where the tree is not as the last list said."""
    found = []
    after = shop.picture()
    planned = {change.raw_path for change in model.plan.changes}
    changed = {line.split(":")[0] for line in differences(before, after)}
    for item in model.items:
        if item.path is None or not item.mark:
            continue
        name = item.path.decode()
        stays = item.verb in KEPT or item.mark != "x"
        path = shop.tree / name
        if item.hunk is not None:
            side = item.hunk.ours if stays else item.hunk.theirs
            if item.verb != "both" and b"".join(side) not in path.read_bytes():
                found.append(f"{name} was to hold {side!r}")
            continue
        stays = stays and (not item.has_hunks or item.path not in planned)
        if stays and name in changed:
            found.append(f"{name} was to stay")
        if not stays and item.change is not None:
            want = item.change.after
            if want is None and path.exists():
                found.append(f"{name} was to go")
            is_file = want is not None and want.kind == REGULAR
            if is_file and path.read_bytes() != shop.project.contents(want)[0]:
                found.append(f"{name} was to be another")
    return found


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keys=st.lists(st.sampled_from(KEYS), max_size=25),
    decide=st.sampled_from(["", *DECISIONS]),
    by_hunk=st.booleans(),
)
def test_what_is_shown_last_is_done(
    shop: Shop, keys: list[str], decide: str, by_hunk: bool
) -> None:
    """Every path and hunk that is marked is done as its row says, and all others stay."""
    before = shop.picture()
    model, is_done = picked(shop, keys, decide, by_hunk=by_hunk)
    event(f"applied: {is_done}")
    if is_done:
        assert wrong(shop, model, before) == []
        shop.project.redo()
    assert not differences(before, shop.picture())
