"""What an analyst does with tallies: debias, project, give confidence intervals."""
