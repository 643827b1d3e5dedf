"""Public conformance suites: what every strategy and evaluator must do, ours and yours.

`strategies` and `evaluators` hold the checks, `hostile` objectives that misbehave. None of it needs
a test framework.
"""
