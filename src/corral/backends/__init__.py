"""One file per place that resources live in."""
