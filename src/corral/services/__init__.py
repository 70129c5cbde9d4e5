"""Use cases: environment, run, status, teardown, locks, sessions, doctor."""
