"""The verb ``playbook``: what agents learned about a project, shown and changed."""
