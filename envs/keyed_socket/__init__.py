"""keyed_socket: slide a plug into the open side of a socket whose open side no pixel shows."""
