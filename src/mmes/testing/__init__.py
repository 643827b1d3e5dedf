"""Public conformance suites for strategies and evaluators, built-in and custom ones.

`strategies` and `evaluators` contain the checks, `hostile` objectives that misbehave. None of it
needs a test framework.
"""
