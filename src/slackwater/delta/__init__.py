"""The delta (D) and the full output (F) of every operator, as plans over old and new inputs. No Spark here."""
