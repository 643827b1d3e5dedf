import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # plain_rivals.py, the second implementations
