"""What a person keeps correcting: signals in their words, patterns, the journal, rules."""
