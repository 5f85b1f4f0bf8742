package ruledoc

import (
	"fmt"
	"strings"
)

// unknown tells that a name is not among those that are known, and which one was probably meant.
func unknown(what, name string, known []string) error {
	if best := nearest(name, known); best != "" {
		return fmt.Errorf("unknown %s %q: did you mean %q?", what, shorten(name), best)
	}
	return fmt.Errorf("unknown %s %q: want one of %s", what, shorten(name), strings.Join(known, ", "))
}

// nearest returns the known name that differs from name in the fewest letters, "" when none is near.
func nearest(name string, known []string) string {
	const longest = 40 // no name of ours is longer; nothing is gained from comparing with megabytes
	if len(name) > longest {
		return ""
	}
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	best, least := "", 1+max(1, len(name)/3)
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their neighbour to make b of a.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			replace := row[j]
			if a[i] != b[j] {
				replace++
			}
			next[j+1] = min(replace, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
