"""Payloads of each coding agent, parsed into core types: one package a host, which knows no other host."""
