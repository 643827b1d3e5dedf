"""The laboratory's commands: bench, compete, reproduce, report, problems, coco."""
