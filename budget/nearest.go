package budget

import (
	"cmp"
	"slices"
	"strings"
)

// nearestRunes is how much of a name is compared: longer ones are told apart by their beginning.
const nearestRunes = 128

// Nearest lists at most most of names, those first that want is most probably a mistake for: letter case first, then few letters inserted,
// deleted or replaced, and a name that holds want counts as near. Equal ones stand by name.
func Nearest(want string, names []string, most int) []string {
	return nearest(want, names, most, false)
}

// Likely is Nearest without the names that are too far from want to have been meant: one letter in three may be wrong, and one more.
func Likely(want string, names []string, most int) []string { return nearest(want, names, most, true) }

func nearest(want string, names []string, most int, likely bool) []string {
	type scored struct {
		name string
		cost int
	}
	low := folded(want)
	limit := len(low)/3 + 1
	var list []scored
	for _, n := range names {
		s := scored{n, distance(low, folded(n))}
		if len(low) >= 3 && strings.Contains(strings.ToLower(n), string(low)) {
			s.cost = min(s.cost, limit)
		}
		if !likely || s.cost <= limit {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b scored) int { return cmp.Or(a.cost-b.cost, cmp.Compare(a.name, b.name)) })
	var out []string
	for _, s := range list[:min(most, len(list))] {
		out = append(out, s.name)
	}
	return out
}

func folded(s string) []rune {
	r := []rune(strings.ToLower(s))
	return r[:min(len(r), nearestRunes)]
}

// distance counts the letters to insert, delete or replace between a and b.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			cost := diagonal
			if x != y {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
