"""What the machine saw of a task, as rows a judge can cite. Pure; reads a transcript and nothing else."""
