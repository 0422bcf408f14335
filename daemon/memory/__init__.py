"""Lessons from tasks that ended badly: drawn, ranked, and matched with what an agent does. Pure."""
