"""Hosts: native payloads of coding agents, parsed into core types. One module per host; nothing else."""
