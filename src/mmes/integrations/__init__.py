"""Adapters to other people's tools, one module each; importing one imports its package alone.

`mmes.integrations.scipy`, `torch`, `jax`, `optuna`, `coco`, and `progress` (tqdm and loggers).
Nothing else in the library imports from here.
"""
