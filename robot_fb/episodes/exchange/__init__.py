"""Brings other people's recordings into a store: bags of ROS 1 and 2, and numpy archives."""
