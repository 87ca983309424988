package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"muster/tools/git"
)

// filteredPath is a file that a filter changes on its way to and from the repository, by its attributes.
type filteredPath struct{ path, filter string }

// filtered are those of paths that have a filter. None is ever run: what is on the disk is not what git would store of them.
func (g *gitCall) filtered(ctx context.Context, paths []string) (list []filteredPath, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	var fields []string // path, attribute, value
	out := &git.Records{Most: g.Caps.GitBytes, Fn: func(s string) error {
		if fields = append(fields, s); len(fields) == 3 {
			if !slices.Contains([]string{"unspecified", "unset", "set", ""}, fields[2]) {
				list = append(list, filteredPath{fields[0], fields[2]})
			}
			fields = fields[:0]
		}
		return nil
	}}
	in := strings.NewReader(strings.Join(paths, "\x00") + "\x00")
	return list, g.run.Run(ctx, g.at, in, out, "check-attr", "--stdin", "-z", "filter")
}

// filterNote says that some of the changed files may only seem to have changed.
func (g *gitCall) filterNote(ctx context.Context, paths []string) (string, error) {
	list, err := g.filtered(ctx, paths)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return fmt.Sprintf("[%s kept through a filter (%s), which is not run here: it may only seem changed]", g.shown(list[0].path)+moreOf(len(list)-1),
		shownName(shorten(list[0].filter, 100))), nil
}

// moreOf is " is", or " and so many more are".
func moreOf(n int) string {
	if n == 0 {
		return " is"
	}
	return fmt.Sprintf(" and %d more are", n)
}
