"""What live figures compute with, beside their scripts, and the module that makes it."""
