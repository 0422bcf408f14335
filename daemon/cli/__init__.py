"""The command line: one module per verb, imported only when that verb runs (start-up time is a feature)."""
