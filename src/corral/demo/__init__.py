"""The demonstration: a small real application, and the story that `corral demo` tells with it."""
