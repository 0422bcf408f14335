"""The imperative shell: events in, orders out. The only layer that waits, calls and commits.

design/architecture.md lists its modules.
"""
