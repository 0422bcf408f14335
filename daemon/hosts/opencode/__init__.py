"""opencode: messages of its shim become core types, and orders become the shim's wire form."""
