"""Starts the server, with whichever major version of the official SDK is installed."""

from takeback.errors import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from takeback.mcp.door import Door


INSTALL = "pip install 'takeback[mcp]'"


def server(door: "Door") -> "Callable[[], None]":
    """What runs a server of the SDK on stdin and stdout, which answers through a door."""
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise RefusedError(
            "the MCP server needs the package `mcp`, which is not installed",
            hint=f"`{INSTALL}` installs it",
        )
    if find_spec("mcp.server.mcpserver") is not None:
        from takeback.mcp import sdk2

        return lambda: sdk2.Server(door).run("stdio")
    from takeback.mcp import sdk1

    return lambda: sdk1.Server(door).run("stdio")
