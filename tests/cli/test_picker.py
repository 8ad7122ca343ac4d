"""The machine behind the interactive preview: what each key makes of what is on the screen."""

from hypothesis import given
from hypothesis import strategies as st

from takeback.cli.screens import picker
from takeback.cli.screens.picker import APPLY, LIST, QUIT, TEXT, Model
from takeback.cli.screens.terminal import END_OF_INPUT, first_key, wrap
from takeback.model.plan import Conflict, Hunk, Plan, PlannedChange, Remark
from takeback.model.reasons import Reason
from takeback.model.tree import NO_HASH, NO_OBJECT, REGULAR, Entry

KEYS = ["up", "down", "pgup", "pgdn", "home", "end", " ", "enter", "q", "tab", "?", "x", "M", "S"]
FILE = Entry(b"", REGULAR | 0o644, 0, 1, NO_HASH, 0, NO_OBJECT)


def text(path: bytes) -> Conflict:
    """A conflict in a text."""
    marked = b"<<<<<<< a\n1\n||||||| b\n2\n=======\n3\n>>>>>>> c\n"
    return Conflict(path, Reason("changed-since"), base=FILE, ours=FILE, theirs=FILE, marked=marked)


def plan(
    *paths: bytes, conflicts: tuple[Conflict, ...] = (), verb: str = "undo", **more: object
) -> Plan:
    """A plan that writes some paths, and has some conflicts."""
    changes = tuple(PlannedChange(path, "write", FILE, FILE) for path in paths)
    made = Plan(
        verb, base="", target="", title="", changes=changes, conflicts=conflicts, turns=("one",)
    )
    return made.replace(**more)


def begun(of: Plan, decide: str = "") -> Model:
    """The model of a plan."""
    return picker.begin(of, lambda _: "", decide)


def pressed(model: Model, *keys: str) -> Model:
    """What some keys make of it; plans are not made again."""
    for key in keys:
        model = picker.press(model, key)
    return model


def renewed(model: Model, of: Plan) -> Model:
    """The same with another plan."""
    return picker.renewed(model, of, lambda _: "")


def rows(model: Model) -> list[str]:
    """The rows as they are told apart without any colour."""
    return [f"[{item.mark}] {item.verb} {(item.path or b'').decode()}" for item in model.items]


# -- rows --------------------------------------------------------------------------------------


def test_what_needs_a_decision_comes_first() -> None:
    """Doubts, then conflicts, then changes, then what stays; the cursor is on the first path."""
    made = plan(
        b"a",
        conflicts=(text(b"z"),),
        doubts=(Reason("outside-changes", paths=("/a",)),),
        kept=(Remark(b"mine", Reason("yours")),),
        stays=(Reason("outside-stays", count=1),),
    )
    model = begun(made)
    assert rows(model) == ["[] ! ", "[?] conflict z", "[x] write a", "[] keep mine", "[] note "]
    assert model.cursor == 1


def test_rows_stay_where_they_are() -> None:
    """A path that is switched off, or decided, keeps its row, and says what became of it."""
    both = begun(plan(b"a", b"b", conflicts=(text(b"c"),)))
    model = pressed(both, "down", " ")
    assert model.choice.off == {b"a"}
    model = renewed(model, plan(b"b", conflicts=(text(b"c"),)))
    assert rows(model) == ["[?] conflict c", "[ ] leave a", "[x] write b"]
    model = pressed(model, "up", "t")
    model = renewed(model, plan(b"b", b"c"))
    assert rows(model) == ["[x] back c", "[ ] leave a", "[x] write b"]


def test_the_cursor_stays_on_its_row() -> None:
    """Also if a doubt above it comes or goes with what is chosen."""
    model = pressed(
        begun(plan(b"a", b"b", doubts=(Reason("outside-changes", paths=("/a",)),))), "down", " "
    )
    model = renewed(model, plan(b"a"))
    assert model.here is not None
    assert model.here.path == b"b"


def test_what_cannot_be_done_says_why() -> None:
    """A folder that stays because something stays in it is marked, and has the reason."""
    model = begun(plan(b"lib", b"lib/a"))
    model = pressed(model, "down", " ")
    stays = plan(kept=(Remark(b"lib", Reason("not-empty", name="a", count=1)),))
    model = renewed(model, stays)
    assert rows(model) == ["[-] keep lib", "[ ] leave lib/a"]
    assert model.items[0].said == "not empty: it holds `a`"


def test_decisions_of_the_command_line_are_shown() -> None:
    """`--markers` is entered where it can be, and left open where it cannot."""
    other = Conflict(b"bin", Reason("no-text"), base=FILE, ours=FILE, theirs=FILE)
    model = begun(plan(conflicts=(text(b"a"), other)), "markers")
    assert model.choice.decisions == {b"a": "markers"}


# -- choosing ----------------------------------------------------------------------------------


def test_a_folder_takes_along_what_is_below() -> None:
    """Space on a folder switches all below it off, and on again."""
    model = pressed(begun(plan(b"lib", b"lib/a", b"lib/b/c", b"libre")), " ")
    assert model.choice.off == {b"lib", b"lib/a", b"lib/b/c"}
    assert picker.chosen(model) == [b"libre"]
    assert pressed(model, " ").choice.off == frozenset()


def test_everything_is_named_by_nothing() -> None:
    """If all is on, no path is named, so that the whole turn goes; if all is off, none is left."""
    model = begun(plan(b"a", b"b"))
    assert picker.chosen(model) is None
    assert picker.chosen(pressed(model, " ", "down", " ")) == []


NAMES = st.lists(st.sampled_from([b"a", b"b", b"ab"]), min_size=1, max_size=4).map(b"/".join)


@given(st.sets(NAMES, min_size=1, max_size=12), st.data())
def test_the_names_cover_what_is_on_and_nothing_else(
    paths: set[bytes], data: st.DataObject
) -> None:
    """Each path that is on is covered, unless one below it is off; no path that is off ever is."""
    off = frozenset(data.draw(st.sets(st.sampled_from(sorted(paths)))))
    model = begun(plan(*sorted(paths)))
    model = model._replace(choice=model.choice._replace(off=off))
    named = picker.chosen(model)
    if named is None:
        assert not off
        return

    def covers(one: bytes, other: bytes) -> bool:
        return one in (b"", other) or other.startswith(one + b"/")

    for path in paths:
        is_covered = any(covers(name, path) for name in named)
        assert is_covered == (not any(covers(path, other) for other in off))


@given(
    st.lists(st.sampled_from(KEYS), max_size=40),
    st.integers(0, 12),
    st.integers(0, 3),
    st.integers(1, 9),
)
def test_no_key_leads_off_the_screen(
    keys: list[str], changes: int, conflicts: int, page: int
) -> None:
    """Whatever is pressed, the cursor is on a row that is on the screen."""
    clashing = tuple(text(b"z%d" % number) for number in range(conflicts))
    made = plan(*(b"a%d" % number for number in range(changes)), conflicts=clashing)
    model = picker.resized(begun(made), page, 0)
    for key in keys:
        model = picker.resized(picker.press(model, key), page, 25)
        assert model.top <= model.cursor < model.top + page
        assert 0 <= model.cursor < max(len(model.items), 1)
        assert 0 <= model.scroll <= 25
        assert model.outcome in ("", QUIT)
        if model.outcome:
            return


# -- deciding ----------------------------------------------------------------------------------


def test_each_key_decides() -> None:
    """`m`, `t`, `b` and `s` decide where the cursor is; the last word counts."""
    model = begun(plan(conflicts=(text(b"a"), text(b"b"))))
    for key, decision in picker.KEYS.items():
        model = pressed(model, key)
        assert model.choice.decisions == {b"a": decision}


def test_a_capital_decides_all_that_are_left() -> None:
    """What was decided before stays as it is."""
    model = pressed(begun(plan(conflicts=(text(b"a"), text(b"b"), text(b"c")))), "t")
    model = renewed(model, plan(b"a", conflicts=(text(b"b"), text(b"c"))))
    model = pressed(model, "M")
    assert model.choice.decisions == {b"a": "take-back", b"b": "keep-mine", b"c": "keep-mine"}


def test_not_everything_can_be_decided_so() -> None:
    """No markers in a binary, nothing taken back where something is in the way; it says why."""
    binary = Conflict(b"bin", Reason("no-text"), base=FILE, ours=FILE, theirs=FILE)
    blocked = Conflict(b"way", Reason("in-the-way", why="special"))
    model = pressed(begun(plan(conflicts=(binary,))), "b")
    assert (model.choice.decisions, model.message) == (
        {},
        "markers are for text: `m`, `t` or `s`",
    )
    model = pressed(begun(plan(conflicts=(blocked,))), "t")
    assert model.choice.decisions == {}
    assert "in the way" in model.message
    assert pressed(model, "m").choice.decisions == {b"way": "keep-mine"}
    model = pressed(begun(plan(conflicts=(blocked,), verb="rollback")), "m")
    assert model.choice.decisions == {}
    assert "space" in model.message


def test_there_is_nothing_to_decide_elsewhere() -> None:
    """On a path without a conflict the keys decide nothing."""
    model = pressed(begun(plan(b"a")), "m")
    assert model.choice.decisions == {}
    assert model.message


def test_deciding_switches_a_path_on() -> None:
    """Who decides a conflict that was switched off wants it."""
    model = pressed(begun(plan(b"a", conflicts=(text(b"c"),))), " ", "m")
    assert model.choice.off == frozenset()


# -- the end -----------------------------------------------------------------------------------


def test_nothing_is_applied_before_all_is_decided() -> None:
    """`a` goes to the first conflict that is open, and says so."""
    model = pressed(begun(plan(b"a", b"b", conflicts=(text(b"c"),))), "end", "a")
    assert (model.outcome, model.cursor) == ("", 0)
    assert model.message == "1 conflict left: m, t, b, s or space"


def test_nothing_is_applied_if_nothing_is_chosen() -> None:
    """Everything switched off is no undo at all."""
    model = pressed(begun(plan(b"a")), " ", "a")
    assert model.outcome == ""
    assert model.message


def test_apply_and_quit() -> None:
    """Both keys of each do it; in a text, `q` and Esc only go back to the list."""
    model = begun(plan(b"a"))
    assert {pressed(model, key).outcome for key in ("a", "y")} == {APPLY}
    assert {pressed(model, key).outcome for key in ("q", "esc", END_OF_INPUT)} == {QUIT}
    for key in ("q", "esc", "enter", "left"):
        opened = pressed(model, "enter")
        assert opened.view == TEXT
        assert (pressed(opened, key).view, pressed(opened, key).outcome) == (LIST, "")
    assert pressed(model, "enter", END_OF_INPUT).outcome == QUIT


def test_tab_goes_from_conflict_to_conflict() -> None:
    """And from the last one to the first."""
    model = begun(plan(b"a", conflicts=(text(b"x"), text(b"y"))))
    seen = []
    for _ in range(3):
        model = pressed(model, "tab")
        seen.append(model.cursor)
    assert seen == [1, 0, 1]


# -- keys and lines ----------------------------------------------------------------------------


def test_keys_are_told_apart() -> None:
    """Arrows in both spellings, pages, Esc alone, and several keys in one piece."""
    found = []
    left = b"j\x1b[A\x1bOB\x1b[5~\r\t\x1b[1;5C\xc3\xa9 \x1bq\x1b"
    while left:
        key, left = first_key(left, is_all=True)
        found.append(key)
    assert found == [
        *("j", "up", "down", "pgup", "enter", "tab", "unknown", "é"),
        *(" ", "esc", "q", "esc"),
    ]


def test_half_a_key_waits() -> None:
    """The beginning of a sequence is no key until the rest comes, or does not come."""
    for half in (b"\x1b", b"\x1b[", b"\x1b[5"):
        assert first_key(half) == ("", half)
        assert first_key(half, is_all=True)[0] == "esc"


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=60),
    st.integers(2, 20),
)
def test_long_lines_are_broken_and_not_cut(line: str, columns: int) -> None:
    """Together the pieces are the line, and each fits."""
    from takeback.cli.screen import columns as wide

    pieces = wrap([("red", line)], columns)
    assert "".join(piece for _, piece in pieces) == line
    assert all(style == "red" and wide(piece) <= columns for style, piece in pieces)


# -- hunks -------------------------------------------------------------------------------------


def in_hunks(path: bytes) -> Conflict:
    """A conflict in two places of a text."""
    hunks = tuple(Hunk(index, 10 * index + 1, clashes=True) for index in range(2))
    return text(path).replace(hunks=hunks)


def test_hunks_are_decided_one_by_one() -> None:
    """Each has a row of its own; the path waits until all are decided."""
    model = begun(plan(conflicts=(in_hunks(b"f"),)))
    assert rows(model) == ["[?] conflict f", "[?] conflict f", "[?] conflict f"]
    assert len(model.undecided) == 2
    model = pressed(model, "down", "t")
    assert model.choice.decisions == {(b"f", 0): "take-back"}
    model = renewed(model, model.plan)
    assert rows(model) == ["[?] conflict f", "[x] back f", "[?] conflict f"]
    assert pressed(model, "a").message == "1 conflict left: m, t, b, s or space"
    model = pressed(model, "tab", "s")
    model = renewed(model, plan(b"f"))
    assert rows(model) == ["[x] write f", "[x] back f", "[x] skip f"]
    assert pressed(model, "a").outcome == APPLY


def test_a_path_decides_all_of_its_hunks() -> None:
    """What was decided for one of them before does not count any more."""
    model = pressed(begun(plan(conflicts=(in_hunks(b"f"),))), "down", "t", "up", "m")
    assert model.choice.decisions == {b"f": "keep-mine"}
    model = renewed(model, plan())
    assert rows(model) == ["[x] mine f", "[x] mine f", "[x] mine f"]


def test_a_hunk_is_left_out_and_taken_again() -> None:
    """Space leaves one hunk of a file; its path with all of them is another row."""
    hunks = tuple(Hunk(index, 10 * index + 1) for index in range(2))
    change = PlannedChange(b"f", "write", FILE, FILE, hunks=hunks)
    model = begun(plan().replace(changes=(change,)))
    assert rows(model) == ["[x] write f", "[x] take f", "[x] take f"]
    model = renewed(pressed(model, "end", " "), model.plan)
    assert model.choice.decisions == {(b"f", 1): "skip-conflicts"}
    assert rows(model) == ["[x] write f", "[x] take f", "[ ] leave f"]
    assert pressed(model, "m").message == "there is no conflict here to decide"
    model = renewed(pressed(model, " "), model.plan)
    assert rows(model)[2] == "[x] take f"
    model = renewed(pressed(model, " ", "home", " "), plan())
    assert model.choice.off == {b"f"}
    assert model.choice.decisions == {}
    assert rows(model) == ["[ ] leave f"]


def test_a_rollback_shows_first_that_your_own_edits_go() -> None:
    """Above all else, and with your own files first."""
    changes = (
        PlannedChange(b"a", "write", FILE, FILE, whose=("agent",)),
        PlannedChange(b"b", "write", FILE, FILE, whose=("you",)),
    )
    model = begun(plan(verb="rollback").replace(changes=changes))
    assert rows(model) == ["[] ! ", "[x] write b", "[x] write a"]
    assert model.items[0].said == "1 change of your own is removed; the safety checkpoint keeps it"
