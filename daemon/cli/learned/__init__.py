"""``reflectd learned``, ``playbook`` and ``memory``: one list of what was learned, shown and changed."""
