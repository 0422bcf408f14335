"""The rules that make rows: one module a rule. Each sees the facts of a task and knows no other rule.

A rule opens a row only where it proves by itself that something is unfinished. ``collect`` puts the rows
together. No rule on wording comes in without an ablation on cases its author has not seen (design/judge.md).
"""
