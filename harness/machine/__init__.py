"""A throw-away machine: folders, processes, terminals, waiting, the daemon."""
