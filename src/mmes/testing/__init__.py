"""Public conformance suites: what every strategy and evaluator must do, ours and yours."""
