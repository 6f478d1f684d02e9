"""The common log: one MCAP file an episode, a store of them, feedback beside it, and arrays for training."""
