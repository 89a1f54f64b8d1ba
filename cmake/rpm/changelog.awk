# SPDX-License-Identifier: MIT
# Debian's changelog -> that of an .rpm: each entry's head has the date, which Debian has at its end.
/^[a-z]/ { version = substr($2, 2, length($2) - 2); text = "" }
/^  \* / { text = text "- " substr($0, 5) "\n" }
/^    / { text = text "  " substr($0, 5) "\n" }
/^ -- / {
	split($0, half, ">  ")
	split(half[2], date, /,? /)
	sub(/^ -- /, "", half[1])
	printf "* %s %s %s %s %s> - %s-1\n%s\n", date[1], date[3], date[2], date[4], half[1], version, text
}
