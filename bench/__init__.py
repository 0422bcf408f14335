"""``make bench``: how fast, how small. A benchmark, never a test: prints medians and ratios only."""
