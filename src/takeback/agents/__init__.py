"""One file per agent, and what agents are told."""
