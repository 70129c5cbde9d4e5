"""Pure rules: naming, ports, ownership, teardown order. Values in, values out."""
