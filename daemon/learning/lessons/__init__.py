"""Lessons from tasks that ended badly: drawn, chosen for tasks, and forgotten. Pure."""
