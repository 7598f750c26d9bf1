"""Pages of a class: one for each student to hand out, one of the course for those who teach it, and a leaderboard."""
