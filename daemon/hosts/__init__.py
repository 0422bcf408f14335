"""What each coding agent sends, parsed into core types: one package a host, which knows no other host."""
