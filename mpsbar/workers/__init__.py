"""The client side of the agent's protocol: polls workers, sends requests, connects environments."""
