"""Public conformance suites: what every strategy and evaluator must do, ours and yours.

`strategies` and `evaluators` hold the checks, `hostile` objectives that misbehave. `laws` says what
holds of every run, and `features` makes runs in which features meet. None of it needs a test
framework.
"""
