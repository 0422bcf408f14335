"""Files that other programs or people read too. Corrupt ones are kept, never overwritten."""
