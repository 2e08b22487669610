"""Health of nodes by what they are launched with: registrations, and canaries of images and configurations."""
