"""The kinds of trouble that `tools/attack.py` makes."""
