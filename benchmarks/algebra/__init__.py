"""CEL: templates of subscriptions, one query each, and double tops in prices."""
