"""The questions about what the ledger holds beside files, grouped by kind."""

from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from takeback.ledger.beyond.effects import Effects
    from takeback.ledger.beyond.lessons import Lessons
    from takeback.ledger.beyond.memory import Memory
    from takeback.ledger.beyond.mutations import Mutations
    from takeback.ledger.beyond.participants import Tokens
    from takeback.ledger.beyond.rescues import Rescues
    from takeback.ledger.database import Reader


class Beyond:
    """A ledger, as far as it is about something beside files."""

    _reader: "Reader"

    @cached_property
    def lessons(self) -> "Lessons":
        from takeback.ledger.beyond.lessons import Lessons

        return Lessons(self._reader)

    @cached_property
    def participants(self) -> "Tokens":
        from takeback.ledger.beyond.participants import Tokens

        return Tokens(self._reader)

    @cached_property
    def memory(self) -> "Memory":
        from takeback.ledger.beyond.memory import Memory

        return Memory(self._reader)

    @cached_property
    def mutations(self) -> "Mutations":
        from takeback.ledger.beyond.mutations import Mutations

        return Mutations(self._reader)

    @cached_property
    def rescues(self) -> "Rescues":
        from takeback.ledger.beyond.rescues import Rescues

        return Rescues(self._reader)

    @cached_property
    def effects(self) -> "Effects":
        from takeback.ledger.beyond.effects import Effects

        return Effects(self._reader)
