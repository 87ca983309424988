package tools

import (
	"context"
	"errors"
	"strings"

	"muster/budget"
	"muster/tools/git"
)

// revisions is what a ref argument names: one commit, or two with ".." or "..." between.
type revisions struct {
	from, to string // ids; from is "" for one commit
	dots     string
}

// revisions finds the commits that a ref argument names. Only their ids go on to git: no text of the caller's can be an option, a path or a file of a commit.
func (g *gitCall) revisions(ctx context.Context, ref string) (s revisions, err error) {
	for _, dots := range []string{"...", ".."} {
		from, to, ok := strings.Cut(ref, dots)
		if !ok {
			continue
		}
		s.dots = dots
		if s.from, err = g.commit(ctx, from); err != nil {
			return s, err
		}
		s.to, err = g.commit(ctx, to)
		return s, err
	}
	s.to, err = g.commit(ctx, ref)
	return s, err
}

// commit is the id of the commit that a name stands for; none stands for HEAD.
func (g *gitCall) commit(ctx context.Context, name string) (string, error) {
	if name == "" {
		name = "HEAD"
	}
	refused := func(why string) (string, error) {
		return "", fail(Input, "ref %q %s; give a branch, a tag, a commit id, HEAD~2 or a..b", shorten(name, 100), why)
	}
	switch {
	case strings.HasPrefix(name, "-"):
		return refused("begins with a -, as options do")
	case strings.ContainsAny(name, ": \t\n*?[\\!^") && !onlyParents(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return refused("is not the name of one commit")
	}
	ids, err := g.line(ctx, "rev-list", "--no-walk", "--end-of-options", name, "--")
	var said *git.Error
	if errors.As(err, &said) {
		return "", g.unknownRef(ctx, name, said)
	} else if err != nil {
		return "", err
	}
	if ids == "" || strings.Contains(ids, "\n") {
		return refused("is not the name of one commit")
	}
	return ids, nil
}

// onlyParents says that what is odd in a name are its steps to parents or to what a tag stands for: main^, main^2~3, v1^{}, v1^{commit}.
func onlyParents(name string) bool {
	name = strings.NewReplacer("^{commit}", "", "^{}", "").Replace(name)
	base, steps, _ := strings.Cut(name, "^")
	return base != "" && !strings.ContainsAny(base, ": \t\n*?[\\!") && strings.Trim(steps, "^~0123456789") == ""
}

// branchesLooked is how many names are looked through for one that was meant.
const branchesLooked = 1000

// unknownRef names what there is that is like a name which stands for nothing.
func (g *gitCall) unknownRef(ctx context.Context, name string, said *git.Error) error {
	if g.unborn(ctx) {
		return fail(Input, "there are no commits yet, so ref %q names none; leave ref out", shorten(name, 100))
	}
	var names []string
	list := &git.Records{End: '\n', Most: 1000, Fn: func(s string) error {
		if len(names) < branchesLooked {
			names = append(names, s)
		}
		return nil
	}}
	next := "git_log lists commits"
	if err := g.git(ctx, list, "for-each-ref", "--format=%(refname:short)"); err == nil {
		if likely := budget.Likely(name, names, 3); len(likely) > 0 {
			next = "the nearest names are: " + shownName(shorten(strings.Join(likely, ", "), 300))
		}
	}
	return fail(Input, "%s; %s", gitSays(said), next)
}

// unborn says that HEAD names no commit yet.
func (g *gitCall) unborn(ctx context.Context) bool {
	_, err := g.line(ctx, "rev-parse", "--verify", "--quiet", "HEAD")
	var said *git.Error
	return errors.As(err, &said) && said.Code == 1
}
