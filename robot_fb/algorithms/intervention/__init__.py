"""Learning from corrections: what people did when they took over, and what the robot did by itself."""
