"""Programs of steps, their rendering to Spark SQL, the states they keep, and the refresh itself."""
