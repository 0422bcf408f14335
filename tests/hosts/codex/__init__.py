"""Codex's hooks and rollouts."""
