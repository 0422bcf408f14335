"""Model servers on loopback that say what was scripted, and the scripts."""
