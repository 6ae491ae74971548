"""Charts and cards, for values of any class: this package knows no other class of the library."""
