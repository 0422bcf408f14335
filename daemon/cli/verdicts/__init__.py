"""Verbs about verdicts: why, watch, cost, judge, dispute, case."""
