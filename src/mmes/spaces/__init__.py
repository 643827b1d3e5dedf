"""Where a search takes place: start point and scale, bounds, boxes, manifolds."""
