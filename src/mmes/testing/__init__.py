"""Public conformance suites for strategies and evaluators, built-in and custom ones.

`strategies` and `evaluators` contain the checks, `hostile` objectives that misbehave. `laws`
defines what must hold for every run, and `features` makes runs with combined features. None of it
needs a test framework.
"""
