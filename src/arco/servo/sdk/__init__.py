"""What a project is written with: assets, checks, partitions, inputs. Importing it starts nothing."""
