"""Programs that stand in for what cannot run here, with their documented output and their faults.

All state is in one JSON file, so that a test, an engine's socket and the programs see the same.
"""
