// What the page trusts, and nothing that the shuffler could change: pin your own analyst's key here.
export const question = "Do you have a pet?";
export const task = "/tasks/pets";
export const signer = "0000000000000000000000000000000000000000000000000000000000000000"; // printed by `shuffledp task keys --key`
export const maxEpsilon0 = 3;
