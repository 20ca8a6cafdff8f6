"""The configured model, asked by flakestorm itself: to judge and to write mutations, never as part of the agent."""
