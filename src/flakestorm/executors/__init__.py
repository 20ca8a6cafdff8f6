"""How runs are carried out side by side. They fulfil `engine.ports.Executor`."""
