"""The engine: who runs, who waits, and the model itself. Knows nothing of pages, HTTP or databases."""
