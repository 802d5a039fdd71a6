//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.
