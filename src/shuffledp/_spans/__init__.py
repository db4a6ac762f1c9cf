"""Few rows of which the reports of all inputs are mixtures, for the crowd theorem (T16, section 9).

span             the value, and the laws of X that follow from it
control_points   guesses: types of reports, and rows
of_noise         noise on the line: what rows miss is proved for a continuum of inputs
of_grid          noise on a fine grid: likewise, for all inputs
"""
