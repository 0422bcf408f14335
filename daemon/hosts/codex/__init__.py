"""The Codex CLI as a host: its hooks and its rollout files."""
