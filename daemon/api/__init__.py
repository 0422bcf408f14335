"""The public library: parts of reflectd that work without its daemon (docs/api.md)."""
