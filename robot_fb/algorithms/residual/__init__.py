"""Tactile residual reinforcement learning: a frozen base, and a correction that learns by touch (OmniTacTune)."""
