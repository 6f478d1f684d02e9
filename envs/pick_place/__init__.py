"""pick_place: put the block onto the plate of its colour. Nothing is hidden; sight alone can do it."""
