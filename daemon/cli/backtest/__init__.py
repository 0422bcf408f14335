"""The verb that judges past sessions again, and shows what would have been sent."""
