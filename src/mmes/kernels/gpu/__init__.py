"""Vectors on a device: torch everywhere, Triton on a GPU."""
