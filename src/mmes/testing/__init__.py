"""What the library asks of strategies, evaluators and objectives that others write.

`hostile` holds objectives that misbehave, `evaluators` the checks that every evaluator passes. None
of it needs a test framework.
"""
