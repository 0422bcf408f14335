"""Rules and preferences: signals in a person's words, patterns, the journal, the files."""
