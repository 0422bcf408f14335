"""The pure parts of the memory of lessons."""
