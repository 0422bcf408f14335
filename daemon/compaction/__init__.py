"""What an agent needs after its context was compacted (``design/compaction.md``). Pure."""
