"""How far this run is: what tqdm, rich, Lightning and torch's optimizers know, only read."""
