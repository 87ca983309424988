package rules

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxBraces bounds how many lists in braces a path pattern may have: each multiplies what is tried.
const maxBraces = 8

// pathPattern is a glob over paths that are relative to the root of the workspace.
type pathPattern string

func parsePath(spec string) (pathPattern, error) {
	parts := strings.Split(spec, "/")
	clean := strings.TrimSuffix(path.Clean(spec), "/")
	switch {
	case strings.HasPrefix(spec, "/"):
		return "", errors.New("it can never match: paths are relative to the root of the workspace, and what is outside is never allowed")
	case strings.HasPrefix(spec, "~"):
		return "", errors.New("it can never match: ~ is outside the workspace")
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return "", errors.New("it can never match: it is outside the workspace, where nothing is ever allowed")
	case slices.Contains(parts, ".."):
		return "", fmt.Errorf("it can never match: paths are folded before they are matched, so none has a \"..\"; write %s", clean)
	case strings.HasSuffix(spec, "/"):
		return "", fmt.Errorf("it can never match: no path ends with a slash; for all below a folder write %s/**", clean)
	case spec != "." && clean != spec:
		return "", fmt.Errorf("it can never match: paths are folded before they are matched; write %s", clean)
	case !doublestar.ValidatePattern(spec):
		return "", errors.New("it can never match: every [ and { needs its end, and a backslash something to follow it")
	case strings.Contains(spec, "[^") || strings.Contains(spec, "[!"):
		return "", errors.New("a class of characters may not be negated, since it would match a slash too")
	case strings.Count(spec, "{") > maxBraces:
		return "", fmt.Errorf("it has more than %d lists in braces", maxBraces)
	}
	return pathPattern(spec), nil
}

func (p pathPattern) match(name string) bool {
	ok, err := doublestar.Match(string(p), name)
	return ok && err == nil
}

// below is a name that no folder has: a pattern that matches it below a folder matches all that may be there.
const below = "\x02"

// matchAll matches a folder and all that may be below it.
func (p pathPattern) matchAll(folder string) bool {
	return p.match(folder) && p.match(path.Join(folder, below, below))
}

// reaches says whether the pattern may match a folder or something below it.
func (p pathPattern) reaches(folder string) bool {
	if strings.Contains(string(p), "{") { // which may hold slashes
		return true
	}
	parts := strings.Split(string(p), "/")
	if folder == "." {
		return true
	}
	for name := range strings.SplitSeq(folder, "/") {
		if len(parts) == 0 {
			return false
		}
		if parts[0] == "**" {
			return true
		}
		if ok, err := doublestar.Match(parts[0], name); !ok || err != nil {
			return false
		}
		parts = parts[1:]
	}
	return true
}

// covers knows the plain cases in which every path that q matches is matched by p.
func (p pathPattern) covers(q pathPattern) bool {
	if p == q || p == "**" {
		return true
	}
	folder, all := strings.CutSuffix(string(p), "/**")
	if !all || strings.ContainsAny(folder, `*?[{\`) {
		return false
	}
	return string(q) == folder || strings.HasPrefix(string(q), folder+"/")
}

// place finds where a path of a call leads.
func (c Call) place(name string) (Place, error) {
	if c.Resolve != nil {
		return c.Resolve(name)
	}
	clean := path.Clean(name)
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return Place{}, fmt.Errorf("%q leads outside the workspace", short(name))
	}
	return Place{Clean: clean, Real: clean, Folder: true}, nil
}

// matches says that a rule which forbids is about one of the names of a place.
func (p pathPattern) matches(at Place) bool {
	return !at.Scratch && (p.match(at.Clean) || p.match(at.Real))
}

// grants says that a rule which allows is about a place, and all below it where the call gets at that.
func (p pathPattern) grants(at Place, r reach) bool {
	switch {
	case at.Scratch:
		return true
	case at.Folder && r != single:
		return p.matchAll(at.Real)
	}
	return p.match(at.Real)
}

// Filter says of each file that a walk of a tool finds below a folder whether rules keep it from the agent: the tool leaves it out. A path
// begins with start.Clean, as the walk names it. The filter is nil where nothing is kept.
func (s *Set) Filter(name string, start Place) func(found string) bool {
	if s == nil || start.Scratch {
		return nil
	}
	var patterns []pathPattern
	for _, l := range s.guards(findTool(name)) {
		for _, r := range l.rules {
			if !r.bare() {
				patterns = append(patterns, r.path)
			}
		}
	}
	if patterns == nil {
		return nil
	}
	return func(found string) bool {
		real := found
		if start.Clean != start.Real {
			real = path.Join(start.Real, strings.TrimPrefix(strings.TrimPrefix(found, start.Clean), "/"))
		}
		return slices.ContainsFunc(patterns, func(p pathPattern) bool { return p.match(found) || p.match(real) })
	}
}
