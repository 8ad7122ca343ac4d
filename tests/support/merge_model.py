"""What is left of a text if some of its edits had never been: lines with an identity.

    Text        one file through all its names: who made it, what it was called, who deleted it
    └── Line    one line: who put it there, and what became of it, edit by edit

Nothing is merged here. Each line remembers every edit that was made to it, and what is shown are
the edits that count. An edit is dropped when its turn is taken back, and counts again when it is
put back. Where the edits that count make no sense without a dropped one (you changed a line that an
undone turn had written), the model says `Unclear`: only a conflict is right then.
"""

from collections.abc import Collection, Iterator

Files = dict[str, list[str]]
"""The lines of each file."""


class Unclear(Exception):
    """Somebody has to decide."""


class Edit:
    """One edit, by a turn or, without one, by you."""

    def __init__(self, number: int, turn: str) -> None:
        self.number = number
        self.turn = turn


class Line:
    """A line: `states` are its texts, None where it was deleted, each with its edit."""

    def __init__(self, made: Edit, text: str) -> None:
        self.made = made
        self.text = text
        self.states: list[tuple[Edit, str | None]] = []

    def shown(self, dropped: Collection[Edit]) -> str | None:
        """What it says without the dropped edits, None if it is not there."""
        counting = [text for edit, text in self.states if edit not in dropped]
        text = counting[-1] if counting else self.text
        if self.made not in dropped:
            return text
        if counting and text is not None:
            raise Unclear
        return None


class Text:
    """A file, whatever it is called."""

    def __init__(self, made: Edit, name: str) -> None:
        self.made = made
        self.names: list[tuple[Edit, str]] = [(made, name)]
        self.deleted: list[Edit] = []
        self.lines: list[Line] = []

    def name(self, dropped: Collection[Edit]) -> str:
        """What it is called without the dropped edits."""
        return [name for edit, name in self.names if edit is self.made or edit not in dropped][-1]

    def is_there(self, dropped: Collection[Edit]) -> bool:
        """Whether it is there without the dropped edits."""
        return self.made not in dropped and not any(e not in dropped for e in self.deleted)

    def shown(self, dropped: Collection[Edit]) -> list[str]:
        """Its lines without the dropped edits."""
        return [text for line in self.lines if (text := line.shown(dropped)) is not None]

    def edits(self) -> Iterator[Edit]:
        """All that was done to it, in no order."""
        yield from (edit for edit, _ in self.names)
        yield from self.deleted
        for line in self.lines:
            yield line.made
            yield from (edit for edit, _ in line.states)


class Model:
    """All texts, and which edits count."""

    def __init__(self) -> None:
        self.texts: list[Text] = []
        self.dropped: set[Edit] = set()
        self._edits: list[Edit] = []

    # -- edits -----------------------------------------------------------------------------

    def edit(self, turn: str) -> Edit:
        """Somebody begins to edit."""
        self._edits.append(Edit(len(self._edits), turn))
        return self._edits[-1]

    def of(self, turns: Collection[str]) -> set[Edit]:
        """The edits of some turns."""
        return {edit for edit in self._edits if edit.turn in turns}

    def create(self, by: Edit, name: str, lines: list[str]) -> None:
        """Make a file."""
        text = Text(by, name)
        text.lines = [Line(by, line) for line in lines]
        self.texts.append(text)

    def delete(self, by: Edit, name: str) -> None:
        """Delete a file."""
        self.called(name).deleted.append(by)

    def rename(self, by: Edit, name: str, to: str) -> None:
        """Rename a file."""
        self.called(name).names.append((by, to))

    def insert(self, by: Edit, name: str, place: int, text: str) -> None:
        """Put a line before the one that is shown at a place, or after the last one."""
        found, visible = self.called(name), self._visible(name)
        at = found.lines.index(visible[place]) if place < len(visible) else len(found.lines)
        found.lines.insert(at, Line(by, text))

    def replace(self, by: Edit, name: str, place: int, text: str | None) -> None:
        """Change the line that is shown at a place, or with None delete it."""
        self._visible(name)[place].states.append((by, text))

    # -- what is there ---------------------------------------------------------------------

    def called(self, name: str) -> Text:
        """The file that has a name now."""
        return next(
            text
            for text in self.texts
            if text.is_there(self.dropped) and text.name(self.dropped) == name
        )

    def _visible(self, name: str) -> list[Line]:
        return [x for x in self.called(name).lines if x.shown(self.dropped) is not None]

    def files(self) -> Files:
        """What is there."""
        return self.without(self.dropped)

    def is_elsewhere(self, turn: str) -> bool:
        """Whether a turn worked on a name that another turn had given, which is undone.

        Then nobody finds the file to put it back, and that is said.
        """
        return any(
            named in self.dropped and named.turn != turn
            for text in self.texts
            for edit in text.edits()
            for named in [each for each, _ in text.names if each.number < edit.number][-1:]
            if edit.turn == turn
        )

    def orphans(self, dropped: Collection[Edit]) -> dict[str, Text]:
        """Files that would go although they are not as they were left, by their old and new names.

        An edit counts that was made since; or, if a deletion is put back, one from before it does
        not. What was made and deleted by what is taken back comes back first.
        """
        found: dict[str, Text] = {}
        for text in self.texts:
            comes_back = any(deletion in dropped for deletion in text.deleted)
            was_there = text.is_there(self.dropped) or comes_back
            if was_there and not text.is_there(dropped):
                gone = text.made if text.made in dropped else text.deleted[-1]
                since = [e for e in text.edits() if e.number > gone.number and e not in dropped]
                before = [e for e in text.edits() if e.number < gone.number and e in dropped]
                if since or (before and gone is not text.made):
                    names = (text.name(self.dropped), text.name(dropped))
                    found |= dict.fromkeys(names, text)
        return found

    def overruled(self, dropped: Collection[Edit]) -> set[Edit]:
        """What cannot be dropped, for others went on from there: it stays, and that is said.

        Somebody renamed once more what was renamed, or deleted the line or the file. If that is
        taken back later, what was deleted is there again as it was.
        """
        found = set()
        for text in self.texts:
            is_deleted = any(edit not in dropped for edit in text.deleted)
            if is_deleted and not text.is_there(self.dropped):
                found |= set(text.edits())
            for line in text.lines:
                if [state for edit, state in line.states if edit not in dropped][-1:] == [None]:
                    found |= {line.made, *(edit for edit, _ in line.states)}
            counting = [number for number, (e, _) in enumerate(text.names) if e not in dropped]
            names = text.names[1 : max(counting, default=0)]
            found |= {edit for edit, _ in names}
        return found - self.dropped

    def own_lines(self, text_of: Text, dropped: Collection[Edit]) -> list[str]:
        """The lines of a file, as it is now, which edits wrote that are not dropped."""
        found = []
        for line in text_of.lines:
            if line.shown(self.dropped) is None:
                continue
            states = [state for state in line.states if state[0] not in self.dropped]
            edit, text = [(line.made, line.text), *states][-1]
            if edit not in dropped and text is not None:
                found.append(text)
        return found

    def without(self, dropped: Collection[Edit]) -> Files:
        """What is there without these edits, or `Unclear`."""
        found: Files = {}
        for text in self.texts:
            if not text.is_there(dropped):
                continue
            name = text.name(dropped)
            if name in found:
                raise Unclear  # two files for one name
            found[name] = text.shown(dropped)
        return found
