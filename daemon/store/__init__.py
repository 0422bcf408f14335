"""SQLite: one file, one writer thread, named migrations (DESIGN §3, §9)."""
