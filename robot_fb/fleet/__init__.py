"""Many robots and one hub: requests, leases, commands, episodes and policies over encrypted sockets."""
