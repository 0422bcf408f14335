"""Pictures for README: recordings of the real hosts' terminals, drawn as SVG (``make pictures``)."""
