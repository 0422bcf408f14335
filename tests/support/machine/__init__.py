"""The machine under test: its clock, its tools, what the daemon wrote down."""
