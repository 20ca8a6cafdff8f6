"""Where the boundary is held: in-process seams, the gateway, and the shim for launched Python agents."""
