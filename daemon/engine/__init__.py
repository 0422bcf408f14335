"""The imperative shell: events in, orders out. The only layer that waits, calls and commits.

engine      the parts put together
intake      events → state, stored before they are answered; starts and cancels judgements
abandoned   sessions whose host is gone: what nobody else will end
reconnect   a host is back: what was left behind is looked after
schedule    who is judged, once, and when
round       one judgement: guard, read, guard, judge, guard, decide
messages    the host's messages, and whether sub-agents work
asking      a flow driven to its end by a model's replies
commit      state, verdict and orders in one transaction
delivery    stored orders: sent once, looked up when in doubt
filing      verdict files: a session's in order, judged turns first
lanes       blocking work on folders, so that a disk that hangs holds up only its own
timers      a session's pending actions, and watches over sessions that work
jobs        background work that survives a restart
upkeep      the engine's own jobs: closed tasks, retention
offering    what is put in front of an agent, in one budget
projects    the settings that count in each project
health      what does not work right now, by name
hosts/      the port to a coding agent, one adapter each
features/   what hangs on the engine: stuck, compaction, the gate of `run` mode
"""
