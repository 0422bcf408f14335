"""SQLite: one file, one writer thread, named migrations."""
