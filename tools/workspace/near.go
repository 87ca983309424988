package workspace

import (
	"errors"
	"io"
	"path"
	"sort"
	"strings"
)

// nearNames is how many names of a folder are looked at for a hint.
const nearNames = 5000

// near finds the existing names that are most like the first missing part of p, as whole paths relative to the root.
func (t *Tree) near(p place) []string {
	if p.area == nil {
		return nil
	}
	parent, missing, rest := ".", p.rel, ""
	if i := strings.LastIndexByte(p.rel, '/'); i >= 0 {
		parent, missing = p.rel[:i], p.rel[i+1:]
	}
	for parent != "." {
		if info, err := p.root.Stat(parent); err == nil && info.IsDir() {
			break
		}
		rest = path.Join(missing, rest)
		missing = path.Base(parent)
		parent = path.Dir(parent)
	}
	dir, err := place{p.area, parent}.pin()
	if err != nil {
		return nil
	}
	defer dir.Close()
	self, err := dir.Open(".")
	if err != nil {
		return nil
	}
	defer self.Close()
	names, err := self.Readdirnames(nearNames)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	var found []string
	for _, n := range nearest(missing, names, 3) {
		whole := path.Join(parent, n)
		if rest != "" {
			if _, err := p.root.Stat(path.Join(whole, rest)); err == nil {
				whole = path.Join(whole, rest)
			}
		}
		if p.area == t.scratch {
			whole = path.Join(p.real, whole)
		}
		found = append(found, whole)
	}
	return found
}

// nearest picks at most max names that differ from want in case or in few letters, best first.
func nearest(want string, names []string, max int) []string {
	type scored struct {
		name string
		cost int
	}
	limit := len([]rune(want))/3 + 1
	low := strings.ToLower(want)
	var list []scored
	for _, n := range names {
		if strings.EqualFold(n, want) {
			list = append(list, scored{n, 0})
			continue
		}
		cost := distance(low, strings.ToLower(n), limit)
		if cost > limit && strings.HasPrefix(strings.ToLower(n), low+".") {
			cost = limit
		}
		if cost <= limit {
			list = append(list, scored{n, cost})
		}
	}
	sort.Slice(list, func(i, j int) bool {
		if list[i].cost != list[j].cost {
			return list[i].cost < list[j].cost
		}
		return list[i].name < list[j].name
	})
	if len(list) > max {
		list = list[:max]
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.name
	}
	return out
}

// distance is the number of letters to insert, delete or replace to make b of a; limit+1 where it is more than limit.
func distance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) > limit || len(y)-len(x) > limit {
		return limit + 1
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := diagonal
			if x[i] != y[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(y)], limit+1)
}
