"""What an examination of a store found: part by part, each thing with what to do about it."""

ERROR, WARNING, NOTE = "error", "warning", "note"
"""Something is lost, broken or unsafe; works, but look at it; good to know."""


class Finding:
    """One thing that is not as it should be. `can_be_repaired` by us, without any loss."""

    __slots__ = ("advice", "can_be_repaired", "severity", "what")

    def __init__(
        self, severity: str, what: str, advice: str = "", *, can_be_repaired: bool = False
    ) -> None:
        self.severity = severity
        self.what = what
        self.advice = advice
        self.can_be_repaired = can_be_repaired


class Part:
    """One part of the examination: `said` is what is to be said of it if all is well."""

    __slots__ = ("findings", "name", "said")

    def __init__(self, name: str, said: str, findings: "list[Finding] | None" = None) -> None:
        self.name = name
        self.said = said
        self.findings = findings or []


class Examined:
    """All parts, what was repaired before, and what the log said."""

    __slots__ = ("events", "parts", "problems", "repaired")

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.repaired: list[str] = []
        self.problems: tuple[str, ...] = ()
        self.events = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is broken."""
        return not any(f.severity == ERROR for part in self.parts for f in part.findings)
