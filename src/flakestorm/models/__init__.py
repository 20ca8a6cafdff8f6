"""The configured model, asked by flakestorm itself: to judge, never as part of the agent."""
