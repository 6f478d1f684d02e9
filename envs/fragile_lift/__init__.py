"""fragile_lift: lift an object whose weight and friction no pixel shows, without dropping or crushing it."""
