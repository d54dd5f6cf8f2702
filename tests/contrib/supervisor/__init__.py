"""The supervisor alone, with processes that do next to nothing."""
