"""What the tool calls did: shell commands, checks, writes, failures. Structure, no wording."""
