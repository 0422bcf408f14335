"""A project's own check, run after the agent's last edit (design/proof.md)."""
