"""What corral speaks about: frozen values and enums, no I/O."""
