"""The imperative shell: events in, orders out (DESIGN §3). The only layer that waits, calls and commits.

intake      events → state, stored before they are answered; starts and cancels evaluations
evaluation  one turn: read, guard, judge, decide, commit, file, send
drive       a flow against a provider: deadline, redaction, ledger
delivery    the outbox: sent once, looked up when in doubt
instances   the hosts that said hello, their order streams and the calls they answer
gate        `run` mode: what should follow a text, asked before the host exits
stream      what happens, as it happens, for those who watch
explain     why a session stands where it stands
filing      verdict files: one session's in order, judged turns first
"""
