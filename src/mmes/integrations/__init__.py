"""Adapters to other libraries, one module each; importing one imports only its library.

`mmes.integrations.scipy`, `torch`, `jax`, `optuna`, `coco`, and `progress` (tqdm and loggers).
Nothing else in the library imports from here.
"""
