"""The laboratory: competitors, experiments, reports, clustering, COCO."""
