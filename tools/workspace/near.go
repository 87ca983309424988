package workspace

import (
	"errors"
	"io"
	"path"
	"sort"
	"strings"

	"muster/budget"
)

// nearNames is how many names of a folder are looked at for a hint.
const nearNames = 5000

// near finds the existing names that are most like the first missing part of p, as whole paths relative to the root.
func (t *Tree) near(p place) []string {
	if p.area == nil {
		return nil
	}
	names := strings.Split(p.rel, "/")
	// A folder is there only where all before it are: looking at each on the way up would cost as many steps for each.
	there := sort.Search(len(names)-1, func(i int) bool {
		info, err := p.root.Stat(path.Join(names[:i+1]...))
		return err != nil || !info.IsDir()
	})
	parent, missing, rest := path.Join(names[:there]...), names[there], path.Join(names[there+1:]...)
	if parent == "" {
		parent = "."
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
	names, err = self.Readdirnames(nearNames)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	var found []string
	for _, n := range budget.Likely(missing, names, 3) {
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
