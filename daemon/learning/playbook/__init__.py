"""The playbook: what agents learned about a project, and how it is found, counted and dropped. Pure."""
