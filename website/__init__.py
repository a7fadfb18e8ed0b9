"""How the book becomes a site: what installs, builds, previews, prints and vendors."""
