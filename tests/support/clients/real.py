"""The clients themselves, each in a file of its own; a new one is named here and nowhere else."""

import shutil

from clients import packages
from clients.claude_code import ClaudeCode
from clients.client import Client
from clients.cline import Cline
from clients.codex import Codex
from clients.copilot import Copilot
from clients.droid import Droid
from clients.gemini_cli import GeminiCli
from clients.goose import Goose
from clients.kimi_code import KimiCode
from clients.mistral_vibe import MistralVibe
from clients.opencode import Kilo, OpenCode
from clients.pi import Pi
from clients.qwen_code import QwenCode

DEEP: tuple[type[Client], ...] = (ClaudeCode, Codex, GeminiCli, OpenCode, Copilot)
"""Those that all of `tests/clients` is about."""
OTHERS: tuple[type[Client], ...] = (QwenCode, Cline, Kilo, KimiCode, Droid, MistralVibe, Goose, Pi)
"""Those that `test_others.py` is about."""
TRIMMED: tuple[type[Client], ...] = (ClaudeCode, Codex, Copilot)
"""Those whose conversations `undo --resume` can trim."""
TOLD: tuple[type[Client], ...] = (*TRIMMED, GeminiCli, QwenCode)
"""Those whose model hears of an undo at the next prompt (`test_going_on.py`)."""
ASKING: tuple[type[Client], ...] = (ClaudeCode, Codex)
"""Those whose dialogs `test_dialogs.py` answers."""
CLIENTS = (*DEEP, *OTHERS)
BESIDE = {
    "ruflo": packages.Npm("ruflo", "3.42.5", "ruflo/bin/ruflo.js"),
    "aider": packages.PyPI("aider-chat", "0.86.2", "bin/aider"),
}
"""What people install into a client beside Takeback (`test_beside_ruflo.py`), and what has no hooks
(`test_aider.py`)."""

__all__ = [
    "ASKING", "BESIDE", "CLIENTS", "DEEP", "OTHERS", "TOLD", "TRIMMED",
    "ClaudeCode", "Client", "Cline", "Codex", "Copilot", "Droid", "GeminiCli", "Goose", "Kilo",
    "KimiCode", "MistralVibe", "OpenCode", "Pi", "QwenCode",
]  # fmt: skip


def missing() -> str:
    """Why no client can run here; empty if some can."""
    if not packages.CHOSEN:
        return "the clients are run by `./check --clients`, which installs them"
    return "" if shutil.which("git") else "git is missing"
