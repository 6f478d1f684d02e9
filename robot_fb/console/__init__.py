"""The operator's page: a fleet at a glance, one robot in the hand, in any browser and without an install."""
