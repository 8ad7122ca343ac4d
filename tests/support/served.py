"""What the tests of `takeback mcp` share: a server in this process, and the SDK's own client."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp
from mcp.client import ClientRequestContext
from mcp.types import ElicitRequestParams, ElicitResult, ErrorData

from agents import Agent
from takeback import environment
from takeback.cli.commands import mcp as voice
from takeback.mcp.door import Door
from takeback.mcp.sdk2 import Server

ERAS = ("legacy", "2026-07-28")
"""The two eras of the protocol: with a handshake, and a request at a time."""
Fields = dict[str, Any]


class Served:
    """A server of one folder, and a client that calls it; each call is a connection of its own."""

    def __init__(self, tree: Path, era: str) -> None:
        self.tree = tree
        self.era = era
        self.asked: list[str] = []
        """What the user was asked."""

    def door(self) -> Door:
        """The door that answers, without any protocol."""
        place = os.fsencode(self.tree)
        return Door(place, environment.default_home(), environment.user_home(), voice)

    def call(self, tool: str, answer: "ElicitResult | None" = None, **given: Any) -> Fields:  # noqa: ANN401
        """What a call that works is answered with."""
        fields, is_error = self.raw(tool, given, answer)
        assert not is_error, fields
        return fields

    def error(self, tool: str, **given: Any) -> str:  # noqa: ANN401
        """What is said of a call that fails."""
        fields, is_error = self.raw(tool, given)
        assert is_error, fields
        return str(fields["message"])

    def raw(
        self, tool: str, given: Fields, answer: "ElicitResult | None" = None
    ) -> "tuple[Fields, bool]":
        """The fields of an answer, and whether it is an error."""

        async def asked(
            context: ClientRequestContext, params: ElicitRequestParams
        ) -> "ElicitResult | ErrorData":
            del context
            self.asked.append(params.message)
            assert answer is not None
            return answer

        async def called() -> Any:  # noqa: ANN401
            ask = asked if answer is not None else None
            server = Server(self.door())
            async with mcp.Client(server, mode=self.era, elicitation_callback=ask) as client:
                return await client.call_tool(tool, given)

        found = asyncio.run(called())
        assert found.structured_content is not None
        return found.structured_content, bool(found.is_error)

    def by(self, agent: Agent, tool: str, **given: Any) -> Fields:  # noqa: ANN401
        """What an agent with our hooks is answered: they report the call before it is made."""
        return self.during(agent, tool, lambda: self.call(tool, **given), given)

    def asked_by(self, agent: Agent, answer: ElicitResult, **given: Any) -> Fields:  # noqa: ANN401
        """The same of a call in which the user is asked."""
        tool = "apply_asking"
        return self.during(agent, tool, lambda: self.call(tool, answer, **given), given)

    def during(self, agent: Agent, tool: str, do: "Callable[[], Fields]", given: Fields) -> Fields:
        """Do something while a call of an agent runs."""
        call = agent.begin(f"mcp__takeback__{tool}", given)
        assert not call.refused, call.refused
        try:
            return do()
        finally:
            call.over()

    def tools(self) -> "list[Any]":
        """The tools as a client sees them."""

        async def listed() -> "list[Any]":
            async with mcp.Client(Server(self.door()), mode=self.era) as client:
                return list((await client.list_tools()).tools)

        return asyncio.run(listed())


YES = ElicitResult(action="accept", content={"apply": True})
NO = ElicitResult(action="accept", content={"apply": False})
DECLINED = ElicitResult(action="decline")
