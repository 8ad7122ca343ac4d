"""The real clients, offline: a scripted model, the clients themselves, and what they must show."""
