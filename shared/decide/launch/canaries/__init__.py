"""Launches with a new image while its canary runs, and launches of EC2NodeClasses whose nodes do not register."""
