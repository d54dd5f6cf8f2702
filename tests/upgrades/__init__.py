"""What a version left in Redis is worked by those that follow."""
