"""How good the judge is: labelled cases replayed, outside the tests because a model's answers cost money."""
