"""What is kept between steps: pages, queues and the state of groups; no Spark."""
