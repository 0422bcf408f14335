"""opencode: what its shim sends becomes core types, and orders become the shim's wire form."""
