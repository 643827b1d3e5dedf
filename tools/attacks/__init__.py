"""The kinds of attacks of `tools/attack.py`."""
