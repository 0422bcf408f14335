"""``reflectd judge``: a case, a session, or all past sessions are judged without a daemon."""
