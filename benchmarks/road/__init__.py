"""Linear Road: traffic as the benchmark describes it, a CQL program, and the answers by hand."""
