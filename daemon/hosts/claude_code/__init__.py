"""Claude Code: its hooks become core events, its transcript files a core transcript."""
