"""Right author: interleavings of agents, their tools and you, played on a real tree.

Each story is a few lines in the language of `play`, one sentence of what should hold, and the
author of each path that changed. The tree has `x`, `y`, `z`, `dir/in` and `dir/deep/low` at first.
"""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from play import OLD, Play

HOUR = 3600
YEAR = 365 * 24 * HOUR

Told = dict[str, str]
Story = Callable[[Play], Told]
STORIES: list[Story] = []


def story(play: Story) -> Story:
    """Put a story on the list."""
    STORIES.append(play)
    return play


@pytest.fixture
def play(tree: Path, home: Path) -> Iterator[Play]:
    """A tree with some files, and its first checkpoint."""
    made = Play(tree, home)
    made.you.write("x", "y", "z", "dir/in", "dir/deep/low")
    made.look()
    yield made
    made.close()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_every_path_has_its_author(story: Story, play: Play) -> None:
    """Each change has just the author that the story tells, also when the tables are rebuilt."""
    expected = story(play)
    play.look()  # what nobody has looked at yet
    assert play.authors() == expected
    assert play.project.upkeep.examine()[0] == ()
    before = play.tables()
    play.project.rebuild()
    assert play.tables() == before


def test_there_are_stories_enough() -> None:
    """The matrix has at least forty interleavings, and each says what it is about."""
    assert len(STORIES) >= 40
    assert [told.__name__ for told in STORIES if not told.__doc__] == []


# -- what tools may claim ------------------------------------------------------------------------


@story
def an_edit_tool_owns_what_it_names(p: Play) -> Told:
    """An edit tool owns the file it names and changes."""
    with p.a.edit("x"):
        p.tool.write("x")
    return {"x": "a1 named"}


@story
def an_edit_tool_owns_nothing_else(p: Play) -> Told:
    """What changes while an edit tool runs and is not named by it is yours, whoever did it."""
    with p.a.edit("x"):
        p.tool.write("x", "dir/in")
    return {"x": "a1 named", "dir/in": "you"}


@story
def one_call_edits_many_files(p: Play) -> Told:
    """An edit tool that names several files owns each of them, and you the others."""
    with p.a.edit("x", "dir/in"):
        p.tool.write("x", "dir/in")
        p.you.write("y")
    return {"x": "a1 named", "dir/in": "a1 named", "y": "you"}


@story
def a_patch_names_its_files(p: Play) -> Told:
    """The files that a patch adds, updates and deletes are the step's."""
    patch = "*** Begin Patch\n*** Add File: new\n+a\n*** Delete File: y\n*** Update File: x\n@@\n"
    with p.a.use("apply_patch", {"command": patch}):
        p.tool.write("new", "x")
        p.tool.remove("y")
        p.you.write("z")
    return {"new": "a1 named", "y": "a1 named", "x": "a1 named", "z": "you"}


@story
def a_patch_moves_a_file(p: Play) -> Told:
    """Both names of a file that a patch moves are the step's."""
    patch = "*** Begin Patch\n*** Update File: x\n*** Move to: moved/x\n@@\n-a\n+b\n"
    with p.a.use("apply_patch", {"command": patch}):
        p.tool.mkdir("moved")
        p.tool.move("x", "moved/x")
    return {"x": "a1 named", "moved": "a1 named", "moved/x": "a1 named"}


@story
def an_edit_that_names_nothing(p: Play) -> Told:
    """An edit tool whose input names no file counts as a shell: nobody knows what it writes."""
    with p.a.use("Write", {"content": "x"}):
        p.tool.write("x", "new")
    return {"x": "a1 shell", "new": "a1 shell"}


@story
def folders_made_for_a_named_file(p: Play) -> Told:
    """Folders that an edit tool has to make for the file it names are its own."""
    with p.a.edit("new/inner/file"):
        p.tool.write("new/inner/file")
        p.you.mkdir("yours")
    return {
        "new": "a1 named",
        "new/inner": "a1 named",
        "new/inner/file": "a1 named",
        "yours": "you",
    }


@story
def a_named_folder_with_what_is_in_it(p: Play) -> Told:
    """A tool that names a folder owns what changes in it."""
    with p.a.use("create_directory", {"path": "made"}):
        p.tool.write("made/inside")
        p.you.write("x")
    return {"made": "a1 named", "made/inside": "a1 named", "x": "you"}


@story
def named_through_a_link(p: Play) -> Told:
    """A tool that names a file through links, on the way or at its end, owns the file it writes."""
    p.you.link("way", "dir")
    p.you.link("end", "y")
    with p.a.edit("way/in", "end"):
        p.tool.write("way/in", "end")
    return {"way": "you", "end": "you", "dir/in": "a1 named", "y": "a1 named"}


@story
def named_from_another_folder(p: Play) -> Told:
    """Relative names begin where the tool runs; absolute ones need nothing."""
    with p.a.use("Edit", {"file_path": "in"}, cwd=p.tree / "dir"):
        p.tool.write("dir/in")
    with p.a.edit(str(p.tree / "x"), "./dir/../y"):
        p.tool.write("x", "y")
    return {"dir/in": "a1 named", "x": "a2 named", "y": "a2 named"}


@story
def a_shell_owns_what_happens_in_its_window(p: Play) -> Told:
    """All that a shell writes, makes, removes and moves is its own, and said to be by shell."""
    with p.a.shell():
        p.tool.write("x", "new/file")
        p.tool.remove("y")
        p.tool.move("z", "zz")
    return dict.fromkeys(("x", "new", "new/file", "y", "z", "zz"), "a1 shell")


@story
def a_tool_that_nobody_told_us_about(p: Play) -> Told:
    """An unknown tool counts as a shell; what it names is said to be named."""
    with p.a.use("mcp__garden__grow", {"path": "x"}):
        p.tool.write("x", "y")
    return {"x": "a1 named", "y": "a1 shell"}


@story
def a_reader_owns_nothing(p: Play) -> Told:
    """What changes while a tool only looks is yours, also the file it looks at."""
    with p.a.read("x"):
        p.you.write("x", "y")
    return {"x": "you", "y": "you"}


@story
def a_file_that_could_not_be_read(p: Play) -> Told:
    """The agent does not find a file and you move it in: it is yours, also in the next turn."""
    with p.a.read("missing"):
        pass
    p.a.stop("failed")
    p.you.bring("missing")
    p.a.prompt()
    with p.a.edit("x"):
        p.tool.write("x")
    return {"missing": "you", "x": "a2 named"}


@story
def only_the_permissions(p: Play) -> Told:
    """A change of permissions alone has an author too."""
    with p.a.shell():
        p.tool.chmod("x")
        p.tool.chmod("dir")
    p.you.chmod("y")
    return {"x": "a1 shell", "dir": "a1 shell", "y": "you"}


@story
def links_that_lead_elsewhere(p: Play) -> Told:
    """A link that is made, or led elsewhere, has an author like a file."""
    with p.a.shell():
        p.tool.link("link", "x")
    p.you.link("link", "y")
    p.look()
    with p.a.edit("link"):
        p.tool.link("link", "z")
    return {"link": "a1 shell, you, a2 named"}


@story
def old_dates_in_a_shell(p: Play) -> Told:
    """What a shell unpacks with old dates, or dates ahead of the clock, is its own."""
    with p.a.shell():
        p.tool.unpack("old", "x", date=OLD)
        p.tool.unpack("ahead", date=2 * OLD + 1_000_000_000)
        p.tool.bring("moved-in")
        p.tool.bring_folder("folder", "one", "deep/two")
    paths = ("old", "x", "ahead", "moved-in", "folder", "folder/one", "folder/deep")
    return dict.fromkeys((*paths, "folder/deep/two"), "a1 shell")


@story
def made_and_removed_again(p: Play) -> Told:
    """What a step makes and removes again is no change; over two steps it is two."""
    with p.a.shell():
        p.tool.write("gone")
        p.tool.remove("gone")
    with p.a.shell():
        p.tool.write("brief")
    with p.a.shell():
        p.tool.remove("brief")
    return {"brief": "a2 shell, a3 shell"}


# -- you, between --------------------------------------------------------------------------------


@story
def before_anybody_else(p: Play) -> Told:
    """What you did before the first prompt is yours."""
    p.you.write("x")
    with p.a.shell():
        p.tool.write("y")
    return {"x": "you", "y": "a1 shell"}


@story
def between_prompt_and_first_tool(p: Play) -> Told:
    """What you do while the agent still thinks is yours."""
    p.a.prompt()
    p.you.write("x")
    p.you.remove("z")
    with p.a.shell():
        p.tool.write("y")
    return {"x": "you", "z": "you", "y": "a1 shell"}


@story
def between_two_steps(p: Play) -> Told:
    """What you do between two steps is yours, also in the file that both of them edit."""
    with p.a.edit("x"):
        p.tool.write("x")
    p.you.save("x")
    with p.a.edit("x"):
        p.tool.write("x")
    return {"x": "a1 named, you, a2 named"}


@story
def between_two_turns(p: Play) -> Told:
    """What you do between two turns is yours."""
    with p.a.shell():
        p.tool.write("x")
    p.a.stop()
    p.you.write("x", "new")
    p.a.prompt()
    with p.a.shell():
        p.tool.write("x")
    return {"x": "a1 shell, you, a2 shell", "new": "you"}


@story
def an_editor_saves_while_an_edit_tool_runs(p: Play) -> Told:
    """What you save, in either way of editors, while an edit tool works elsewhere is yours."""
    with p.a.edit("x"):
        p.you.save("y")
        p.tool.save("x")
        p.you.write("dir/in")
    return {"x": "a1 named", "y": "you", "dir/in": "you"}


@story
def you_rename_what_the_agent_wrote(p: Play) -> Told:
    """A file that you rename after the agent edited it is yours under both names."""
    with p.a.edit("x"):
        p.tool.write("x")
    p.a.stop()
    p.you.move("x", "renamed")
    p.a.prompt()
    return {"x": "a1 named, you", "renamed": "you"}


@story
def you_move_a_folder(p: Play) -> Told:
    """A folder that you move while an edit tool works elsewhere is yours with all that is in it."""
    with p.a.edit("x"):
        p.you.move("dir", "moved")
        p.tool.write("x")
    gone = ("dir", "dir/in", "dir/deep", "dir/deep/low")
    come = ("moved", "moved/in", "moved/deep", "moved/deep/low")
    return dict.fromkeys((*gone, *come), "you") | {"x": "a1 named"}


@story
def you_delete_a_folder(p: Play) -> Told:
    """A folder that you delete between steps is yours to have deleted."""
    with p.a.shell():
        p.tool.write("dir/in")
    p.you.remove("dir")
    with p.a.shell():
        p.tool.write("x")
    told = {"dir/in": "a1 shell, you", "x": "a2 shell"}
    return told | dict.fromkeys(("dir", "dir/deep", "dir/deep/low"), "you")


@story
def a_shell_moves_and_deletes_folders(p: Play) -> Told:
    """Folders that a shell moves and deletes are its own with all that is in them."""
    with p.a.shell():
        p.tool.move("dir/deep", "up")
        p.tool.remove("dir")
    paths = ("dir", "dir/in", "dir/deep", "dir/deep/low", "up", "up/low")
    return dict.fromkeys(paths, "a1 shell")


@story
def old_dates_of_yours(p: Play) -> Told:
    """What you copy in with old dates between steps is yours."""
    with p.a.shell():
        p.tool.write("x")
    p.you.unpack("old", "y")
    p.you.bring("moved-in")
    with p.a.shell():
        p.tool.write("z")
    told = {"x": "a1 shell", "z": "a2 shell"}
    return told | dict.fromkeys(("old", "y", "moved-in"), "you")


@story
def a_file_becomes_a_folder(p: Play) -> Told:
    """A file that a shell replaces by a folder, and you by a link, has these authors in turn."""
    with p.a.shell():
        p.tool.remove("x")
        p.tool.write("x/inside")
    p.you.remove("x")
    p.you.link("x", "y")
    return {"x": "a1 shell, you", "x/inside": "a1 shell, you"}


@story
def a_checkpoint_in_the_middle(p: Play) -> Told:
    """A checkpoint while a tool runs gives what is done by then its author."""
    with p.a.shell():
        p.tool.write("x")
        p.look()
        p.tool.write("x", "y")
    return {"x": "a1 shell, a1 shell", "y": "a1 shell"}


@story
def in_a_git_repository(p: Play) -> Told:
    """In a git repository a shell that commits owns what it wrote; git's own files are nobody's."""
    git = ["git", "-C", str(p.tree), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    with p.a.shell():
        subprocess.run([*git, "init", "-q"], check=True)
    with p.a.shell():
        p.tool.write("x")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", "one"], check=True)
    p.you.write("x")
    with p.a.shell():
        subprocess.run([*git, "checkout", "-q", "--", "x"], check=True)
    told = {path: author for path, author in p.authors().items() if path != ".git"}
    assert told == {"x": "a2 shell, you, a3 shell"}
    return p.authors()


# -- steps side by side, and inside each other -----------------------------------------------------


@story
def overlapping_shells_of_one_agent(p: Play) -> Told:
    """Pre 1, pre 2, post 2, post 1: while both run it is the latest of them, then the other."""
    one = p.a.shell()
    p.tool.write("x")
    two = p.a.shell()
    p.tool.write("y")
    two.end()
    p.tool.write("z")
    one.end()
    p.you.write("dir/in")
    return {"x": "a1 shell", "y": "a2 shell", "z": "a1 shell", "dir/in": "you"}


@story
def overlapping_edits_of_one_agent(p: Play) -> Told:
    """Edit tools that run at once own what each of them names."""
    one, two = p.a.edit("x"), p.a.edit("y")
    p.tool.write("x", "y")
    p.you.write("z")
    two.end()
    one.end()
    return {"x": "a1 named", "y": "a2 named", "z": "you"}


@story
def an_edit_beside_a_shell(p: Play) -> Told:
    """Beside a shell of the same agent an edit tool owns what it names, and the shell the rest."""
    with p.a.shell(), p.a.edit("x"):
        p.tool.write("x", "y")
    return {"x": "a2 named", "y": "a1 shell"}


@story
def a_sub_agent_with_steps(p: Play) -> Told:
    """What a sub-agent does is its steps'; what happens beside them while it runs is yours."""
    with p.a.sub_agent() as helper:
        with p.a.edit("x", inside=helper):
            p.tool.write("x")
        p.you.write("y")
        with p.a.shell(inside=helper):
            p.tool.write("z")
    return {"x": "a2 named", "y": "you", "z": "a3 shell"}


@story
def a_sub_agent_of_a_sub_agent(p: Play) -> Told:
    """Steps at any depth own what they did."""
    with p.a.sub_agent() as helper, p.a.sub_agent(inside=helper) as deeper:
        with p.a.edit("x", inside=deeper):
            p.tool.write("x", "y")
        with p.a.edit("z", inside=helper):
            p.tool.write("z")
    return {"x": "a3 named", "y": "you", "z": "a4 named"}


@story
def two_sub_agents_at_once(p: Play) -> Told:
    """Sub-agents of one session share nothing: what both may have done is the later one's."""
    one, two = p.a.sub_agent(), p.a.sub_agent()
    with p.a.shell(inside=one):
        p.tool.write("x")
        with p.a.shell(inside=two):
            p.tool.write("y")
        p.tool.write("z")
    one.end()
    two.end()
    return {"x": "a3 shell", "y": "a4 shell", "z": "a3 shell"}


@story
def a_sub_agent_that_outlives_its_turn(p: Play) -> Told:
    """A sub-agent that still works when its turn has ended owns what its steps do then."""
    helper = p.a.sub_agent()
    helper.detach()
    p.a.stop()
    with p.a.edit("x", inside=helper):
        p.tool.write("x")
        p.you.write("y")
    with p.a.shell(inside=helper):
        p.tool.write("z")
    helper.end()
    return {"x": "a2 named", "y": "you", "z": "a3 shell"}


@story
def a_turn_ends_while_its_sub_agent_works(p: Play) -> Told:
    """A step of a detached sub-agent goes on when the turn ends, or the next prompt comes."""
    helper = p.a.sub_agent()
    early = p.a.shell(inside=helper)
    helper.detach()
    p.a.stop()
    p.tool.write("x")
    early.end()
    late = p.a.shell(inside=helper)
    p.a.prompt()
    p.tool.write("y")
    late.end()
    p.you.write("z")
    helper.end()
    return {"x": "a2 shell", "y": "a3 shell", "z": "you"}


@story
def a_sub_agent_ends_without_its_steps(p: Play) -> Told:
    """Steps whose end never came close with the sub-agent they are in; what it detached goes on."""
    helper = p.a.sub_agent()
    server = p.a.shell(inside=helper)
    server.detach()
    with p.a.sub_agent(inside=helper) as deeper:
        p.a.shell(inside=deeper)
        p.tool.write("x")
    p.tool.write("y")
    helper.end()
    p.tool.write("z")
    server.end()
    p.you.write("dir/in")
    return {"x": "a4 shell", "y": "a2 shell", "z": "a2 shell", "dir/in": "you"}


# -- two sessions, or three ------------------------------------------------------------------------


@story
def two_shells_at_once_are_shared(p: Play) -> Told:
    """What falls into the windows of two sessions' shells and is named by neither is shared."""
    with p.a.shell(), p.b.shell():
        p.tool.write("x", "new")
        p.tool.remove("y")
    return dict.fromkeys(("x", "new", "y"), "shared a b")


@story
def three_shells_at_once(p: Play) -> Told:
    """A shared change says all who share it, as many as there are at the time."""
    with p.a.shell(), p.b.shell():
        with p.c.shell():
            p.tool.write("x")
        p.tool.write("y")
    return {"x": "shared a b c", "y": "shared a b"}


@story
def shells_that_overlap_in_part(p: Play) -> Told:
    """Only what falls into both windows is shared: before and after it is the one that runs."""
    one = p.a.shell()
    p.tool.write("x")
    two = p.b.shell()
    p.tool.write("y")
    one.end()
    p.tool.write("z")
    two.end()
    p.you.write("dir/in")
    return {"x": "a1 shell", "y": "shared a b", "z": "b1 shell", "dir/in": "you"}


@story
def shells_one_after_the_other(p: Play) -> Told:
    """Two sessions whose turns overlap but whose steps do not share nothing."""
    p.a.prompt()
    p.b.prompt()
    with p.a.shell():
        p.tool.write("x")
    with p.b.shell():
        p.tool.write("y")
    p.you.write("z")
    return {"x": "a1 shell", "y": "b1 shell", "z": "you"}


@story
def an_edit_beside_somebody_elses_shell(p: Play) -> Told:
    """A path that an edit tool names is its own although another session's shell runs."""
    with p.a.shell(), p.b.edit("x"):
        p.tool.write("x", "y")
    return {"x": "b1 named", "y": "a1 shell"}


@story
def edits_of_two_sessions(p: Play) -> Told:
    """Edit tools of two sessions own what each names; the rest is yours, not shared."""
    with p.a.edit("x"), p.b.edit("y"):
        p.tool.write("x", "y", "z")
    return {"x": "a1 named", "y": "b1 named", "z": "you"}


@story
def two_sessions_name_one_path(p: Play) -> Told:
    """A path that edit tools of two sessions name at once is shared, and nothing else is."""
    with p.a.edit("x"), p.b.edit("x"):
        p.tool.write("x", "y")
    return {"x": "shared a b", "y": "you"}


@story
def a_reader_shares_nothing(p: Play) -> Told:
    """A tool that only looks, and a sub-agent's own window, make nothing shared."""
    with p.a.shell(), p.b.read("x"), p.c.sub_agent():
        p.tool.write("x")
    return {"x": "a1 shell"}


@story
def the_same_file_by_two_sessions_in_turn(p: Play) -> Told:
    """A file that two sessions and you edit in turn has each of them once."""
    with p.a.edit("x"):
        p.tool.write("x")
    with p.b.edit("x"):
        p.tool.write("x")
    p.you.write("x")
    with p.a.shell():
        p.tool.write("x")
    return {"x": "a1 named, b1 named, you, a2 shell"}


# -- windows that nobody closes, or that stay open -------------------------------------------------


@story
def an_end_that_never_comes(p: Play) -> Told:
    """A window without an end closes with its turn; what you do then is yours."""
    p.a.shell()
    p.tool.write("x")
    p.a.stop()
    p.you.write("x", "y")
    return {"x": "a1 shell, you", "y": "you"}


@story
def the_next_prompt_closes(p: Play) -> Told:
    """Without end, stop or mark, a shell may have done all that happened until the next prompt."""
    p.a.shell()
    p.tool.write("x")
    p.a.prompt()
    p.you.write("y")
    with p.a.edit("z"):
        p.tool.write("z")
    return {"x": "a1 shell", "y": "you", "z": "a2 named"}


@story
def hand_edits_after_an_interrupt(p: Play) -> Told:
    """Where the transcript tells when you interrupted, what you changed after that is yours."""
    p.a.shell()
    p.tool.write("x")
    p.tool.bring("came")
    interrupted = p.pause()
    p.you.save("y")
    p.you.write("new")
    p.you.chmod("z")
    p.you.bring("brought")
    p.you.bring_folder("folder", "one", "deep/two")
    p.a.prompt(interrupted_at=interrupted)
    told = dict.fromkeys(("y", "new", "z", "brought", "folder"), "you")
    told |= dict.fromkeys(("folder/one", "folder/deep", "folder/deep/two"), "you")
    return told | {"x": "a1 shell", "came": "a1 shell"}


@story
def you_move_things_after_an_interrupt(p: Play) -> Told:
    """A file or folder that you move after the interrupt is yours at both ends."""
    p.a.shell()
    p.tool.write("x")
    interrupted = p.pause()
    p.you.move("y", "renamed")
    p.you.move("dir", "moved")
    p.a.prompt(interrupted_at=interrupted)
    gone = ("y", "dir", "dir/in", "dir/deep", "dir/deep/low")
    come = ("renamed", "moved", "moved/in", "moved/deep", "moved/deep/low")
    return dict.fromkeys((*gone, *come), "you") | {"x": "a1 shell"}


@story
def the_agent_moves_things_before_an_interrupt(p: Play) -> Told:
    """A file or folder that a shell moved before the interrupt is the shell's at both ends."""
    p.a.shell()
    p.tool.move("y", "renamed")
    p.tool.move("dir", "moved")
    interrupted = p.pause()
    p.you.write("x")
    p.a.prompt(interrupted_at=interrupted)
    gone = ("y", "dir", "dir/in", "dir/deep", "dir/deep/low")
    come = ("renamed", "moved", "moved/in", "moved/deep", "moved/deep/low")
    return dict.fromkeys((*gone, *come), "a1 shell") | {"x": "you"}


@story
def a_deletion_after_an_interrupt(p: Play) -> Told:
    """No stamp tells when a file was deleted: it counts as the shell's, and can come back."""
    p.a.shell()
    p.tool.write("x")
    interrupted = p.pause()
    p.you.remove("y")
    p.a.prompt(interrupted_at=interrupted)
    return {"x": "a1 shell", "y": "a1 shell"}


@story
def an_interrupted_edit(p: Play) -> Told:
    """Of a file that an interrupted edit tool names, only what came before the mark is its own."""
    p.a.edit("x", "y")
    p.tool.write("x")
    interrupted = p.pause()
    p.you.write("y")
    p.a.prompt(interrupted_at=interrupted)
    return {"x": "a1 named", "y": "you"}


@story
def somebody_looked_after_the_interrupt(p: Play) -> Told:
    """What you do after an interrupt is yours, deletions too, if somebody looked in between."""
    p.a.shell()
    p.tool.write("x")
    interrupted = p.pause()
    with p.b.edit("dir/in"):
        p.tool.write("dir/in")
    p.pause()
    p.you.remove("y")
    p.you.write("z")
    p.a.prompt(interrupted_at=interrupted)
    return {"x": "a1 shell", "dir/in": "b1 named", "y": "you", "z": "you"}


@story
def a_turn_that_ended_a_while_ago(p: Play) -> Told:
    """A stop that is reported late closes the windows when it happened."""
    p.a.shell()
    p.tool.write("x")
    stopped = p.pause()
    p.you.write("y")
    p.a.stop("interrupted", at=stopped)
    return {"x": "a1 shell", "y": "you"}


@story
def the_end_of_a_session(p: Play) -> Told:
    """Nothing of a session outlives it: neither steps without end nor what runs beside them."""
    p.a.shell().detach()
    p.a.shell()
    p.tool.write("x")
    p.a.session.end()
    p.you.write("y")
    return {"x": "a2 shell", "y": "you"}


@story
def a_background_task_outlives_its_turn(p: Play) -> Told:
    """What a detached shell does after its turn has ended is its own, until it ends."""
    task = p.a.shell()
    p.tool.write("x")
    task.detach()
    p.a.stop()
    p.tool.write("y")
    task.end()
    p.you.write("z")
    return {"x": "a1 shell", "y": "a1 shell", "z": "you"}


@story
def a_background_task_in_the_next_turn(p: Play) -> Told:
    """Beside steps of the next turn a background task owns what none of them claims."""
    task = p.a.shell()
    task.detach()
    p.a.stop()
    p.a.prompt()
    with p.a.edit("x"):
        p.tool.write("x", "y")
    with p.a.shell():
        p.tool.write("z")
    p.tool.write("dir/in")
    task.end()
    return {"x": "a2 named", "y": "a1 shell", "z": "a3 shell", "dir/in": "a1 shell"}


@story
def a_background_task_beside_another_session(p: Play) -> Told:
    """A background task shares with another session's shell, and not with its edit tool."""
    task = p.a.shell()
    task.detach()
    p.a.stop()
    with p.b.shell():
        p.tool.write("x")
    with p.b.edit("y"):
        p.tool.write("y", "z")
    task.end()
    return {"x": "shared a b", "y": "b2 named", "z": "a1 shell"}


@story
def an_interrupt_does_not_stop_the_background(p: Play) -> Told:
    """What runs in the background goes on after an interrupt, and owns what it does."""
    task = p.a.shell()
    task.detach()
    interrupted = p.pause()
    p.tool.write("x")
    p.a.prompt(interrupted_at=interrupted)
    p.tool.write("y")
    task.end()
    p.you.write("z")
    return {"x": "a1 shell", "y": "a1 shell", "z": "you"}


@story
def a_late_step_without_end(p: Play) -> Told:
    """A step that began after its turn had ended, and never ends, closes at the next prompt."""
    p.a.prompt()
    p.a.stop()
    p.a.shell()
    p.tool.write("x")
    p.a.prompt()
    p.you.write("y")
    return {"x": "a1 shell", "y": "you"}


@story
def killed_in_an_edit(p: Play) -> Told:
    """When an agent is killed while it edits, what it names may be its own, all else is yours."""
    with killed(p, "Edit", {"file_path": "x"}, "x"):
        pass
    p.you.write("y")
    p.look()
    p.you.write("x")
    return {"x": "k1 perhaps, you", "y": "you"}


@story
def killed_in_a_shell(p: Play) -> Told:
    """A killed agent's shell may have done all that happened until the next look, no more."""
    with killed(p, "Bash", {"command": "make"}, "x"):
        pass
    with p.b.edit("y"):
        p.tool.write("y")
    p.you.write("x", "z")
    return {"x": "k1 perhaps, you", "y": "b1 named", "z": "you"}


@story
def killed_beside_another_session(p: Play) -> Told:
    """A killed agent shares what happened while it lived, and nothing after somebody looked."""
    with p.b.shell():
        with killed(p, "Bash", {"command": "make"}, "x"):
            p.look()
        p.tool.write("y")
        p.look()
        p.tool.write("z")
    return {"x": "shared b k", "y": "shared b k", "z": "b1 shell"}


@contextmanager
def killed(p: Play, tool: str, given: dict[str, str], path: str) -> Iterator[None]:
    """Let an agent in a process of its own write a file in a step; then kill -9."""
    script = (
        "import sys, takeback\n"
        "tree, home, tool, key, value, path = sys.argv[1:]\n"
        "session = takeback.open(tree, home=home).session('agent-k')\n"
        "turn = session.turn('do it', whole=False)\n"
        "step = turn.step(tool, {key: value})\n"
        "open(tree + '/' + path, 'w').write('by the killed one')\n"
        "print(session.id, turn.id, step.id, flush=True)\n"
        "sys.stdin.read()\n"
    )
    arguments = [str(p.tree), str(p.home), tool, *next(iter(given.items())), path]
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        ids = process.stdout.readline().split()
        p.names |= zip(ids, ("k", "K1", "k1"), strict=True)
        yield
        process.kill()


@story
def a_silent_agent_is_given_up(p: Play) -> Told:
    """An agent that said nothing for an hour, and holds no process, claims nothing any more."""
    p.agent("a", held=False).shell()
    p.tool.write("x")
    p.look()
    with p.clock(2 * HOUR):
        p.look()
        p.you.write("y")
        p.you.remove("z")
        p.look()
    return {"x": "a1 shell", "y": "you", "z": "you"}


@story
def a_long_step_is_not_given_up(p: Play) -> Told:
    """A shell that takes longer than an hour, and ends, owns all that it did."""
    step = p.agent("a", held=False).shell()
    p.tool.write("x")
    with p.clock(2 * HOUR):
        p.tool.write("y")
        step.end()
    return {"x": "a1 shell", "y": "a1 shell"}


# -- turns without steps, and prompts that no human wrote ------------------------------------------


@story
def a_turn_that_reports_no_steps(p: Play) -> Told:
    """A turn without steps is a window of its own: what happens in it is said to be by turn."""
    p.a.prompt(whole=True)
    p.tool.write("x", "new/file")
    p.tool.remove("y")
    p.a.stop()
    p.you.write("z")
    return dict.fromkeys(("x", "new", "new/file", "y"), "A1 turn") | {"z": "you"}


@story
def the_first_step_ends_the_window_of_the_turn(p: Play) -> Told:
    """Once a turn reports a step, what happens beside its steps is yours."""
    p.a.prompt(whole=True)
    p.tool.write("x")
    with p.a.edit("y"):
        p.tool.write("y")
        p.you.write("z")
    p.you.write("dir/in")
    p.a.stop()
    return {"x": "A1 turn", "y": "a1 named", "z": "you", "dir/in": "you"}


@story
def two_turns_without_steps_at_once(p: Play) -> Told:
    """Two turns that report nothing share what happens in both."""
    p.a.prompt(whole=True)
    p.tool.write("x")
    p.b.prompt(whole=True)
    p.tool.write("y")
    p.a.stop()
    p.tool.write("z")
    p.b.stop()
    return {"x": "A1 turn", "y": "shared a b", "z": "B1 turn"}


@story
def a_turn_without_steps_beside_an_edit(p: Play) -> Told:
    """A path that another session's edit tool names is not shared with a turn without steps."""
    p.a.prompt(whole=True)
    with p.b.edit("x"):
        p.tool.write("x", "y")
    p.a.stop()
    return {"x": "b1 named", "y": "A1 turn"}


@story
def a_turn_without_steps_is_interrupted(p: Play) -> Told:
    """A turn that is its own window closes at the mark of the interrupt."""
    p.a.prompt(whole=True)
    p.tool.write("x")
    interrupted = p.pause()
    p.you.write("y")
    p.a.prompt(whole=True, interrupted_at=interrupted)
    p.tool.write("z")
    p.a.stop()
    return {"x": "A1 turn", "y": "you", "z": "A2 turn"}


@story
def a_prompt_that_no_human_wrote(p: Play) -> Told:
    """A notice that wakes the agent goes on with its turn; what you did meanwhile is yours."""
    p.a.prompt(whole=True)
    p.tool.write("x")
    p.a.stop()
    p.you.write("y")
    p.a.session.resume()
    p.tool.write("z")
    p.a.stop()
    p.you.write("dir/in")
    return {"x": "A1 turn", "y": "you", "z": "A1 turn", "dir/in": "you"}


@story
def a_notice_while_the_background_works(p: Play) -> Told:
    """A background task that ends with a notice, and the steps after it, own what they did."""
    task = p.a.shell()
    task.detach()
    p.a.stop()
    p.you.save("y")
    p.tool.write("x")
    p.a.session.resume()
    task.end()
    p.you.write("z")
    with p.a.edit("dir/in"):
        p.tool.write("dir/in")
    p.a.stop()
    return {"x": "a1 shell", "y": "a1 shell", "z": "you", "dir/in": "a2 named"}


# -- how often we look -----------------------------------------------------------------------------


@story
def looking_at_turns_only(p: Play) -> Told:
    """Between the looks of whole turns, stamps tell what was done in which step, and between."""
    p.agent("a", safe_points="turn").prompt()
    p.you.write("x")
    p.you.remove("dir/deep/low")
    p.pause()
    with p.a.edit("y"):
        p.tool.write("y")
    p.pause()
    p.you.write("z")
    p.pause()
    with p.a.shell():
        p.tool.write("dir/in")
        p.tool.unpack("old")
    p.pause()
    p.you.unpack("older")
    p.a.stop()
    told = dict.fromkeys(("x", "z", "older", "dir/deep/low"), "you")
    return told | {"y": "a1 named", "dir/in": "a2 shell", "old": "a2 shell"}


@story
def the_last_to_write_between_two_looks(p: Play) -> Told:
    """Of several who changed a file between two looks, the last one counts."""
    p.agent("a", safe_points="turn").prompt()
    with p.a.edit("x", "y"):
        p.tool.write("x", "y")
    p.pause()
    p.you.write("x")
    p.pause()
    with p.a.shell():
        p.tool.write("y")
    p.a.stop()
    return {"x": "you", "y": "a2 shell"}


@story
def permissions_between_two_looks(p: Play) -> Told:
    """Permissions that you change after a step are yours, also of a folder it worked in."""
    p.agent("a", safe_points="turn").prompt()
    with p.a.shell():
        p.tool.write("dir/new")
        p.tool.chmod("x")
    p.pause()
    p.you.chmod("y")
    p.you.chmod("dir")
    p.a.stop()
    return {"dir/new": "a1 shell", "x": "a1 shell", "y": "you", "dir": "you"}


@story
def two_sessions_that_look_at_turns_only(p: Play) -> Told:
    """Shells of two sessions that ran one after the other share nothing, as the stamps tell."""
    p.agent("a", safe_points="turn").prompt()
    p.agent("b", safe_points="turn").prompt()
    with p.a.shell():
        p.tool.write("x")
    p.pause()
    with p.b.shell():
        p.tool.write("y")
    p.pause()
    with p.a.shell(), p.b.shell():
        p.tool.write("z")
    p.pause()
    p.you.write("dir/in")
    p.a.stop()
    p.b.stop()
    return {"x": "a1 shell", "y": "b1 shell", "z": "shared a b", "dir/in": "you"}


@story
def looking_at_every_call(p: Play) -> Told:
    """With a look around every call, also those that only look split what you did."""
    p.agent("a", safe_points="call").prompt()
    p.you.write("x")
    with p.a.read("x"):
        p.you.write("x")
    with p.a.edit("x"):
        p.tool.write("x")
    return {"x": "you, you, a2 named"}


# -- clocks and threads ---------------------------------------------------------------------------


@story
def the_clock_jumps_between_steps(p: Play) -> Told:
    """The order of events, not the clock, tells whose window it was when the clock jumps."""
    with p.a.shell():
        p.tool.write("x")
    for jump in (YEAR, -YEAR):
        with p.clock(jump):
            p.you.write("y")
            with p.a.shell():
                p.tool.write("x")
            p.you.write("y")
            p.look()
        p.you.write("z")
        p.look()
    told = {"x": "a1 shell, a2 shell, a3 shell", "z": "you, you"}
    return told | {"y": "you, you, you, you"}


@story
def the_clock_jumps_inside_steps(p: Play) -> Told:
    """A clock that jumps while tools run takes nothing from them and gives them nothing."""
    for jump in (YEAR, -YEAR):
        with p.clock(0) as push, p.a.edit("x"):
            push(jump)
            p.tool.write("x")
            p.you.write("z")
        with p.clock(0) as push, p.a.shell():
            p.tool.write("y")
            push(jump)
        p.you.write("dir/in")
        p.look()
    told = {"x": "a1 named, a3 named", "y": "a2 shell, a4 shell"}
    return told | {"z": "you, you", "dir/in": "you, you"}


@story
def the_clock_jumps_while_two_sessions_work(p: Play) -> Told:
    """Jumps of the clock make nothing shared that was not, and order what happened as it was."""
    with p.clock(0) as push:
        one = p.a.shell()
        p.tool.write("x")
        push(-YEAR)
        two = p.b.shell()
        p.tool.write("y")
        push(2 * YEAR)
        one.end()
        p.tool.write("z")
        push(-YEAR)
        two.end()
        p.you.write("dir/in")
        p.look()
    return {"x": "a1 shell", "y": "shared a b", "z": "b1 shell", "dir/in": "you"}


@story
def agents_in_threads(p: Play) -> Told:
    """Agents in threads of one process, each with its edit tool, own what they name."""
    agents = [p.agent(letter) for letter in "abcd"]

    def work(letter: str) -> None:
        for number in range(3):
            path = f"{letter}-{number}"
            with p.agent(letter).edit(path):
                p.tool.write(path)

    threads = [threading.Thread(target=work, args=[agent.letter]) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {f"{a}-{number}": f"{a}{number + 1} named" for a in "abcd" for number in range(3)}
