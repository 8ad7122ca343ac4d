"""`takeback usage`: what each session, agent and folder added, in numbers that add up."""

import json
import os
from pathlib import Path

import pytest

from cases import Work
from takeback.cli import app
from takeback.errors import UsageError
from takeback.model.results import Share


@pytest.fixture
def story(work: Work, monkeypatch: pytest.MonkeyPatch) -> Work:
    """You, two agents and three folders, each with an amount of its own that cannot be deflated."""
    monkeypatch.chdir(work.tree)
    work.put("base/start", os.urandom(40_000))
    work.project.checkpoint()
    for agent, folder, amount in (("claude", "src", 100_000), ("codex", "data", 60_000)):
        with work.project.session(agent, title=f"{agent} at work") as session:
            with session.turn(f"{agent} one"):
                work.put(f"{folder}/a", os.urandom(amount))
            with session.turn(f"{agent} two"):
                work.put(f"{folder}/b", os.urandom(amount))
                work.put(f"{folder}/copy", (work.tree / folder / "a").read_bytes())
    work.put("yours", os.urandom(20_000))
    work.project.checkpoint()
    return work


def by_name(shares: "tuple[Share, ...]") -> dict[str, int]:
    """The bytes of each."""
    return {share.name: share.bytes for share in shares}


def near(bytes: int, expected: int) -> bool:
    """Whether it is what was written, and little more for the description of folders."""
    return expected <= bytes < expected + 8_000


def test_each_agent_has_what_it_added(story: Work) -> None:
    """An agent's share is what it wrote, before and after packs are merged; a copy adds nothing."""
    shares = by_name(story.project.usage_by("agent"))
    assert set(shares) == {"claude", "codex", "you"}
    assert near(shares["claude"], 200_000)
    assert near(shares["codex"], 120_000)
    assert near(shares["you"], 60_000)
    story.project.gc(full=True)
    merged = by_name(story.project.usage_by("agent"))
    assert near(merged["claude"], 200_000)
    assert near(merged["codex"], 120_000)
    assert near(merged["you"], 60_000)


def test_each_session_has_its_share_and_name(story: Work) -> None:
    """Sessions are told by id, with their agents and titles."""
    shares = story.project.usage_by("session")
    named = {share.title: share for share in shares if share.agent}
    assert near(named["claude at work"].bytes, 200_000)
    assert near(named["codex at work"].bytes, 120_000)
    assert {share.name for share in shares} - {"you"} == {
        session.id for session in story.project.sessions()
    }


def test_each_folder_has_its_share(story: Work) -> None:
    """Of paths the folder at the top counts; files beside the folders are together."""
    shares = by_name(story.project.usage_by("path"))
    assert set(shares) == {".", "base", "src", "data"}
    assert near(shares["src"], 200_000)
    assert near(shares["data"], 120_000)
    assert near(shares["base"], 40_000)
    assert near(shares["."], 20_000)


@pytest.mark.parametrize("by", ["session", "agent", "path"])
@pytest.mark.parametrize("merged", [False, True])
def test_the_numbers_add_up(
    story: Work, by: str, merged: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """The parts and the rest are what the packs take on disk, also when packs were merged."""
    if merged:
        story.project.gc(full=True)
    capsys.readouterr()
    assert app.main(["usage", "--by", by, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    packs = (story.home / "projects" / story.project.id / "git/objects/pack").iterdir()
    on_disk = sum(path.stat().st_size for path in packs)
    assert sum(share["bytes"] for share in said["shares"]) + said["other"] == on_disk
    assert 0 <= said["other"] < 30_000
    assert said["total"] == said["objects"] + said["ledger"] + said["index"]
    assert [s["bytes"] for s in said["shares"]] == sorted(
        (s["bytes"] for s in said["shares"]), reverse=True
    )
    assert app.main(["usage", "--by", by]) == 0
    told = capsys.readouterr().out
    assert "other" in told


def test_what_is_kept_is_told(story: Work, capsys: pytest.CaptureFixture[str]) -> None:
    """Retention, what is pinned and the size cap belong to the answer."""
    assert app.main(["keep", "@", "-m", "mine"]) == 0
    assert app.main(["config", "retention.size_cap", "1000", "--user"]) == 0
    capsys.readouterr()
    assert app.main(["usage"]) == 0
    told = capsys.readouterr()
    for words in ("of 30 days", "200 turns", "1 state", "1.0 kB"):
        assert words in told.out
    assert "above the size cap" in told.err
    assert story.project.usage().pinned == 1


def test_shared_work_is_nobodys_own(story: Work) -> None:
    """What two sessions may have done is counted as shared."""
    one, two = story.project.session("claude"), story.project.session("codex")
    first, second = one.turn("a"), two.turn("b")
    story.put("both", os.urandom(30_000))
    second.end()
    first.end()
    shares = by_name(story.project.usage_by("agent"))
    assert near(shares["shared"], 30_000)


def test_something_else_is_refused(story: Work, tmp_path: Path) -> None:
    """There are three ways to count."""
    assert tmp_path.is_dir()
    with pytest.raises(UsageError, match="cannot group by"):
        story.project.usage_by("colour")
