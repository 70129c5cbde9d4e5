"""Container engines that speak the Docker API: where they are, what they hold, whose it is."""
