"""Problems, their cases, and the exercises made from them."""
