package config

import "strings"

// meant ends a sentence about a name that nobody knows: with the one that was
// probably meant, or with all there are.
func meant(name string, known []string) string {
	if nearest := Nearest(name, known); nearest != "" {
		return ": did you mean " + nearest + "?"
	}
	return ": known are " + strings.Join(known, ", ")
}

// Nearest returns the known name that is most like another, empty if none is.
func Nearest(name string, known []string) string {
	best, least := "", min(len(plain(name))/3+1, 5)
	for _, candidate := range known {
		if d := distance(plain(name), plain(candidate)); d <= least && (best == "" || d < least) {
			best, least = candidate, d
		}
	}
	return best
}

// plain forgets what all variables begin with, and what people mix up most:
// capitals, and the sign between words.
func plain(s string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s, EnvPrefix)), "_", "-")
}

// distance is how many letters must be put in, taken out, changed or swapped with
// their neighbour to get from one word to the other.
func distance(a, b string) int {
	const longest = 64 // no name of ours is; the work must not grow with the input
	if len(a) > longest || len(b) > longest {
		return longest
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			rows[i][j] = step(rows, a, b, i, j)
		}
	}
	return rows[len(a)][len(b)]
}

func step(rows [][]int, a, b string, i, j int) int {
	change := rows[i-1][j-1]
	if a[i-1] != b[j-1] {
		change++
	}
	d := min(rows[i-1][j]+1, rows[i][j-1]+1, change)
	if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
		d = min(d, rows[i-2][j-2]+1)
	}
	return d
}
