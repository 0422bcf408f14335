"""What other programs may import: parts of reflectd that work without its daemon (docs/api.md)."""
