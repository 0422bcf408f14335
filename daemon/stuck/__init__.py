"""Agents that stall or repeat themselves: signals, the one question to a fast model, what follows. Pure."""
