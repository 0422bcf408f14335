"""``reflectd memory``: one module for each group of its actions."""
