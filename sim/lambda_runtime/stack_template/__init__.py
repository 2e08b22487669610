"""The synthesized template: its resources, intrinsic functions and parts."""
