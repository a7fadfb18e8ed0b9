"""What the pages of the book share: figures, live figures, small models. No part of the library."""
