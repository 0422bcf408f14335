"""The memory for other tools, over the Model Context Protocol."""
