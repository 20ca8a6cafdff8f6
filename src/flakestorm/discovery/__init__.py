"""What is there already: the agent in a folder or on a port, found without importing anybody's code."""
