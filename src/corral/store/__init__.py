"""The registry behind its gate."""
