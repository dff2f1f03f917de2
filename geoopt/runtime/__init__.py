"""Running generated code: compile and cache it, keep its memory, launch it."""
