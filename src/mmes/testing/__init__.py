"""For those who write strategies, evaluators or objectives of their own: what the library asks of them.

`hostile` holds objectives that misbehave, `evaluators` the checks that every evaluator passes. None of
it needs a test framework.
"""
