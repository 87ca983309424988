package workspace

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	run "muster/tools/git"
)

// git is a repository of ours, or the way to one of a user's, and how git is run on it: as package tools/git runs it on any, so that nothing which a
// user's repository, home or system configures is started, and with bytes as they are.
type git struct {
	dir        string   // GIT_DIR; "" to let git find the repository of workTree
	workTree   string   // GIT_WORK_TREE and the folder git runs in; "" for work on objects alone
	index      string   // GIT_INDEX_FILE; "" for the one in dir
	alternates []string // more object folders to read from
	date       string   // of commits that are made, so that the same files give the same commit
}

// exact is the configuration of every run: what would change bytes is off, and what is ours alone stays ours.
var exact = []string{
	"core.autocrlf=false", "core.fileMode=true", "core.symlinks=true", "core.excludesFile=/dev/null",
	"core.splitIndex=false", "core.sparseCheckout=false", "core.logAllRefUpdates=false", "fastimport.unpackLimit=0",
}

// rawAttributes stands in info/attributes of each of our repositories, where it wins over every .gitattributes: a
// byte in a file is a byte in the commit and back.
const rawAttributes = "* -text !eol -ident -filter -working-tree-encoding !diff\n"

// run runs git with a fixed argument list. It and what it starts end when ctx does.
func (g git) run(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	var all []string
	for _, c := range exact {
		all = append(all, "-c", c)
	}
	at := run.Repo{Dir: g.dir, WorkTree: g.workTree, Index: g.index, Alternates: g.alternates, Date: g.date}
	return run.Runner{}.Run(ctx, at, stdin, stdout, append(all, args...)...)
}

// text runs git and returns what it prints, without the last newline.
func (g git) text(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := g.run(ctx, nil, &out, args...)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// each runs git and calls fn for each piece of its output that ends with the byte end.
func (g git) each(ctx context.Context, end byte, fn func(string) error, args ...string) error {
	return g.run(ctx, nil, &run.Records{End: end, Fn: fn}, args...)
}

// initBare makes a repository of ours in dir.
func initBare(ctx context.Context, dir, format string) error {
	g := git{}
	if err := g.run(ctx, nil, nil, "init", "-q", "--bare", "--template=", "--initial-branch=muster", "--object-format="+format, "--", dir); err != nil {
		return err
	}
	return writeRaw(dir)
}

func writeRaw(gitDir string) error {
	info := filepath.Join(gitDir, "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "attributes"), []byte(rawAttributes), 0o600)
}

// formatOf tells the object format by the length of an id.
func formatOf(id string) string {
	if len(id) == 64 {
		return "sha256"
	}
	return "sha1"
}

// isID reports whether s is a whole object id, and so nothing that git could take for an option or a name.
func isID(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}
