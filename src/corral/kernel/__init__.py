"""What only the operating system promises: process identity, pidfd, sockets, flock, paths."""
