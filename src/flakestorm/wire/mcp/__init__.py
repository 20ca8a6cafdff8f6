"""The Model Context Protocol: what its messages say."""
