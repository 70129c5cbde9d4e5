"""Agents, git and pytest."""
