"""What tests share: simulated hosts, builders and readers, by host, models and machine."""
