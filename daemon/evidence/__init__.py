"""Facts of a task from its transcript, as rows that a judge can cite. Pure."""
