"""Agents that stall or repeat themselves: how that is noticed, the question to a fast model, and what
follows. Pure.
"""
