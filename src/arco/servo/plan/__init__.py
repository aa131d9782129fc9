"""From definitions, recorded facts and a request to a plan: pure, deterministic, without Spark."""
