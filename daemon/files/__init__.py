"""Files that others read: written whole, edited in place, never overwritten when corrupt."""
