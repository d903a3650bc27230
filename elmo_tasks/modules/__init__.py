"""Layers that any network could use, and what all networks share: dropout, devices, the conditional random field."""
