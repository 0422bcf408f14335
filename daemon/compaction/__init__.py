"""Help for an agent whose context was compacted (``design/compaction.md``). Pure."""
