"""Parse, call one service, render, exit."""
