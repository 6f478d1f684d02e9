"""occluded_peg: insert a square peg that sits crooked under a hood; where it sits can only be felt."""
